"""What changed between two kept epochs: segments that came and went, rows, bytes, frontiers."""

from dataclasses import dataclass

from penstock.runtime.records import Manifest, StageRecord
from penstock.runtime.segments import Segment

__all__ = ["ChannelChange", "StageChange", "compare"]


@dataclass(frozen=True)
class ChannelChange:
    """One channel: names of segments, and by how much rows and bytes grew."""

    channel: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class StageChange:
    """One stage: its channels, and how far its ports had come before and after, in microseconds."""

    stage: int
    channels: tuple[ChannelChange, ...]
    frontiers: tuple[tuple[int | None, int | None], ...]


def compare(before: Manifest, after: Manifest) -> list[StageChange]:
    """The change of every stage; a channel that is only in one of them has nothing in the other."""
    return [
        _stage(number, *pair) for number, pair in enumerate(zip(before.stages, after.stages, strict=True))
    ]


def _stage(number: int, before: StageRecord, after: StageRecord) -> StageChange:
    width = max(len(before.channels), len(after.channels))
    old, new = (each.channels + ((),) * (width - len(each.channels)) for each in (before, after))
    ports = len(after.frontiers) or len(before.frontiers)
    then = before.frontiers or (None,) * ports
    return StageChange(
        number,
        tuple(_channel(place, *pair) for place, pair in enumerate(zip(old, new, strict=True))),
        tuple(zip(then, after.frontiers or then, strict=True)),
    )


def _channel(number: int, before: tuple[Segment, ...], after: tuple[Segment, ...]) -> ChannelChange:
    old, new = ({each.name: each for each in segments} for segments in (before, after))
    return ChannelChange(
        number,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        kept=len(old.keys() & new.keys()),
        rows=_rows(after) - _rows(before),
        bytes=sum(each.bytes for each in after) - sum(each.bytes for each in before),
    )


def _rows(segments: tuple[Segment, ...]) -> int:
    """Rows of state; marks are about rows of other segments."""
    return sum(each.rows for each in segments if not each.part.endswith(" marks"))
