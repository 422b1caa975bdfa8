"""A gate makes itself known to a controller, again and again; it serves also while the controller is away."""

import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from pyarrow import flight

from penstock.ingest.wire import as_json, parse_address

if TYPE_CHECKING:
    from penstock.ingest.gate import Gate

__all__ = ["Heartbeat"]

CONTROLLER_PORT: Final = 7300
_EVERY: Final = 1.0
_TIMEOUT: Final = 2.0


class Heartbeat:
    """Registers a gate every second, in a thread of its own."""

    def __init__(self, controller: str, gate: "Gate", options: dict[str, Any] | None = None) -> None:
        self._gate = gate
        self._host, self._port = parse_address(controller, CONTROLLER_PORT)
        self._options = options or {}
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
            with flight.connect(f"grpc://{self._host}:{self._port}", **self._options) as client:
                options = flight.FlightCallOptions(timeout=_TIMEOUT)
                list(client.do_action(flight.Action("register", as_json(message)), options))
        except (flight.FlightError, OSError) as error:
            if not self._away:
                sys.stderr.write(
                    f"the controller does not answer ({str(error)[:120]}); trying again each second\n"
                )
            self._away = True
        else:
            self._away = False
