"""A gate: streams enter here over Arrow Flight, are made durable, then acknowledged, and are read from here.

Whatever one client sends, the others are served. A batch that was acknowledged is there after any end.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyarrow import flight

from penstock.errors import BadMessage, GateError, NotAllowed, TooMany
from penstock.ingest import actions, reading
from penstock.ingest.answers import Answers
from penstock.ingest.call import Call
from penstock.ingest.intake import Intake, refusal
from penstock.ingest.limits import Limits
from penstock.ingest.security import OPEN, Security
from penstock.ingest.serving import told
from penstock.ingest.steering import drain
from penstock.ingest.wire import GATE_PORT, PROTOCOL, as_json, from_json, parse_address, parse_push

__all__ = ["Gate"]


class Gate:
    """A running gate; `stop` ends it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Gate("127.0.0.1:0", folder) as gate:
    ...     gate.address.startswith("127.0.0.1:")
    True
    """

    def __init__(
        self,
        address: str = f"127.0.0.1:{GATE_PORT}",
        folder: str | Path = "gate",
        *,
        limits: Limits | None = None,
        security: Security = OPEN,
        advertise: str | None = None,
    ) -> None:
        host, port = parse_address(address)
        security.check(host)
        pa.array([0])  # Arrow imports pandas with its first array: now, not in front of clients
        self.started = time.time()
        self.intake = Intake(Path(folder), limits or Limits())
        self._server = _Server(self, host, port, security)
        named = f"[{host}]" if ":" in host else host
        self.address = advertise or f"{named}:{self._server.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, patience: float = 5.0, drain_to: str | None = None) -> None:
        """Let nothing more in, make everything durable, answer it and close.

        Clients are sent to `drain_to` or told to wait. Pushes that are still open after `patience` seconds
        are cut: what they sent and was not answered they send again.
        """
        drain(self.intake, drain_to)
        ending = threading.Thread(target=self._server.shutdown, daemon=True)
        ending.start()
        ending.join(patience)
        self.intake.close()


class _Server(flight.FlightServerBase):  # type: ignore[misc] # Flight is untyped
    """Flight's calls, translated; every error of ours becomes one of Flight's with the same words."""

    def __init__(self, gate: Gate, host: str, port: int, security: Security) -> None:
        super().__init__((host, port), **security.server_options())
        self._gate, self._intake, self._security = gate, gate.intake, security
        self._open = {"calls": 0, "reads": 0}
        self._lock = threading.Lock()

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        with told(), self._counted("calls"):
            asked = from_json(descriptor.command, "the descriptor of a push")
            if asked.get("op") != "push" or asked.get("protocol") != PROTOCOL:
                raise BadMessage(
                    f'descriptor {str(asked)[:80]}; give {{"op": "push", "protocol": {PROTOCOL}}}'
                )
            rights = self._security.rights(context)
            call = Call(context.peer(), reader.schema, Answers(writer.write), rights.may_push)
            try:
                self._serve(call, reader)
            finally:
                self._intake.leave(call)

    def _serve(self, call: Call, reader: Any) -> None:
        while not call.answers.broken:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return
            except (flight.FlightError, pa.ArrowException):
                return  # the client is gone; what it sent and was not answered it sends again
            try:
                message = parse_push(chunk.app_metadata)
                if chunk.data is None:
                    raise BadMessage(
                        f"a message of stream {message.stream!r} without rows; send a record batch"
                    )
            except GateError as error:
                call.answers.say(None, refusal(error))
            else:
                self._intake.push(call, message, chunk.data)

    def do_get(self, context: Any, ticket: Any) -> Any:
        with told():
            asked = from_json(ticket.ticket, "the ticket")
            inlet = asked.get("inlet")
            if not isinstance(inlet, str):
                raise BadMessage(f"inlet is {str(inlet)[:80]!r}; name the inlet to read")
            rights = self._security.rights(context)
            if not rights.may_read_some(inlet):
                raise NotAllowed(
                    f"this token may not read inlet {inlet!r}; use one whose read rights cover it"
                )
            if asked.get("op") == "index":
                since = asked.get("since")
                return flight.RecordBatchStream(
                    reading.index(self._intake, inlet, since and str(since), rights)
                )
            if asked.get("op") == "read":
                column = asked.get("stream_column")
                together = asked.get("together")
                schema, batches = reading.rows(
                    self._intake,
                    inlet,
                    asked.get("ranges"),
                    column,
                    rights,
                    together=together if isinstance(together, int) and together > 0 else None,
                )
                return flight.GeneratorStream(schema, self._counted_reads(batches))
            raise BadMessage(f"op {str(asked.get('op'))[:40]!r}; give 'read' or 'index'")

    def _counted_reads(self, batches: Iterator[Any]) -> Iterator[Any]:
        with told(), self._counted("reads"):
            yield from batches

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        with told():
            asked = from_json(action.body and action.body.to_pybytes(), f"the body of {action.type!r}")
            return [as_json(actions.act(self._gate, action.type, asked, self._security.rights(context)))]

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        with told():
            self._security.rights(context)
            return [(name, about) for name, about in actions.ABOUT.items()]

    @contextmanager
    def _counted(self, kind: str) -> Iterator[None]:
        limit = getattr(self._intake.limits, kind)
        with self._lock:
            if self._open[kind] >= limit:
                raise TooMany(f"{limit} {kind} are open, the limit of this gate; use fewer, or try later")
            self._open[kind] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[kind] -= 1
