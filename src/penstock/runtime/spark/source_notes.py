"""What a source says of itself in the offset of an epoch, which Spark writes before the epoch runs.

A replay reads the same offset, so it knows the same. Only `ps.gates` says anything: a JSON object with the
name of its `stream`.
"""

import json
from dataclasses import dataclass

from penstock.state.storage import Location

__all__ = ["SourceNote", "source_notes"]

_SHOWN = 3


@dataclass(frozen=True)
class SourceNote:
    """Streams that a source expects and has had no tuple of, and gates of it that did not answer."""

    waiting: tuple[str, ...] = ()
    away: tuple[str, ...] = ()

    def __str__(self) -> str:
        away = f"no answer from gate {', '.join(self.away)}" if self.away else ""
        more = f" and {len(self.waiting) - _SHOWN:,} more" if len(self.waiting) > _SHOWN else ""
        names = f"no tuple yet of {', '.join(self.waiting[:_SHOWN])}{more}" if self.waiting else ""
        return "; ".join(each for each in (away, names) if each)


def source_notes(folder: Location, epoch: int) -> dict[str, SourceNote]:
    """The notes of the sources of an epoch, by the name of the stream; `folder` is Spark's checkpoint."""
    offsets = folder / "offsets"
    if not offsets.has(str(epoch)):
        return {}
    found = {}
    for line in offsets.read(str(epoch)).decode().splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # the version, or the offset of a source with a format of its own
        if isinstance(said, dict) and isinstance(said.get("stream"), str):
            found[said["stream"]] = SourceNote(tuple(said.get("waiting", ())), tuple(said.get("away", ())))
    return found
