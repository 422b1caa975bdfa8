"""Pearson's correlation of two numbers, from their joint moments, which merge without cancellation."""

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
from penstock.aggregates.partials import Lift, Lowered, PaneColumns, cast_as_spark
from penstock.expressions.scalar import Expression

__all__ = ["corr", "joint_moments"]


@dataclass(frozen=True, slots=True)
class CorrDefinition(Definition):
    """Products of deviations over the roots of squared deviations; pairs with a null are skipped."""

    name = "corr"
    sql_names = ("corr",)
    takes = (NUMBER, NUMBER)
    gives = "double"
    agreement = Agreement.ROUNDED

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """From the joint moments."""
        return Correlation(joint_moments(arguments, pane)), pa.float64()


def joint_moments(arguments: Sequence[Expression], pane: PaneColumns) -> tuple[str, ...]:
    """The columns of the joint moments, which Spark forms of the pairs in which neither value is null."""
    one, other = arguments
    x = f"CASE WHEN {other.sql} IS NOT NULL THEN cast({one.sql} AS double) END"
    y = f"CASE WHEN {one.sql} IS NOT NULL THEN cast({other.sql} AS double) END"
    # The mean of equal values is that value and not a rounded one: deviations have to be exactly zero,
    # whatever panes are merged, for a correlation to be null.
    means = (f"CASE WHEN min({v}) = max({v}) THEN min({v}) ELSE avg({v}) END" for v in (x, y))
    spreads = (f"{f} * count({x})" for f in (f"var_pop({x})", f"var_pop({y})", f"covar_pop({x}, {y})"))
    combine = (f"cast(count({x}) AS double)", *(f"coalesce({each}, 0D)" for each in (*means, *spreads)))
    lift = _OfOnePair(pane.input(one), pane.input(other))
    return pane.partial(JointMoments(), combine, lift).columns


@dataclass(frozen=True)
class Correlation:
    """Null for fewer than two pairs, and where one of the numbers never changes."""

    columns: tuple[str, ...]

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """From the joint moments."""
        count, _, _, xx, yy, xy = (columns[each].to_numpy(zero_copy_only=False) for each in self.columns)
        with np.errstate(invalid="ignore", over="ignore"):
            scale = np.sqrt(xx * yy)
            known = (count > 1) & (scale != 0)
            return pa.array(np.divide(xy, scale, out=np.zeros(len(count)), where=known), mask=~known)


@dataclass(frozen=True)
class JointMoments:
    """Count, both means, both sums of squared deviations and that of their products; six doubles."""

    types: ClassVar[tuple[Any, ...]] = (pa.float64(),) * 6
    summary: ClassVar[str] = ""

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Null means no pairs."""
        lanes = tuple(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False) for column in columns)
        return _LoadedJointMoments(_JointMerge(), lanes)


@dataclass(frozen=True)
class _LoadedJointMoments:
    merge: Merge
    lanes: Lanes

    def store(self, lanes: Lanes) -> list[Any]:
        return [pa.array(lane) for lane in lanes]


@dataclass(frozen=True)
class _JointMerge:
    """Pairwise update of the moments of two numbers (Chan et al. 1979)."""

    def identity(self, cells: int) -> Lanes:
        """No pairs yet."""
        return tuple(np.zeros(cells) for _ in range(6))

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """Three passes: the means of every cell, their rounding, then the deviations from them."""
        count, x, y, xx, yy, xy = rows

        def total(weights: Array) -> Array:
            return scattered_sum(cells, at, weights)

        with np.errstate(invalid="ignore", over="ignore"):
            pairs = total(count)
            centres = [weighted_mean(cells, at, count, mean, pairs) for mean in (x, y)]
            far, wide = x - centres[0][at], y - centres[1][at]
            products = ((xx, far, far), (yy, wide, wide), (xy, far, wide))
            return (pairs, *centres, *(total(held + count * one * two) for held, one, two in products))

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Element by element."""
        with np.errstate(invalid="ignore", over="ignore"):
            count = left[0] + right[0]
            share = np.divide(right[0], count, out=np.zeros_like(count), where=count > 0)
            far, wide = right[1] - left[1], right[2] - left[2]
            # The weight comes first: a large distance from an empty side must not overflow.
            pull = left[0] * share
            held = left[0] > 0
            moments = (
                count,
                np.where(held, left[1] + far * share, right[1]),
                np.where(held, left[2] + wide * share, right[2]),
                left[3] + right[3] + far * pull * far,
                left[4] + right[4] + wide * pull * wide,
                left[5] + right[5] + far * pull * wide,
            )
        for target, moment in zip(out, moments, strict=True):
            np.copyto(target, moment)


@dataclass(frozen=True)
class _OfOnePair(Lift):
    """The moments of a single pair, which deviates from itself by nothing."""

    one: str
    other: str

    def columns(self, rows: Any) -> list[Any]:
        """One count and both values; nothing where one of them is null."""
        x, y = (cast_as_spark(rows[name], pa.float64()) for name in (self.one, self.other))
        both = pc.and_(x.is_valid(), y.is_valid())
        zero = pa.array(np.zeros(rows.num_rows))
        values = [pc.if_else(both, value, 0.0) for value in (x, y)]
        return [both.cast(pa.float64()), *values, zero, zero, zero]


@defined_by(CorrDefinition)
def corr(expression: str, other: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """Pearson's correlation as a double; pairs with a null are skipped.

    Null for fewer than two pairs, and where one of the numbers never changes.

    >>> str(corr("speed", "length"))
    'corr(speed, length)'
    """
    return modified(Aggregate(CorrDefinition(), (expression, other)), where, distinct)
