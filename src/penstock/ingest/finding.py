"""Where a stream belongs and with which sequence number it goes on, asked of a gate or of a controller."""

from collections.abc import Sequence

from penstock.ingest.access import Access
from penstock.ingest.address import Address
from penstock.ingest.dial import Line
from penstock.ingest.lane import Lane

__all__ = ["Finder"]


class Finder:
    """Asks the address that the user gave; it finds out whether a gate or a controller listens there."""

    def __init__(self, address: str, access: Access) -> None:
        self.address = Address.parse(address)
        self._line = Line(self.address, access)
        self._controller: bool | None = None

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
        """The number after the last row held of a stream; a controller asks all gates that may hold some."""
        return int(self._line.act("next", {"streams": [stream]})["next"][stream])

    def is_controller(self, address: str) -> bool:
        """Whether this is the controller that is asked here; does not ask."""
        return bool(self._controller) and address == str(self.address)

    def has_controller(self) -> bool:
        """Whether a controller listens; asked once."""
        if self._controller is None:
            self._controller = self._line.offers("where")
        return self._controller
