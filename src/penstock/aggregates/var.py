"""The sample variance, from count, mean and squared deviations that merge without cancellation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.kinds import Loaded
from penstock.aggregates.merges import Array, Lanes, Merge, scattered_sum, weighted_mean
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Finish, Lift, Lowered, PaneColumns, cast_as_spark
from penstock.expressions.scalar import Expression

__all__ = ["Moments", "VarDefinition", "Variance", "var"]


@dataclass(frozen=True, slots=True)
class VarDefinition(Definition):
    """Squared deviations over count minus one; Spark adds up the moments of a pane's rows."""

    name = "var"
    sql_names: ClassVar[tuple[str, ...]] = ("var_samp", "var", "variance")
    takes = (NUMBER,)
    gives = "double"
    agreement = Agreement.ROUNDED

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """All variances and deviations of a value share one partial."""
        (value,) = arguments
        double = f"cast({value.sql} AS double)"
        # The mean of equal values is that value and not a rounded one, or merged panes would deviate.
        mean = f"CASE WHEN var_pop({double}) = 0 THEN min({double}) ELSE avg({double}) END"
        combine = (
            f"cast(count({value.sql}) AS double)",
            f"coalesce({mean}, 0D)",
            f"coalesce(var_pop({double}) * count({value.sql}), 0D)",
        )
        partial = pane.partial(Moments(), combine, _OfOneValue(pane.input(value)))
        return self.finish(partial.columns[0], partial.columns[2]), pa.float64()

    def finish(self, count: str, squares: str) -> Finish:
        """From the columns of count and squared deviations to the value."""
        return Variance(count, squares, root=False)


@dataclass(frozen=True)
class Variance:
    """Sample variance, or its root; null for fewer than two values."""

    count: str
    squares: str
    root: bool
    least: ClassVar[int] = 2

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Squared deviations over the degrees of freedom."""
        count = columns[self.count].to_numpy(zero_copy_only=False)
        squares = columns[self.squares].to_numpy(zero_copy_only=False)
        known = count >= self.least
        value = np.divide(squares, count - self.least + 1, out=np.zeros(len(count)), where=known)
        return pa.array(np.sqrt(value) if self.root else value, mask=~known)


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of a number; three doubles, never null."""

    types: ClassVar[tuple[Any, ...]] = (pa.float64(), pa.float64(), pa.float64())
    summary: ClassVar[str] = ""

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Null means no values."""
        lanes = tuple(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False) for column in columns)
        return _LoadedMoments(_MomentsMerge(), lanes)


@dataclass(frozen=True)
class _LoadedMoments:
    merge: Merge
    lanes: Lanes

    def store(self, lanes: Lanes) -> list[Any]:
        return [pa.array(lane) for lane in lanes]


@dataclass(frozen=True)
class _MomentsMerge:
    """Pairwise update of the moments, without cancellation (Chan et al. 1979)."""

    def identity(self, cells: int) -> Lanes:
        """No values yet."""
        return (np.zeros(cells), np.zeros(cells), np.zeros(cells))

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """Two passes: the mean of every cell, then the deviations from it."""
        count, mean, squares = rows
        # Infinite values have no variance: NaN comes out, as in Spark, and needs no warning.
        with np.errstate(invalid="ignore", over="ignore"):
            total = scattered_sum(cells, at, count)
            centre = weighted_mean(cells, at, count, mean, total)
            apart = mean - centre[at]
            spread = scattered_sum(cells, at, squares + count * apart * apart)
        return (total, centre, spread)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Element by element."""
        with np.errstate(invalid="ignore", over="ignore"):
            count = left[0] + right[0]
            share = np.divide(right[0], count, out=np.zeros_like(count), where=count > 0)
            apart = right[1] - left[1]
            # The weight comes first: a large distance from an empty side must not overflow.
            squares = left[2] + right[2] + apart * (left[0] * share) * apart
            # An empty left side must not pull the mean towards its own zero.
            np.copyto(out[1], np.where(left[0] > 0, left[1] + apart * share, right[1]))
        np.copyto(out[0], count)
        np.copyto(out[2], squares)


@dataclass(frozen=True)
class _OfOneValue(Lift):
    """The moments of a single value, which deviates from itself by nothing."""

    input: str

    def columns(self, rows: Any) -> list[Any]:
        """One count, the value and zero; no count for a null."""
        value = cast_as_spark(rows[self.input], pa.float64())
        zero = pa.array(np.zeros(rows.num_rows))
        return [value.is_valid().cast(pa.float64()), pc.fill_null(value, 0.0), zero]


@defined_by(VarDefinition)
def var(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The sample variance as a double, null for fewer than two values.

    >>> str(var("speed"))
    'var(speed)'
    """
    return modified(Aggregate(VarDefinition(), (expression,)), where, distinct)
