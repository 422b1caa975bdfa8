"""The readers of a gate: how far each has committed, and when it was heard of.

Rows are kept until every reader of their inlet has committed them. A reader that says nothing for long may be
one that nobody starts again: it is named before what is kept for it fills the disk. Time is an argument.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import TooMany
from penstock.ingest.wire.protocol import Committed

__all__ = ["Readers", "remedy"]

Name = tuple[str, str]
"""Inlet and reader."""


def remedy(inlet: str, reader: str, run: str | None) -> str:
    """What to do about a reader that keeps rows from being deleted.

    >>> remedy("reports", "5f0c", "state/traffic")
    "start its run 'state/traffic' again; if it does not come back: penstock gates forget-reader reports:5f0c"
    """
    called = "" if run is None else f" {run!r}"
    return (
        f"start its run{called} again; if it does not come back: penstock gates forget-reader "
        f"{inlet}:{reader}"
    )


@dataclass(slots=True)
class Readers:
    """All readers by inlet and name; after a start nothing is deleted before each of them has spoken."""

    positions: dict[Name, dict[str, int]]
    runs: dict[Name, str]
    """What people call a reader, where it has said so."""
    listed: bool
    """Whether it is known which readers there are: a controller may know more."""
    most: int
    _heard: dict[Name, float] = field(default_factory=dict)

    def knows(self, event: Committed) -> bool:
        """Whether a reader is on disk under the name of its run; a new one may be one too many."""
        name = event.inlet, event.reader
        if name not in self.positions and sum(each == event.inlet for each, _ in self.positions) >= self.most:
            raise TooMany(
                f"inlet {event.inlet!r} has {self.most} readers, the limit of this gate; forget some "
                "that do not come back"
            )
        return name in self.positions and event.run in {None, self.runs.get(name)}

    def add(self, inlet: str, reader: str, run: str | None) -> None:
        """A reader is on disk."""
        self.positions.setdefault((inlet, reader), {})
        if run is not None:
            self.runs[inlet, reader] = run

    def committed(self, event: Committed, now: float) -> None:
        """A reader that is known never asks again for rows below its positions."""
        known = self.positions[event.inlet, event.reader]
        self._heard[event.inlet, event.reader] = now
        for stream, upto in event.upto.items():
            known[stream] = max(upto, known.get(stream, 0))

    def forget(self, names: Iterable[Name]) -> list[Name]:
        """Wait no more for these readers; those that were known."""
        gone = [each for each in names if each in self.positions]
        for each in gone:
            del self.positions[each]
            self.runs.pop(each, None)
            self._heard.pop(each, None)
        return gone

    def of(self, inlet: str) -> list[Name]:
        """The readers of an inlet."""
        return sorted(each for each in self.positions if each[0] == inlet)

    def read_upto(self, stream: str) -> int:
        """How far any reader has read a stream."""
        return max((known.get(stream, 0) for known in self.positions.values()), default=0)

    def silent(self, now: float, least: float) -> list[tuple[Name, float]]:
        """Readers that have said nothing for `least` seconds, the longest silence first.

        Of one that has not spoken since the gate started, the silence begins with the first look.
        """
        since = {each: self._heard.setdefault(each, now) for each in list(self.positions)}
        found = [(each, now - at) for each, at in since.items() if now - at >= least]
        return sorted(found, key=lambda each: (-each[1], each[0]))

    def described(self) -> list[Mapping[str, Any]]:
        """The readers for people."""
        return [
            {"inlet": inlet, "reader": reader, "run": self.runs.get((inlet, reader))}
            for inlet, reader in sorted(self.positions)
        ]
