"""A gate: streams enter here over Arrow Flight, are made durable, then acknowledged, and are read from here.

This file is the Flight service: pushes, reads and requests, and who may make them. What the gate decides is
in `state`; a batch that was acknowledged is there after any end.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
from pyarrow import flight

from penstock import threads
from penstock.errors import BadMessage, GateError, IngestError, NoGate, TooLarge
from penstock.ingest.gate import read_requests
from penstock.ingest.gate.forgotten import ForgottenReaders
from penstock.ingest.gate.measures import CpuMeter, stream_measures
from penstock.ingest.gate.shell import GateShell, OpenCall
from penstock.ingest.limits import Limits
from penstock.ingest.security.access import TERM_HEADER
from penstock.ingest.security.tokens import OPEN, Rights, Security
from penstock.ingest.slots import Slot, Slots
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.flight import GATE_PORT, Address, flight_errors, require
from penstock.ingest.wire.protocol import (
    GATE_REQUESTS,
    PROTOCOL,
    Committed,
    Declare,
    DeleteInlet,
    Done,
    Drain,
    Follow,
    ForgetReader,
    GateStatistics,
    GateStatisticsRequest,
    GateStatus,
    GateStatusRequest,
    IndexTicket,
    InletSchema,
    NextRequest,
    NextSequences,
    OpenPush,
    Push,
    RedirectStreams,
    Refusal,
    Resume,
    SchemaRequest,
    StoreSize,
    Suspend,
    decode_ticket,
    inlet_of,
)

__all__ = ["Gate"]

_LOGGER = logging.getLogger("penstock.gate")


class Gate:
    """A running gate; `stop` ends it.

    `died` is called if nothing can be made durable any more: every push is then refused, and the process
    should end. `accept_loss` opens a log of which it is not sure what was lost.
    With `awaits_readers` it deletes nothing before a controller has listed the readers (see `Heartbeat`).
    `give_up` are rows [low, high) of streams that are lost for good: it remembers that readers skip them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Gate("127.0.0.1:0", folder) as gate:
    ...     gate.address.startswith("127.0.0.1:")
    True
    """

    def __init__(  # noqa: PLR0913 -- each is one setting with a default
        self,
        address: str = f"127.0.0.1:{GATE_PORT}",
        folder: str | Path = "gate",
        *,
        limits: Limits | None = None,
        security: Security = OPEN,
        advertise: str | None = None,
        accept_loss: bool = False,
        died: Callable[[], None] | None = None,
        awaits_readers: bool = False,
        give_up: Sequence[tuple[str, int, int]] = (),
    ) -> None:
        wanted = Address.parse(address)
        security.check(wanted.host)
        pa.array([0])  # Arrow imports pandas with its first array: now, not in front of clients
        self.started, self.cpu = time.time(), CpuMeter()
        self.limits = limits or Limits()
        self.shell = GateShell(
            Path(folder),
            self.limits,
            died,
            accept_loss=accept_loss,
            awaits_readers=awaits_readers,
            give_up=give_up,
        )
        self.state, self.log = self.shell.state, self.shell.log
        self.forgotten = ForgottenReaders(self.state, self.log, self.limits)
        self.directory: Callable[[NextRequest], NextSequences] | None = None
        """Asks the controller of this gate, if it has one, who becomes the producer of a stream."""
        self.follow: Callable[[str], None] | None = None
        """Has it register with another controller."""
        self._server = GateServer(self, wanted, security)
        self.address = advertise or str(Address(wanted.host, self._server.port))
        _LOGGER.info("gate %s started on %s", self.address, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, patience: float = 5.0, drain_to: str | None = None) -> None:
        """Let nothing more in, make everything durable, answer it and close.

        Clients are sent to `drain_to` or told to wait. Pushes that are still open after `patience` seconds
        are cut: their clients send again what was not answered.
        """
        self.shell.control(Drain(drain_to))
        self.end_calls(patience)
        self.shell.close()
        _LOGGER.info("gate %s stopped", self.address)

    def end_calls(self, patience: float) -> None:
        """Take no more calls; what is open has `patience` seconds to get its answers."""
        ending = threads.service("penstock-shutdown", self._server.shutdown, _LOGGER)
        ending.start()
        ending.join(patience)


class GateServer(flight.FlightServerBase):  # type: ignore[misc] # Flight is untyped
    """Translates Flight's calls; every error of ours becomes one of Flight's with the same words."""

    def __init__(self, gate: Gate, address: Address, security: Security) -> None:
        options = security.server_options()
        options["middleware"] = {**options.get("middleware", {}), "term": _Terms()}
        super().__init__((address.host, address.port), **options)
        self._gate, self._security = gate, security
        limits = gate.limits
        self._pushes = Slots("pushes", limits.calls, limits.calls_per_token, limits.idle_seconds)
        self._reads = Slots("reads", limits.reads, limits.reads_per_token)
        self._requests = Slots("requests", limits.requests, limits.requests_per_token)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """A push: batches in, answers out, until the client ends it."""
        with flight_errors(), self._slot(self._pushes, context) as slot:
            OpenPush.decode(descriptor.command)
            rights, tenant = self._security.rights(context), self._security.tenant(context)
            schema = slot.wait_for(lambda: reader.schema)
            share = self._security.share(tenant)
            with self._gate.shell.call(schema, rights.may_push, writer.write, tenant, share) as call:
                _serve(call, reader, slot)

    def do_get(self, context: Any, ticket: Any) -> Any:
        """A read: the index of an inlet, or the rows of ranges."""
        with flight_errors(), self._slot(self._requests, context):
            self._check_size(len(ticket.ticket))
            asked = decode_ticket(ticket.ticket)
            rights = self._security.rights(context)
            require(rights.may_read_some(asked.inlet), f"read inlet {asked.inlet!r}")
            if isinstance(asked, IndexTicket):
                return flight.RecordBatchStream(read_requests.index(self._gate.log, asked, rights))
            schema, batches = read_requests.rows(self._gate.log, asked, rights, self._gate.limits.ranges)
            tenant = self._security.tenant(context)
            return flight.GeneratorStream(schema, self._counted_reads(batches, tenant))

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """A request and its answer."""
        with flight_errors(), self._slot(self._requests, context):
            self._check_size(action.body.size if action.body else 0)
            kind = GATE_REQUESTS.get(action.type)
            if kind is None:
                known = ", ".join(GATE_REQUESTS)
                raise BadMessage(f"no action {action.type[:40]!r}; the actions are: {known}")
            request = kind.decode(action.body and action.body.to_pybytes())
            rights = self._security.rights(context)
            term = context.get_middleware("term").term
            if term is not None:
                require(rights.administer, "give orders as a controller")
                self._gate.shell.obey(term)
            return [_ANSWERS[kind](self._gate, request, rights).encode()]

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Every request that a gate answers."""
        with flight_errors():
            self._security.rights(context)
            return [(name, kind.about()) for name, kind in GATE_REQUESTS.items()]

    def _counted_reads(self, batches: Iterator[Any], tenant: str | None) -> Iterator[Any]:
        with flight_errors(), self._reads.taken(tenant):
            yield from batches

    def _slot(self, slots: Slots, context: Any) -> AbstractContextManager[Slot]:
        return slots.taken(self._security.tenant(context), context.peer())

    def _check_size(self, size: int) -> None:
        most = self._gate.limits.request_bytes
        if size > most:
            raise TooLarge(f"a request of {size:,} bytes; send at most {most:,}")


