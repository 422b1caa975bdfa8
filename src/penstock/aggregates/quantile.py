"""About the value below which a fraction of the values lies: KLL sketches of doubles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Definition, check_whole, defined_by
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.aggregates.pools import Sketch, datasketches
from penstock.errors import BadAggregate
from penstock.expressions.scalar import Expression

__all__ = ["Kll", "quantile"]


@dataclass(frozen=True, slots=True)
class QuantileDefinition(Definition):
    """Estimates by rank; Spark's own sketch function forms the sketches, so only Spark can."""

    name = "quantile"
    sql_names = ("percentile_approx", "approx_percentile", "quantile")
    numbers = {  # noqa: RUF012 -- a ClassVar of the base
        "percentile_approx": (1, 1),
        "approx_percentile": (1, 1),
        "quantile": (1, 2),
    }
    takes = (NUMBER,)
    gives = "double"
    error = "rank error 2.3 / k^0.9, 1.3 % by default; NaN is left out"
    differs = "a double, where Spark gives the argument's type"
    examples = ({"q": 0.5}, {"q": 0.0}, {"q": 1.0}, {"q": 0.9, "k": 400})

    q: float
    k: int

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """One sketch for each pane; quantiles of one value share it."""
        (value,) = arguments
        kind = Kll(self.k)
        sketch = f"kll_sketch_agg_double(cast({value.sql} AS double), {self.k})"
        partial = pane.partial(kind, (sketch,), None)
        return Quantile(partial.name, kind, self.q), pa.float64()

    def spark_sql(self, _arguments: Sequence[str], _time: str) -> None:
        """Spark's estimate is another one."""
        return

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """How far the ranks that the found value has are from the one that was asked for."""
        values = [float(value) for value in columns[0] if value is not None and value == value]  # noqa: PLR0124 -- NaN
        if not values or found is None:
            return 0.0 if not values and found is None else float("inf")
        below = len([value for value in values if value < found]) / len(values)
        upto = len([value for value in values if value <= found]) / len(values)
        return max(below - self.q, self.q - upto, 0.0)

    @property
    def error_bound(self) -> float:
        """Twice the rank error, which holds with 99 %."""
        return float(4.6 / self.k**0.9)


@dataclass(frozen=True)
class Kll(Sketch):
    """KLL quantiles of doubles; rank error about 2.3 / k^0.9 (1.3 % at k = 200)."""

    size: int

    def parse(self, data: bytes) -> Any:
        """A sketch of doubles."""
        return datasketches().kll_doubles_sketch.deserialize(data)

    def union(self, one: Any, other: Any) -> Any:
        """Compactors merged level by level."""
        both = datasketches().kll_doubles_sketch(self.size)
        both.merge(one)
        both.merge(other)
        return both

    def serialize(self, sketch: Any) -> bytes:
        """Compact form."""
        return bytes(sketch.serialize())


@dataclass(frozen=True)
class Quantile:
    """A quantile of a KLL sketch."""

    column: str
    kind: Kll
    rank: float

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Null where no value was seen."""
        return pa.array([self._one(data) for data in columns[self.column].to_pylist()], pa.float64())

    def _one(self, data: bytes | None) -> float | None:
        sketch = self.kind.parse(data) if data else None
        return None if sketch is None or sketch.is_empty() else float(sketch.get_quantile(self.rank))


@defined_by(QuantileDefinition)
def quantile(expression: str, q: float, k: int = 200) -> Aggregate:
    """About the value below which the fraction q of the values lies, as a double.

    A KLL sketch of size k; its error is one of rank, about 1.3 % for the default. NaN is left out.

    >>> str(quantile("speed", 0.95))
    'quantile(speed, q=0.95, k=200)'
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise BadAggregate(f"quantile() got q={q!r}; give one number from 0 to 1")
    check_whole("quantile", "k", k, 8, 65_535)
    return Aggregate(QuantileDefinition(float(q), k), (expression,))
