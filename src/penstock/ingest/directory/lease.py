"""Which controller decides: terms with growing numbers in the folder of its state, and a beat while it lives.

    terms/000000000003.json        who took the third term: host, process, user, when, its address
    terms/000000000003.released    it has ended in order
    terms/beat                     rewritten every second by the one that decides
    terms/name                     the name of this folder, made once

**Why a late controller cannot do harm.** What it decides is told only after this order: write it durably, see
that no later term has begun (`check`). A successor begins its term, then reads the state. So it knows of all
that was ever told, however long its predecessor was stopped in between, and on whichever clock. Gates refuse
orders of earlier terms.

So the question whether a controller is alive only spares a takeover by mistake. A process that is gone is
seen at once on its host. Elsewhere, and for one that is stopped, what counts is that the beat does not change
for a while, on the clock of the one that waits.
"""

import logging
import os
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from penstock import durable, threads
from penstock.durable import Purpose
from penstock.errors import BadGate, CheckpointError, Superseded
from penstock.state.owner import Owner
from penstock.state.sealed import load, seal
from penstock.state.storage import Location

__all__ = ["LEASE_S", "Lease", "stand_by"]

LEASE_S: Final = 5.0
"""A controller whose beat has not changed for so long counts as gone."""
_BEAT_S: Final = 1.0
_LOOK_S: Final = 0.2
_LOGGER = logging.getLogger("penstock.controller")


@dataclass
class Lease:
    """The right of this process to decide, until a later term begins."""

    folder: Location
    number: int
    name: str
    """The name of the folder: terms of different ones have nothing to do with each other."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @classmethod
    def take(cls, state: Path, address: str, *, from_: int | None = None) -> "Lease":
        """Begin the next term; refused while another controller lives, unless it is the one of term `from_`.

        A stand-by has seen that the beat of that one stands still.
        """
        folder = Location.of(state / "terms")
        folder.make(Purpose.OWNER)
        last = _last(folder)
        holder = _holder(folder, last)
        if holder is not None and last != from_:
            raise BadGate(
                f"another controller uses the folder {state}: {holder}; stop it, or give this one a "
                "folder of its own"
            )
        record = seal(asdict(Owner.here(last + 1, address)))
        try:
            folder.create(f"{last + 1:012d}.json", record, Purpose.OWNER)
        except FileExistsError:
            raise BadGate(
                f"another controller took the folder {state} at this moment; stop it, or give this one a "
                "folder of its own"
            ) from None
        return cls(folder, last + 1, _name(folder))

    @property
    def term(self) -> str:
        """The term as gates hear it."""
        return f"{self.name}:{self.number}"

    def check(self) -> None:
        """Raise if a later term has begun; costs a look at a few names."""
        if _last(self.folder) > self.number:
            raise Superseded(
                f"another controller has taken over the folder {self.folder.uri}; this one, of term "
                f"{self.number}, gives no answers and no orders any more"
            )

    def start(self) -> None:
        """Begin to beat."""
        self._thread = threads.service("penstock-lease", self._beat, _LOGGER)
        self._thread.start()

    def release(self) -> None:
        """Let the next one begin at once."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.folder.write(f"{self.number:012d}.released", b"", Purpose.OWNER)
        for name in self.folder.names():
            if name[:12].isdecimal() and int(name[:12]) < self.number:
                self.folder.delete(name, Purpose.OWNER)

    def _beat(self) -> None:
        place, count = Path(self.folder.path) / "beat", 0
        while True:
            count += 1
            try:
                self.check()
                fresh = place.with_name(f".beat-{self.number}")
                with durable.writing(fresh, Purpose.BEAT):
                    fresh.write_text(f"{self.number} {count}")
                durable.rename(fresh, place, Purpose.BEAT)
            except Superseded:
                return
            except OSError as error:
                _LOGGER.warning("the beat of this controller cannot be written: %s", error)
            if self._stop.wait(_BEAT_S):
                return


def stand_by(state: Path, ended: threading.Event, seconds: float = LEASE_S) -> int | None:
    """Wait until no controller decides; the last term, or None if this process is to end before."""
    folder = Location.of(state / "terms")
    folder.make(Purpose.OWNER)
    seen: tuple[int, str] | None = None
    since, told = time.monotonic(), 0
    while not ended.is_set():
        last = _last(folder)
        holder = _holder(folder, last)
        if holder is None:
            return last
        if last != told:
            told = last
            _LOGGER.info("standing by for the controller at %s: %s", holder.run, holder)
        now = last, _read_beat(folder)
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since >= seconds:
            _LOGGER.warning("the controller at %s has not beaten for %g s", holder.run, seconds)
            return last
        ended.wait(_LOOK_S)
    return None


def _read_beat(folder: Location) -> str:
    try:
        return (Path(folder.path) / "beat").read_text()
    except OSError:
        return ""


def _last(folder: Location) -> int:
    listed = os.listdir(folder.path)  # noqa: PTH208 -- names alone, and it is asked with every answer
    names = (name.removesuffix(".json") for name in listed if name.endswith(".json"))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _holder(folder: Location, number: int) -> Owner | None:
    """Who has a term, as far as can be known from here; None if nobody does."""
    if not number or folder.has(f"{number:012d}.released"):
        return None
    try:
        said: dict[str, Any] = load(folder, f"{number:012d}.json")
    except (CheckpointError, OSError) as error:
        raise BadGate(
            f"the record {folder.uri}/{number:012d}.json cannot be read ({error}); if no controller runs, "
            "delete it"
        ) from error
    owner = Owner(**said)
    return owner if owner.alive else None


def _name(folder: Location) -> str:
    if not folder.has("name"):
        with suppress(FileExistsError):
            folder.create("name", uuid4().hex.encode(), Purpose.OWNER)
    return folder.read("name").decode()
