"""About how many distinct values there are: HyperLogLog sketches, which merge without loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import Any, Final

import pyarrow as pa

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.aggregates.pools import Sketch, datasketches
from penstock.errors import BadAggregate
from penstock.expressions.scalar import Expression

__all__ = ["Hll", "approx_count_distinct"]

_SPREAD: Final = 1.04  # the standard error of one register
_LEAST: Final = 4  # of 2^4 registers at least
_FINEST, _COARSEST = 0.001, 0.39  # 2^21 registers, and Spark's bound


@dataclass(frozen=True, slots=True)
class ApproxCountDistinctDefinition(Definition):
    """Estimates from 2^precision registers; Spark's own sketch function forms them, so only Spark can.

    The sketch takes hashes of 64 bits, to which empty texts, NaN and zeros are what they are to DISTINCT.
    """

    name = "approx_count_distinct"
    sql_names = ("approx_count_distinct",)
    numbers = {"approx_count_distinct": (0, 1)}  # noqa: RUF012 -- a ClassVar of the base
    gives = "bigint"
    agreement = Agreement.ESTIMATE
    ignores_repeats = True
    detail = "relative standard error at most `rsd`, 2 % by default (Spark's own sketch: 5 % by default)"
    never_null = True

    rsd: float

    @property
    def precision(self) -> int:
        """The logarithm of the number of registers."""
        return max(_LEAST, ceil(2 * log2(_SPREAD / self.rsd)))

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A bigint over whatever is counted."""
        return "bigint"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """One sketch for each pane."""
        (value,) = arguments
        kind = Hll(self.precision)
        # The hash of null is a number like others.
        hashed = f"CASE WHEN {value.sql} IS NOT NULL THEN xxhash64({value.sql}) END"
        partial = pane.partial(kind, (f"hll_sketch_agg({hashed}, {self.precision})",), None)
        return Distinct(partial.name, kind), pa.int64()

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """Spark's estimate is another one."""
        return f"approx_count_distinct({arguments[0]}, {self.rsd})"

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """The relative error."""
        true = len({_spelled(value) for value in columns[0] if value is not None})
        return abs(found - true) / true if true else float(found)

    @property
    def error_bound(self) -> float:
        """Five standard errors."""
        return 5 * _SPREAD / sqrt(2**self.precision)


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


def _spelled(value: object) -> str:
    return "0.0" if value == 0.0 and isinstance(value, float) else repr(value)


@defined_by(ApproxCountDistinctDefinition)
def approx_count_distinct(
    expression: str, rsd: float = 0.02, *, where: str | None = None, distinct: bool = False
) -> Aggregate:
    """About how many distinct values there are, in little space; ``count_distinct`` is exact.

    ``rsd`` is the relative standard deviation of the estimate that is allowed, as in Spark: two of three
    results are within ``rsd`` of the truth, 19 of 20 within twice that. A HyperLogLog sketch has the least
    power of two of registers that keeps it, 4096 bytes for the default of 2 %. Nulls are left out.

    >>> str(approx_count_distinct("vehicle"))
    'approx_count_distinct(vehicle, rsd=0.02)'
    """
    if isinstance(rsd, bool) or not isinstance(rsd, (int, float)) or not _FINEST <= rsd <= _COARSEST:
        raise BadAggregate(
            f"approx_count_distinct() got rsd={rsd!r}; give a number from {_FINEST} to {_COARSEST}"
        )
    return modified(Aggregate(ApproxCountDistinctDefinition(float(rsd)), (expression,)), where, distinct)
