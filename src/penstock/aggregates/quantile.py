"""About the value that a fraction of the values is not above: KLL sketches of doubles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, check_whole, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.aggregates.pools import Sketch, datasketches
from penstock.errors import BadAggregate
from penstock.expressions.scalar import Expression

__all__ = ["Kll", "quantile"]

_DOUBLE: Final = 15  # digits of a decimal that a double keeps
_WIDE: Final = Context(prec=400, rounding=ROUND_HALF_UP)


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
    gives = "the argument's type"
    agreement = Agreement.ESTIMATE
    detail = (
        "exact up to `k` values of a group; beyond, the rank is off by about 2.3 / k^0.9, 1.3 % by default. "
        "Of a decimal 15 digits count. NaN is left out, which Spark takes for the largest value"
    )
    examples = ({"q": 0.5}, {"q": 0.0}, {"q": 1.0}, {"q": 0.9, "k": 400})

    q: float
    k: int

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the value."""
        return given[0]

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """One sketch for each pane; quantiles of one value share it."""
        (value,) = arguments
        kind = Kll(self.k)
        sketch = f"kll_sketch_agg_double(cast({value.sql} AS double), {self.k})"
        partial = pane.partial(kind, (sketch,), None)
        return Quantile(partial.name, kind, self.q, arrow_of(value)), arrow_of(value)

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """The same value up to `k` values, if none is NaN; another estimate beyond."""
        return f"percentile_approx({arguments[0]}, {self.q})"

    def estimates(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Beyond `k` values, beside NaN, and of decimals that no double holds."""
        values = [value for value in columns[0] if value is not None]
        finer = any(isinstance(each, Decimal) and len(each.as_tuple().digits) > _DOUBLE for each in values)
        return len(values) > self.k or finer or any(value != value for value in values)  # noqa: PLR0124 -- NaN

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """How far the ranks that the found value has are from the one that was asked for."""
        values = [float(value) for value in columns[0] if value is not None and value == value]  # noqa: PLR0124 -- NaN
        if not values or found is None:
            return 0.0 if not values and found is None else float("inf")
        found = float(found)
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
    type: Any

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Null where no value was seen."""
        return pa.array([self._one(data) for data in columns[self.column].to_pylist()], self.type)

    def _one(self, data: bytes | None) -> Any:
        sketch = self.kind.parse(data) if data else None
        if sketch is None or sketch.is_empty():
            return None
        # The least value that so many values are not above, as in Spark.
        return _typed(float(sketch.get_quantile(self.rank, True)), self.type)


def _typed(value: float, type_: Any) -> Any:
    """The double as a value of the argument's type, of which it came."""
    if pa.types.is_decimal(type_):
        return _WIDE.quantize(Decimal(repr(value)), Decimal(1).scaleb(-type_.scale))
    if pa.types.is_integer(type_):
        # The double of the largest bigint is one too large.
        return min(int(value), 2**63 - 1)
    return value


@defined_by(QuantileDefinition)
def quantile(
    expression: str, q: float, k: int = 200, *, where: str | None = None, distinct: bool = False
) -> Aggregate:
    """About the least value that is not below the fraction q of the values: an approximation.

    Up to k values of a group it is the value of Spark's percentile_approx(). Beyond, it is the value of a
    rank that is off by about 2.3 / k^0.9 of all values, 1.3 % for the default: ``quantile(x, 0.95)`` may
    give what is exactly the 0.937 quantile. Values are kept as doubles, 15 digits of a decimal; NaN is
    left out. A KLL sketch.

    >>> str(quantile("speed", 0.95))
    'quantile(speed, q=0.95, k=200)'
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise BadAggregate(f"quantile() got q={q!r}; give one number from 0 to 1")
    check_whole("quantile", "k", k, 8, 65_535)
    return modified(Aggregate(QuantileDefinition(float(q), k), (expression,)), where, distinct)
