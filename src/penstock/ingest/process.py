"""A gate as a process of its own: ready, serving, and ending so that nothing acknowledged is lost."""

import os
import signal
import sys
import threading
from pathlib import Path

from penstock.ingest.access import TLS, Access
from penstock.ingest.gate import Gate
from penstock.ingest.heartbeat import Heartbeat
from penstock.ingest.limits import Limits
from penstock.ingest.security import Security

__all__ = ["run_gate"]


def run_gate(  # noqa: PLR0913 -- the options of the command
    address: str,
    folder: Path,
    limits: Limits,
    security: Security,
    *,
    controller: str | None = None,
    controller_tls: TLS | None = None,
    advertise: str | None = None,
) -> None:
    """Run a gate until SIGTERM or SIGINT; a line on standard output says that it is ready, and where."""
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    gate = Gate(address, folder, limits=limits, security=security, advertise=advertise)
    _tell_recovery(gate)
    heartbeat = Heartbeat(controller, gate, Access(controller_tls)) if controller else None
    sys.stdout.write(f"gate ready at {gate.address}\n")
    sys.stdout.flush()
    ended.wait()
    if heartbeat:
        heartbeat.leave()
    gate.stop(patience=5.0 if controller else 0.5, drain_to=controller)
    # Flight waits for pushes that are still open; what they sent is durable or was not answered.
    sys.stdout.flush()
    os._exit(0)


def _tell_recovery(gate: Gate) -> None:
    log = gate.intake.log
    if log.torn_bytes:
        sys.stderr.write(
            f"the end of the log was torn: {log.torn_bytes} bytes that were never acknowledged are cut off\n"
        )
    for damage in log.damage:
        sys.stderr.write(f"damaged log, set aside: {damage}\n")
