"""The directory: gates register, clients ask where to go; what it told survives a restart (000, section 3.3).

A gate that has been silent for `away_seconds` is away: it gets no streams, and those that it had go elsewhere
when their clients ask. The rows that it acknowledged stay with it; whoever reads them waits for it.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from penstock.errors import BadMessage, IngestError, NoGate
from penstock.ingest.access import TLS, Access
from penstock.ingest.address import CONTROLLER_PORT, Address
from penstock.ingest.dial import Line
from penstock.ingest.directory_server import DirectoryServer
from penstock.ingest.polling import Poller
from penstock.ingest.roster import Roster
from penstock.ingest.security import OPEN, Security
from penstock.ingest.wire import check_stream

__all__ = ["Directory"]


class Directory:
    """A directory that listens at `address` and keeps its state in `folder` (without one, in memory).

    `token` and `tls` are those that it calls gates with. Port 0 takes any free one; `address` then tells it.

    >>> with Directory("127.0.0.1:0") as directory:
    ...     directory.register("127.0.0.1:7400")
    ...     directory.where({"reports/v1": None})
    {'reports/v1': '127.0.0.1:7400'}
    """

    def __init__(  # noqa: PLR0913 -- each is one setting with a default
        self,
        address: str = f"127.0.0.1:{CONTROLLER_PORT}",
        folder: str | Path | None = None,
        *,
        away_seconds: float = 5.0,
        poll_seconds: float = 1.0,
        security: Security = OPEN,
        token: str | None = None,
        tls: TLS | None = None,
    ) -> None:
        wanted = Address.parse(address, CONTROLLER_PORT)
        security.check(wanted.host)
        self._access = Access(tls, token)
        self._lock = threading.Lock()
        self._roster = Roster(None if folder is None else Path(folder), away_seconds, time.time())
        self._poller = Poller(self._roster, self._lock, self._access, poll_seconds)
        self._server = DirectoryServer(self, wanted, security)
        self.address = str(Address(wanted.host, self._server.port))
        self.started = time.time()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Begin to look at gates; calls are answered from the beginning."""
        self._poller.start()
        return self

    def stop(self) -> None:
        """End; what was told is on disk."""
        self._server.shutdown()
        self._poller.stop()
        self._roster.close()

    def register(self, gate: str, info: Mapping[str, Any] | None = None) -> None:
        """A gate says that it is there; it does so again well within `away_seconds`."""
        with self._lock:
            self._roster.register(str(Address.parse(gate)), dict(info or {}), time.time())

    def where(self, streams: Mapping[str, Mapping[str, Any] | None]) -> dict[str, str]:
        """The gate of each stream; new ones get one, by the metadata they come with."""
        for stream in streams:
            check_stream(stream)
        with self._lock:
            return self._roster.where(streams, time.time())

    def next_sequences(self, streams: list[str]) -> dict[str, int]:
        """For each stream the number after the last row that any gate holds.

        Raises if a gate that may hold some is away: its rows could be more than the others know of.
        """
        with self._lock:
            holders = {each: self._roster.holders(each) for each in streams}
        known = dict.fromkeys(streams, 0)
        for gate in sorted(set().union(*holders.values())):
            asked = [each for each in streams if gate in holders[each]]
            try:
                with Line(gate, self._access) as line:
                    held = line.act("next", {"streams": asked})["next"]
            except IngestError as error:
                raise NoGate(
                    f"gate {gate}, which may hold rows of {asked[0]!r}, does not answer ({error}); start it "
                    "again, or `forget` it, or give the client its sequence"
                ) from None
            for stream in asked:
                known[stream] = max(known[stream], held[stream])
        return known

    def redirect(self, streams: list[str], to: str) -> dict[str, list[str]]:
        """Move streams to a gate; tells the gates they are at, which tell the clients.

        Gives back the streams that were moved and those whose gate did not answer: their clients come to ask.
        """
        with self._lock:
            leaving = self._roster.move(streams, to, time.time())
        moved, unreached = [], []
        for gate, group in leaving.items():
            try:
                with Line(gate, self._access) as line:
                    line.act("redirect", {"streams": group, "to": to})
                moved += group
            except IngestError:
                unreached += group
        return {"moved": moved, "unreached": unreached}

    def gates(self) -> list[dict[str, Any]]:
        """All gates: address, whether it is away, since when it was not heard of, streams, their rate."""
        now = time.time()
        with self._lock:
            streams = self._roster.streams()
            return [
                {
                    "gate": each.address,
                    "away": self._roster.is_away(each.address, now),
                    "silent_seconds": round(now - each.seen, 3),
                    "streams": sum(stream.gate == each.address for stream in streams),
                    "rate": round(sum(s.rate or 0.0 for s in streams if s.gate == each.address), 3),
                    "info": dict(each.info),
                }
                for each in self._roster.gates()
            ]

    def streams(self, inlet: str | None = None) -> list[dict[str, Any]]:
        """All streams, or those of an inlet: gate, rate, frontier, next sequence seen, metadata."""
        with self._lock:
            return [
                {
                    "stream": each.stream,
                    "gate": each.gate,
                    "rate": each.rate,
                    "frontier": each.frontier,
                    "next": each.high,
                    "metadata": dict(each.metadata or {}),
                }
                for each in self._roster.streams(inlet)
            ]

    def forget(self, *, gate: str | None = None, streams: list[str] | None = None) -> None:
        """Forget a gate that will not come back, with whatever it held, or streams that have ended."""
        if gate is None and not streams:
            raise BadMessage("nothing to forget; give a gate or streams")
        with self._lock:
            if gate is not None:
                self._roster.forget_gate(gate)
            self._roster.forget_streams(streams or [])
