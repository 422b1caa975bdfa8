"""Which segments to merge, so that a channel reads few files whatever the length of the run."""

from collections.abc import Sequence

from penstock.runtime.segments import Segment

__all__ = ["MOST_SEGMENTS", "hollow", "to_merge"]

MOST_SEGMENTS = 8
# A segment of which fewer rows than this share live here is written anew.
_WORTH_MASKING = 0.5


def hollow(segment: Segment) -> bool:
    """Whether most rows of its file have moved to other channels."""
    return bool(segment.mask) and segment.rows < _WORTH_MASKING * segment.held


def to_merge(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The newest segments of one length, oldest first, that are worth merging into one; often none.

    When there are more than eight, the newest are merged together with every older one that is not
    more than twice as large as all after it. Each row is rewritten O(log rows) times, and at most
    about eight segments plus a logarithm of them remain.
    """
    if len(segments) <= MOST_SEGMENTS:
        return ()
    start, rows = len(segments) - 1, segments[-1].rows
    while start > 0 and (segments[start - 1].rows <= 2 * rows or start > MOST_SEGMENTS):
        start -= 1
        rows += segments[start].rows
    return segments[start:] if start < len(segments) - 1 else ()
