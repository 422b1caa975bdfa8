"""Chooses segments to merge, so that a channel reads few files however long it runs.

Segments that came with a move are left out at first: a channel has a budget of bytes an epoch to rewrite the
rows that are its own, so that no epoch after a move takes much longer than others.
"""

from collections.abc import Sequence

from penstock.state.segments import Segment

__all__ = ["BUDGET", "MOST_MOVED", "MOST_SEGMENTS", "to_merge", "to_rewrite"]

MOST_SEGMENTS = 8
MOST_MOVED = 64
"""The most moved segments that a table of a channel keeps, whatever it costs: each move may multiply them."""
BUDGET = 8 * 2**20
"""Bytes of moved rows that a table of a channel rewrites in an epoch."""

# To find the rows of a channel in a file costs so much of what it costs to write all of them.
_SEARCH = 0.1
# A smaller part of the budget is not worth another file.
_LEAST_PART = 0.25


def to_merge(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The newest segments of one level, oldest first, that are worth merging into one; often none.

    If there are more than eight, the newest are merged together with every older one that is at most
    twice as large as all newer ones together. Each row is rewritten O(log rows) times, and about eight
    segments plus a logarithm of their rows remain at most.
    """
    if len(segments) <= MOST_SEGMENTS:
        return ()
    start, rows = len(segments) - 1, segments[-1].rows
    while start > 0 and (segments[start - 1].rows <= 2 * rows or start > MOST_SEGMENTS):
        start -= 1
        rows += segments[start].rows
    return segments[start:] if start < len(segments) - 1 else ()


def to_rewrite(segments: Sequence[Segment], budget: int | None = None) -> list[tuple[Segment, int]]:
    """The first of some moved segments that the budget allows to rewrite, each with a number of rows.

    It is that of the rows of its file, from its start on, that are looked at: for the last segment it may be
    less than all, since a file may be larger than the budget. If there are too many, the budget is exceeded.
    """
    found: list[tuple[Segment, int]] = []
    whole = BUDGET if budget is None else budget
    left = float(whole)
    for each in segments:
        rows = each.held - each.start
        cost = max(1.0, each.living_bytes, _SEARCH * each.bytes * rows / each.held)
        if cost <= left or len(segments) - len(found) > MOST_MOVED:
            found.append((each, rows))
            left -= cost
            continue
        if not found or left >= _LEAST_PART * whole:
            found.append((each, max(1, int(rows * left / cost))))
        break
    return found
