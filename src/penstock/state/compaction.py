"""Chooses segments to merge, so that a channel reads few files however long it runs, and no epoch pays much.

Segments that came with a move are left out at first: a channel has a budget of bytes an epoch to rewrite the
rows that are its own, so that no epoch after a move takes much longer than others. What it writes in such an
epoch is a large segment, of which there may be more than of small ones. When these are too many, a few of
them are merged, at most about a twelfth of all rows.
"""

from collections.abc import Sequence

from penstock.state.segments import Segment

__all__ = ["BUDGET", "MOST_LARGE", "MOST_MOVED", "MOST_SEGMENTS", "budget", "to_merge", "to_rewrite"]

MOST_SEGMENTS = 8
MOST_LARGE = 32
"""The most segments of a table in a channel that are old and large, or older than such a one."""
MOST_MOVED = 256
"""The most moved segments that a table of a channel keeps, whatever it costs: each move may multiply them."""
BUDGET = 2 * 2**20
"""Bytes of moved rows that a table of a channel rewrites in an epoch; for much state, a part of it."""

_PART = 1 / 64
# A segment is large from this share of the budget on.
_LARGE = 0.5
# To find the rows of a channel in a file costs so much of what it costs to write all of them.
_SEARCH = 0.1
# At most so many large segments are merged at a time, and this part of all rows, if there are such.
_MOST_NEIGHBOURS = 4
_MOST_MERGED = 1 / 12
# A smaller part of the budget is not worth another file.
_LEAST_PART = 0.25


def to_merge(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Neighbours among the segments of one level, oldest first, that are worth merging; often none.

    If there are more than eight after the last large one, the newest are merged together with every older
    one of them that is at most twice as large as all newer ones together. Each row is rewritten O(log rows)
    times, and about eight segments plus a logarithm of their rows remain at most. If there are too many large
    ones, a few neighbours among them are merged.
    """
    large = [place for place, each in enumerate(segments) if each.living_bytes >= _LARGE * BUDGET]
    old = large[-1] + 1 if large else 0
    return _newest(segments[old:]) or (_most_alike(segments[:old]) if old > MOST_LARGE else ())


def _most_alike(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Two to four neighbours of similar size that are a small part of all rows; else the two smallest.

    Of segments alike in size each row is rewritten a few times in all; to add small ones to a large one again
    and again would rewrite that one each time.
    """
    rows = [each.rows for each in segments]
    most = _MOST_MERGED * sum(rows)
    runs = [
        (start, start + count)
        for count in range(2, _MOST_NEIGHBOURS + 1)
        for start in range(len(rows) - count + 1)
    ]
    few = [run for run in runs if sum(rows[slice(*run)]) <= most]
    if few:
        start, stop = min(few, key=lambda run: max(rows[slice(*run)]) / max(1, sum(rows[slice(*run)])))
    else:
        start, stop = min(runs, key=lambda run: sum(rows[slice(*run)]))
    return segments[start:stop]


def _newest(segments: Sequence[Segment]) -> Sequence[Segment]:
    if len(segments) <= MOST_SEGMENTS:
        return ()
    start, rows = len(segments) - 1, segments[-1].rows
    while start > 0 and (segments[start - 1].rows <= 2 * rows or start > MOST_SEGMENTS):
        start -= 1
        rows += segments[start].rows
    return segments[start:] if start < len(segments) - 1 else ()


def budget(segments: Sequence[Segment]) -> float:
    """The bytes of moved rows that a channel with these segments rewrites in an epoch."""
    return max(float(BUDGET), _PART * sum(each.living_bytes for each in segments))


def to_rewrite(segments: Sequence[Segment], allowed: float) -> list[tuple[Segment, int]]:
    """The first of some moved segments that a budget allows to rewrite, each with a number of rows.

    It is that of the rows of its file, from its start on, that are looked at: for the last segment it may be
    less than all, since a file may be larger than the budget. If there are too many, the budget is exceeded.
    """
    found: list[tuple[Segment, int]] = []
    left = allowed
    for each in segments:
        rows = each.held - each.start
        cost = max(1.0, each.living_bytes, _SEARCH * each.bytes * rows / each.held)
        if cost <= left or len(segments) - len(found) > MOST_MOVED:
            found.append((each, rows))
            left -= cost
            continue
        if not found or left >= _LEAST_PART * allowed:
            found.append((each, max(1, int(rows * left / cost))))
        break
    return found
