"""Looks at every gate, again and again: which streams it holds, how far they are, how fast they grow."""

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from penstock.errors import IngestError
from penstock.ingest.access import Access
from penstock.ingest.dial import Line
from penstock.ingest.roster import Roster

__all__ = ["Poller"]

CALL_S: Final = 2.0
INLETS_EVERY_S: Final = 10.0


@dataclass
class _View:
    """What was seen of a gate so far: its inlets, and where its index of each goes on."""

    line: Line
    inlets: list[str] = field(default_factory=list)
    inlets_due: float = 0.0
    since: dict[str, str] = field(default_factory=dict)


class Poller:
    """A thread that looks at all gates every `seconds` seconds; a gate is asked only for what has changed."""

    def __init__(self, roster: Roster, lock: threading.Lock, access: Access, seconds: float) -> None:
        self._roster = roster
        self._lock = lock
        self._access = access
        self._seconds = seconds
        self._views: dict[str, _View] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-directory-poll", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after the call under way."""
        self._stop.set()
        self._thread.join()
        for view in self._views.values():
            view.line.close()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            now = time.time()
            with self._lock:
                gates = [each.address for each in self._roster.gates()]
                there = [each for each in gates if not self._roster.is_away(each, now)]
            for gate in there:
                try:
                    self._look(gate)
                except IngestError:
                    # A gate that does not answer is away as soon as it has not registered for long enough.
                    self._views.pop(gate).line.close()

    def _look(self, gate: str) -> None:
        view = self._views.setdefault(gate, _View(Line(gate, self._access)))
        if time.monotonic() >= view.inlets_due:
            view.inlets = list(view.line.act("status", timeout=CALL_S)["inlets"])
            view.inlets_due = time.monotonic() + INLETS_EVERY_S
        with self._lock:
            inlets = sorted({*view.inlets, *self._roster.inlets()})
        for inlet in inlets:
            ticket = {"op": "index", "inlet": inlet, "since": view.since.get(inlet)}
            index = view.line.table(ticket, CALL_S)
            generation = (index.schema.metadata or {}).get(b"generation")
            if generation is not None:
                view.since[inlet] = generation.decode()
            with self._lock:
                self._roster.observe(gate, inlet, index, time.time())
