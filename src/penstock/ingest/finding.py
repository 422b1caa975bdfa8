"""Where a stream belongs and with which sequence number it goes on, asked of a gate or of a controller."""

import threading
import time
from collections.abc import Sequence
from typing import Final

from penstock.ingest.access import Access
from penstock.ingest.address import Address
from penstock.ingest.dial import Line
from penstock.ingest.holdings import next_sequences
from penstock.ingest.lane import Lane
from penstock.ingest.messages import inlet_of

__all__ = ["Finder"]

FRESH_S: Final = 1.0


class Finder:
    """Asks the address that the user gave; it finds out whether a gate or a controller listens there."""

    def __init__(self, address: str, access: Access) -> None:
        self.address = Address.parse(address)
        self._line = Line(self.address, access)
        self._controller: bool | None = None
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, dict[str, int]]] = {}

    def close(self) -> None:
        """Let go of the line."""
        self._line.close()

    def gates_of(self, lanes: Sequence[Lane]) -> dict[str, str]:
        """The gate of each stream.

        Without a controller, a stream whose gate fails tries that gate and the first one in turn: either will
        take it, and only the rows that the failed one has acknowledged wait for it to come back.
        """
        if not self.has_controller():
            home = str(self.address)
            return {each.stream: home if each.tries % 2 == 0 else each.gate or home for each in lanes}
        asked = [{"stream": lane.stream, "metadata": lane.metadata} for lane in lanes]
        gates: dict[str, str] = self._line.act("where", {"streams": asked})["gates"]
        return gates

    def next_sequence(self, stream: str) -> int:
        """The number after the last row held of a stream; an inlet's numbers are kept for one second."""
        if self.has_controller():
            return int(self._line.act("next", {"stream": stream})["next"])
        inlet = inlet_of(stream)
        with self._lock:
            asked, numbers = self._known.get(inlet, (0.0, {}))
            if time.monotonic() - asked > FRESH_S:
                numbers = next_sequences(self._line, inlet)
                self._known[inlet] = (time.monotonic(), numbers)
        return numbers.get(stream, 0)

    def forget(self, stream: str) -> None:
        """Ask anew the next time: the numbers of the stream's inlet have changed."""
        with self._lock:
            self._known.pop(inlet_of(stream), None)

    def has_controller(self) -> bool:
        """Whether a controller listens; asked once."""
        if self._controller is None:
            self._controller = self._line.offers("where")
        return self._controller
