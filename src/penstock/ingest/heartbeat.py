"""A gate makes itself known to a controller, again and again; it serves also while the controller is away."""

import sys
import threading
from typing import TYPE_CHECKING, Final

from penstock.errors import IngestError
from penstock.ingest.access import Access
from penstock.ingest.address import CONTROLLER_PORT, Address
from penstock.ingest.dial import Line

if TYPE_CHECKING:
    from penstock.ingest.gate import Gate

__all__ = ["Heartbeat"]

_EVERY: Final = 1.0
_TIMEOUT: Final = 2.0


class Heartbeat:
    """Registers a gate every second, in a thread of its own; by default with the token of PENSTOCK_TOKEN."""

    def __init__(self, controller: str, gate: "Gate", access: Access | None = None) -> None:
        self._gate = gate
        self._line = Line(Address.parse(controller, CONTROLLER_PORT), access)
        self._ended = threading.Event()
        self._away = False
        self._thread = threading.Thread(target=self._run, name="penstock-heartbeat", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Say for the last time that the gate is there, and that it takes no more."""
        self._ended.set()
        self._thread.join()
        self._register(draining=True)

    def _run(self) -> None:
        while True:
            self._register(draining=self._gate.intake.draining)
            if self._ended.wait(_EVERY):
                return

    def _register(self, *, draining: bool) -> None:
        intake = self._gate.intake
        message = {
            "gate": self._gate.address,
            "streams": len(intake.flows),
            "rows": intake.counts["rows"],
            "bytes": intake.counts["bytes"],
            "pending_bytes": intake.pending_bytes,
            "draining": draining,
        }
        try:
            self._line.act("register", message, _TIMEOUT)
        except IngestError as error:
            if not self._away:
                sys.stderr.write(
                    f"the gate is not registered ({str(error)[:200]}); trying again each second\n"
                )
            self._away = True
        else:
            self._away = False
