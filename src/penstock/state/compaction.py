"""Chooses segments to merge, so that a channel reads few files however long it runs."""

from collections.abc import Sequence

from penstock.state.segments import Segment

__all__ = ["MOST_SEGMENTS", "hollow", "to_merge"]

MOST_SEGMENTS = 8
# A segment is rewritten when the share of its rows that still live here is below this.
_WORTH_MASKING = 0.5


def hollow(segment: Segment) -> bool:
    """Whether most rows of its file have moved to other channels."""
    return bool(segment.mask) and segment.rows < _WORTH_MASKING * segment.held


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
