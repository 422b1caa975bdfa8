"""One epoch of a join in one channel: new rows against kept rows.

Over a run every matching pair is delivered exactly once, whatever the boundaries of epochs and the order of
arrival. A row leaves as soon as the frontiers have passed all that it could match; if it has matched nothing
by then, an outer or anti join delivers it alone, once. A semi join delivers a left row at its first match,
and neither it nor an anti join keeps a left row that has matched (join and Cartesian product: [002] §III.D.1
and §III.D.2). By windows the same holds for each window (`coverage.py`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import BadJoin
from penstock.operators.joins.candidates import Candidates, by_count, by_time, by_window
from penstock.operators.joins.condition import Matcher
from penstock.operators.joins.coverage import Coverage, deliver_windows
from penstock.operators.joins.inputs import SideRows
from penstock.operators.joins.judging import Duties
from penstock.operators.joins.result import JoinResult
from penstock.operators.joins.spans import BLOCK, Marks, Mask, Rows
from penstock.operators.joins.spec import Alone, ByWindow, Frontiers, JoinSpec, Last, Pair, Share, Within

__all__ = ["HeldSide", "SideAfter", "step"]


@dataclass(frozen=True)
class HeldSide:
    """Rows that can still match, and whether each of them has matched; by windows in which it has.

    An inner join does not need the marks; there they are all false.
    """

    rows: Any
    matched: Marks

    def __post_init__(self) -> None:
        assert len(self.matched) == self.rows.num_rows

    @classmethod
    def nothing(cls, schema: Any, marks: Any = np.bool_) -> "HeldSide":
        """Before the first epoch; `marks` is the type of marks."""
        return cls(schema.empty_table(), np.zeros(0, marks))


@dataclass(frozen=True)
class SideAfter:
    """A side after an epoch: which kept and which new rows stay, and which of all rows have matched.

    These are masks, so that a caller can leave a segment as it is while any of its rows stay, write only new
    rows, and rewrite only the marks.
    """

    kept: Mask
    new: Mask
    kept_matched: Marks
    new_matched: Marks

    def held(self, kept: Any, new: Any) -> HeldSide:
        """The rows to keep for the next epoch, from the kept and the new rows of this one."""
        rows = pa.concat_tables([kept.filter(pa.array(self.kept)), new.filter(pa.array(self.new))])
        return HeldSide(rows, np.concatenate([self.kept_matched[self.kept], self.new_matched[self.new]]))


def step(  # noqa: PLR0913, PLR0917 -- the state, the input and the frontiers of an epoch
    join: JoinSpec,
    kept: Pair[HeldSide],
    new: Pair[Any],
    before: Frontiers,
    after: Frontiers,
    deliver: Callable[[Any], None],
    share: Share | None = None,
    duties: Duties | None = None,
) -> Pair[SideAfter]:
    """Deliver the results of an epoch in tables of bounded size, and say which rows stay.

    `kept` are the rows that stayed after the last epoch. `new` are Arrow tables without late rows: no row is
    below the frontier of its side in `before`. Results come in no particular order. With a `share`, all rows
    are kept, but the last rows are found for some rows only; the other channels find those of the others.
    With `duties`, some rows are judged and some pairs delivered elsewhere.

    >>> import pyarrow as pa
    >>> from dataclasses import replace
    >>> from penstock.operators.joins.spec import Side
    >>> side = Side("t", keys=("k",), columns=(("v", "v"),))
    >>> other = replace(side, columns=(("v", "w"),))
    >>> join = JoinSpec(side, other, Within(5), key_types=(pa.int64(),), time="t")
    >>> rows = pa.table({"k": [1, 1], "t": [10, 20], "v": ["a", "b"]})
    >>> empty = HeldSide.nothing(rows.schema)
    >>> after = step(
    ...     join, Pair(empty, empty), Pair(rows, rows.slice(1)), Frontiers(), Frontiers(16, 16),
    ...     lambda table: print(table.to_pylist()))
    [{'t': 20, 'v': 'b', 'w': 'b'}]
    >>> after.left.new.tolist()
    [False, True]
    """
    if before == after and not new.left.num_rows and not new.right.num_rows:
        return Pair(_unchanged(kept.left), _unchanged(kept.right))
    alone: Pair[Alone | None] = Pair(None, None)
    if join.condition is not None and not isinstance(join.bound, Last):
        # Among the last rows a row counts whether it can match or not.
        alone = join.condition.alone
    left = SideRows.of(join.left, join.key_types, kept.left.rows, new.left, alone.left)
    right = SideRows.of(join.right, join.key_types, kept.right.rows, new.right, alone.right)
    result = JoinResult(join, left, right)
    matched: Pair[Marks] = Pair(_marks(kept.left, left), _marks(kept.right, right))
    if isinstance(join.bound, ByWindow):
        _refuse_late(left, join.bound.floor(before.both))
        _refuse_late(right, join.bound.floor(before.both))
        candidates = by_window(join.bound, left, right, before, after)
        sides = Pair(
            Coverage.of(join.bound, left, before, after, matched.left),
            Coverage.of(join.bound, right, before, after, matched.right),
        )
        pairs = _pairs(join, left, right, candidates)
        deliver_windows(join, sides, pairs, result, deliver, duties)
        matched, stay = Pair(sides.left.marks, sides.right.marks), candidates.stay
        if not join.pairs:
            stay = Pair(stay.left & sides.left.lacking, stay.right)
    else:
        _refuse_late(left, before.left)
        _refuse_late(right, before.right)
        if isinstance(join.bound, Within):
            candidates = by_time(join.bound, left, right, after)
        else:
            candidates = by_count(join.bound, left, right, before, after, share)
        stay = candidates.stay
        if duties is not None:
            examined = None if join.condition is None else partial(_pairs, join, left, right)
            duties.look(candidates, matched, examined)
            candidates = duties.delivering(candidates)
        _deliver_rows(join, matched, stay, _pairs(join, left, right, candidates), result, deliver, duties)
        if not join.pairs:
            stay = Pair(stay.left & ~matched.left, stay.right)
    return Pair(_side_after(left, stay.left, matched.left), _side_after(right, stay.right, matched.right))


def _deliver_rows(  # noqa: PLR0913, PLR0917 -- what an epoch found, and where it goes
    join: JoinSpec,
    matched: Pair[Marks],
    stay: Pair[Mask],
    pairs: Iterator[tuple[Rows, Rows]],
    result: JoinResult,
    deliver: Callable[[Any], None],
    duties: Duties | None,
) -> None:
    """Deliver pairs, or rows at their first match, then rows that leave without one; mark what matches."""
    notes_left, notes_right = join.notes_matches
    for one, other in pairs:
        if join.how == "semi":
            fresh = np.unique(one[~matched.left[one]])
            if len(fresh):
                deliver(result.left_alone(fresh))
        if notes_left:
            matched.left[one] = True
        if notes_right:
            matched.right[other] = True
        if join.pairs:
            deliver(result.matched(one, other))
    outer_left, outer_right = join.keeps_unmatched
    if outer_left:
        rows = np.flatnonzero(~stay.left & ~matched.left)
        rows = rows if duties is None else rows[duties.judged(0, rows)]
        _deliver_alone(rows, result.left_alone, deliver)
    if outer_right:
        rows = np.flatnonzero(~stay.right & ~matched.right)
        rows = rows if duties is None else rows[duties.judged(1, rows)]
        _deliver_alone(rows, result.right_alone, deliver)


def _unchanged(kept: HeldSide) -> SideAfter:
    none = np.zeros(0, np.bool_)
    return SideAfter(np.ones(len(kept.matched), np.bool_), none, kept.matched, kept.matched[:0])


def _refuse_late(side: SideRows, frontier: int | None) -> None:
    new = side.new_time
    if frontier is not None and len(new) and new.min() < frontier:
        raise BadJoin(
            f"a new row has {side.side.time!r} {new.min()}, below the frontier {frontier}; "
            "send late rows to the late output before the join"
        )


def _marks(kept: HeldSide, side: SideRows) -> Marks:
    return np.concatenate([kept.matched, np.zeros(len(side) - side.kept, kept.matched.dtype)])


def _pairs(
    join: JoinSpec, left: SideRows, right: SideRows, candidates: Candidates
) -> Iterator[tuple[Rows, Rows]]:
    """Blocks of (left rows, right rows) that match."""
    if join.condition is not None:
        condition = join.condition
        left_rows, right_rows = left.rows.table(condition.left), right.rows.table(condition.right)
        with Matcher(condition, left_rows, right_rows) as matcher:
            if candidates.left_probes is not None:
                yield from matcher.pairs(candidates.left_probes, left_probes=True)
            if candidates.right_probes is not None:
                yield from matcher.pairs(candidates.right_probes, left_probes=False)
        return
    if candidates.left_probes is not None:
        yield from candidates.left_probes.blocks()
    if candidates.right_probes is not None:
        for probe, build in candidates.right_probes.blocks():
            yield build, probe


def _deliver_alone(rows: Rows, table: Callable[[Rows], Any], deliver: Callable[[Any], None]) -> None:
    for start in range(0, len(rows), BLOCK):
        deliver(table(rows[start : start + BLOCK]))


def _side_after(side: SideRows, stay: Mask, matched: Marks) -> SideAfter:
    cut = side.kept
    return SideAfter(stay[:cut], stay[cut:], matched[:cut], matched[cut:])
