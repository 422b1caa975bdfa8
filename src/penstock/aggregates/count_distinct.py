"""About how many distinct values there are: HyperLogLog sketches, which merge without loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import pyarrow as pa

from penstock.aggregates.aggregate import Aggregate, Definition, check_whole, defined_by
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.aggregates.pools import Sketch, datasketches
from penstock.expressions.scalar import Expression

__all__ = ["Hll", "count_distinct"]


@dataclass(frozen=True, slots=True)
class CountDistinctDefinition(Definition):
    """Estimates from 2^precision registers; Spark's own sketch function forms them, so only Spark can.

    That function skips empty strings and empty bytes.
    """

    name = "count_distinct"
    sql_names = ("approx_count_distinct", "count_distinct")
    numbers = {"count_distinct": (0, 1)}  # noqa: RUF012 -- a ClassVar of the base
    gives = "bigint"
    error = "relative standard error 1.04 / sqrt(2^precision), 1.6 % by default; empty strings are left out"
    never_null = True

    precision: int

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A bigint over whatever is counted."""
        return "bigint"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """One sketch for each pane."""
        (value,) = arguments
        kind = Hll(self.precision)
        partial = pane.partial(kind, (f"hll_sketch_agg({_hashable(value)}, {self.precision})",), None)
        return Distinct(partial.name, kind), pa.int64()

    def spark_sql(self, _arguments: Sequence[str], _time: str) -> None:
        """Spark's estimate is another one."""
        return

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """The relative error."""
        true = len({str(value) for value in columns[0] if value not in (None, "", b"")})
        return abs(found - true) / true if true else float(found)

    @property
    def error_bound(self) -> float:
        """Five standard errors."""
        return 5 * 1.04 / sqrt(2**self.precision)


@dataclass(frozen=True)
class Hll(Sketch):
    """HyperLogLog of 2^precision registers: relative standard error about 1.04 / sqrt(2^precision)."""

    precision: int

    def parse(self, data: bytes) -> Any:
        """Any HLL encoding."""
        return datasketches().hll_sketch.deserialize(data)

    def union(self, one: Any, other: Any) -> Any:
        """Register-wise maximum."""
        both = datasketches().hll_union(self.precision)
        both.update(one)
        both.update(other)
        return both.get_result(datasketches().HLL_8)

    def serialize(self, sketch: Any) -> bytes:
        """Compact form: few bytes while few values were seen."""
        return bytes(sketch.serialize_compact())


@dataclass(frozen=True)
class Distinct:
    """Rounded estimate of a HyperLogLog sketch."""

    column: str
    kind: Hll

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Zero where no sketch is."""
        return pa.array(
            [round(self.kind.parse(s).get_estimate()) if s else 0 for s in columns[self.column].to_pylist()],
            pa.int64(),
        )


def _hashable(value: Expression) -> str:
    """Spark hashes integers, strings and bytes into a HyperLogLog; other values go by their text."""
    fits = value.type in {"int", "bigint", "string", "binary"}
    return value.sql if fits else f"cast({value.sql} AS string)"


@defined_by(CountDistinctDefinition)
def count_distinct(expression: str, precision: int = 12) -> Aggregate:
    """About how many distinct values there are; nulls and empty strings are left out.

    A HyperLogLog sketch of 2^precision registers; the relative standard error is
    1.04 / sqrt(2^precision), 1.6 % for the default.

    >>> str(count_distinct("vehicle"))
    'count_distinct(vehicle, precision=12)'
    """
    check_whole("count_distinct", "precision", precision, 4, 21)
    return Aggregate(CountDistinctDefinition(precision), (expression,))