class _Term(flight.ServerMiddleware):  # type: ignore[misc] # Flight is untyped
    def __init__(self, term: str | None) -> None:
        self.term = term


class _Terms(flight.ServerMiddlewareFactory):  # type: ignore[misc] # Flight is untyped
    """Which controller gives an order, if it is one."""

    def start_call(self, _: Any, headers: dict[str, list[Any]]) -> _Term:
        given = [each for name, values in headers.items() if name.lower() == TERM_HEADER for each in values]
        return _Term(str(given[0]) if len(given) == 1 else None)


def _serve(call: OpenCall, reader: Any, slot: Slot) -> None:
    while not call.writer.broken and not slot.lost:
        try:
            chunk = slot.wait_for(reader.read_chunk)
        except StopIteration:
            return
        except MemoryError as error:
            raise TooLarge(
                f"a message needs more memory than the gate has left ({error}); send fewer rows at once"
            ) from None
        except (flight.FlightError, pa.ArrowException):
            return  # the client is gone; it sends again what was not answered
        try:
            push = Push.decode(chunk.app_metadata)
            if chunk.data is None:
                raise BadMessage(f"a message of stream {push.stream!r} without rows; send a record batch")
        except GateError as error:
            call.writer.send(Refusal(type(error).__name__, str(error)))
        else:
            call.push(push, chunk.data)


# ---- requests ------------------------------------------------------------------------------------------


def _status(gate: Gate, _: GateStatusRequest, rights: Rights) -> Message:
    require(rights.administer, "look at the gate")
    state, log = gate.state, gate.log
    return GateStatus(
        gate=gate.address,
        protocol=PROTOCOL,
        started_ms=int(gate.started * 1000),
        draining=state.draining,
        trouble=state.trouble,
        pending_bytes=state.pending_bytes,
        limits=asdict(state.limits),
        log={
            "id": log.catalogue.log,
            "bytes": log.bytes,
            "segments": len(log.held.segments),
            "torn_bytes": log.torn_bytes,
            "damaged": [str(each) for each in log.damage],
            "given_up": {each: ranges for each, ranges in log.catalogue.given_up.items() if ranges},
            "discarded_segments": log.discarded,
        },
        inlets=tuple(sorted(state.schemas)),
        readers=tuple(dict(each) for each in state.readers.described()),
        streams={each: _stream_status(gate, each) for each in sorted({*log.held.streams, *state.streams})},
    )


