"""One epoch of a join in one channel: what is new is looked at against what is kept.

Over the life of a run every matching pair is delivered exactly once, whatever the boundaries of epochs and
the order of arrival; a row leaves as soon as the frontiers have passed all that it could match, and if it
has matched nothing by then an outer join delivers it alone, once (join and Cartesian product: 002,
sections III.D.1 and III.D.2).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.errors import BadJoin
from penstock.joins.candidates import Candidates, by_count, by_time
from penstock.joins.inputs import Input
from penstock.joins.join import Frontiers, Join, Within
from penstock.joins.matching import Matcher
from penstock.joins.result import Result
from penstock.joins.spans import BLOCK, Rows
from penstock.joins.state import Held, Mask, Pair, Remains

__all__ = ["step"]


def step(  # noqa: PLR0913, PLR0917 -- the state, the input and the frontiers of an epoch
    join: Join,
    kept: Pair[Held],
    new: Pair[Any],
    before: Frontiers,
    after: Frontiers,
    deliver: Callable[[Any], None],
) -> Pair[Remains]:
    """Deliver this epoch's results in tables of bounded size and say which rows stay.

    `kept` is what remained after the last epoch; `new` are Arrow tables without late rows: none lies below
    its side's frontier in `before`. Results come in no particular order.

    >>> import pyarrow as pa
    >>> from dataclasses import replace
    >>> from penstock.joins import Side
    >>> side = Side("t", keys=("k",), columns=(("v", "v"),))
    >>> join = Join(side, replace(side, columns=(("v", "w"),)), Within(5), key_types=(pa.int64(),), time="t")
    >>> rows = pa.table({"k": [1, 1], "t": [10, 20], "v": ["a", "b"]})
    >>> empty = Held.nothing(rows.schema)
    >>> remains = step(
    ...     join, Pair(empty, empty), Pair(rows, rows.slice(1)), Frontiers(), Frontiers(16, 16),
    ...     lambda table: print(table.to_pylist()))
    [{'t': 20, 'v': 'b', 'w': 'b'}]
    >>> remains.left.new.tolist()
    [False, True]
    """
    if before == after and not new.left.num_rows and not new.right.num_rows:
        return Pair(_unchanged(kept.left), _unchanged(kept.right))
    left = Input.of(join.left, join.key_types, kept.left.rows, new.left)
    right = Input.of(join.right, join.key_types, kept.right.rows, new.right)
    _refuse_late(left, before.left)
    _refuse_late(right, before.right)
    if isinstance(join.bound, Within):
        candidates = by_time(join.bound, left, right, after)
    else:
        candidates = by_count(join.bound, left, right, before, after)
    result = Result(join, left, right)
    outer_left, outer_right = join.keeps_unmatched
    matched = Pair(_marks(kept.left, left), _marks(kept.right, right))
    for one, other in _pairs(join, left, right, candidates):
        if outer_left:
            matched.left[one] = True
        if outer_right:
            matched.right[other] = True
        deliver(result.matched(one, other))
    if outer_left:
        _deliver_alone(~candidates.stay.left & ~matched.left, result.unmatched_left, deliver)
    if outer_right:
        _deliver_alone(~candidates.stay.right & ~matched.right, result.unmatched_right, deliver)
    return Pair(
        _remains(left, candidates.stay.left, matched.left),
        _remains(right, candidates.stay.right, matched.right),
    )


def _unchanged(kept: Held) -> Remains:
    none = np.zeros(0, np.bool_)
    return Remains(np.ones(len(kept.matched), np.bool_), none, kept.matched, none)


def _refuse_late(side: Input, frontier: int | None) -> None:
    new = side.new_time
    if frontier is not None and len(new) and new.min() < frontier:
        raise BadJoin(
            f"a new row has {side.side.time!r} {new.min()}, below the frontier {frontier}; "
            "send late rows to the late output before the join"
        )


def _marks(kept: Held, side: Input) -> Mask:
    return np.concatenate([kept.matched, np.zeros(len(side) - side.kept, np.bool_)])


def _pairs(join: Join, left: Input, right: Input, candidates: Candidates) -> Iterator[tuple[Rows, Rows]]:
    """Blocks of (left rows, right rows) that match."""
    if join.condition is not None:
        with Matcher(join.condition, left.rows, right.rows) as matcher:
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


def _deliver_alone(alone: Mask, table: Callable[[Rows], Any], deliver: Callable[[Any], None]) -> None:
    rows = np.flatnonzero(alone)
    for start in range(0, len(rows), BLOCK):
        deliver(table(rows[start : start + BLOCK]))


def _remains(side: Input, stay: Mask, matched: Mask) -> Remains:
    cut = side.kept
    return Remains(stay[:cut], stay[cut:], matched[:cut], matched[cut:])