def _stream_status(gate: Gate, stream: str) -> dict[str, Any]:
    known, held = gate.state.streams.get(stream), gate.log.held.streams.get(stream)
    return {
        "next": gate.state.next(stream),
        "ranges": held.positions.ranges() if held else [],
        "frontier": held.frontier if held else None,
        "bytes": held.bytes if held else 0,
        "last_ms": held.arrived if held else None,
        "connected": known is not None and known.call is not None,
        "suspended": known is not None and known.suspended,
        "redirected": known.redirected_to if known else None,
        "metadata": dict(gate.state.metadata.get(stream, {})),
    }


def _statistics(gate: Gate, _: GateStatisticsRequest, rights: Rights) -> Message:
    require(rights.administer, "look at the gate")
    state, now = gate.state, time.time()
    return GateStatistics(
        gate=gate.address,
        life=gate.log.boot,
        seconds=round(now - gate.started, 3),
        cpu_seconds=gate.cpu.seconds(),
        counts=dict(state.counts),
        groups=gate.log.groups,
        sync_seconds=round(gate.log.sync_seconds, 3),
        pending_bytes=state.pending_bytes,
        store_bytes=gate.log.bytes,
        streams=stream_measures(state, gate.log, now),
    )


def _next(gate: Gate, request: NextRequest, rights: Rights) -> Message:
    for each in request.streams:
        if request.claim:
            require(rights.may_push(each), f"push to stream {each!r}")
        require(rights.may_push(each) or rights.may_read(each), f"ask for stream {each!r}")
    if request.producers is not None:
        require(rights.administer, "say who the producers of streams are")
    if request.claim and gate.directory is not None:
        return _claimed(gate, request, gate.directory)
    return _replied(gate.shell.control(request))


def _claimed(gate: Gate, request: NextRequest, directory: Callable[[NextRequest], NextSequences]) -> Message:
    """Let the controller give the numbers of producers, since other gates have to know them too."""
    try:
        known = directory(request)
    except IngestError as error:
        raise NoGate(
            f"the controller of this gate, which knows the producers of all gates, does not answer "
            f"({error}); start it, then try again"
        ) from None
    own = _replied(gate.shell.control(replace(request, claim=False, producers=known.producers)))
    assert isinstance(own, NextSequences), "the state answers a question for the next sequence"
    return replace(known, next={each: max(known.next[each], own.next[each]) for each in request.streams})


def _follow(gate: Gate, request: Follow, rights: Rights) -> Message:
    require(rights.administer, "choose the controller of the gate")
    if gate.follow is None:
        raise NoGate(f"gate {gate.address} has no controller; start it with --controller")
    gate.follow(request.controller)
    return Done()


def _schema(gate: Gate, request: SchemaRequest, rights: Rights) -> Message:
    require(rights.may_read_some(request.inlet), f"read inlet {request.inlet!r}")
    return InletSchema.of(request.inlet, gate.log.catalogue.schema(request.inlet))


def _committed(gate: Gate, request: Committed, rights: Rights) -> Message:
    require(rights.may_commit_some(request.inlet), f"commit rows of inlet {request.inlet!r}")
    for stream in request.upto:
        require(rights.may_commit(stream), f"commit rows of stream {stream!r}")
        if inlet_of(stream) != request.inlet:
            raise BadMessage(
                f"stream {stream!r} is not of inlet {request.inlet!r}; commit each inlet by itself"
            )
    gate.shell.control(request)
    return StoreSize(gate.log.bytes)


def _administer(what: str) -> Callable[[Gate, Any, Rights], Message]:
    def answer(gate: Gate, request: Any, rights: Rights) -> Message:
        require(rights.administer, what)
        return _replied(gate.shell.control(request))

    return answer


def _replied(message: Message | None) -> Message:
    assert message is not None, "the state replies to this request"
    return message


_ANSWERS: Final[dict[type, Callable[[Gate, Any, Rights], Message]]] = {
    GateStatusRequest: _status,
    GateStatisticsRequest: _statistics,
    NextRequest: _next,
    SchemaRequest: _schema,
    Committed: _committed,
    ForgetReader: _administer("forget a reader"),
    Suspend: _administer("suspend streams"),
    Resume: _administer("resume streams"),
    RedirectStreams: _administer("redirect streams"),
    Drain: _administer("drain the gate"),
    Declare: _administer("declare metadata"),
    Follow: _follow,
    DeleteInlet: _administer("delete an inlet"),
}
