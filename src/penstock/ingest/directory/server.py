"""The Flight service of a directory: what can be asked of it, and who may ask."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import flight

from penstock.control.expected import QueryLoad
from penstock.errors import BadMessage, NoGate, Superseded, TakenOver
from penstock.ingest.security.tokens import Rights, Security
from penstock.ingest.slots import Slot, Slots
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.flight import Address, flight_errors, require
from penstock.ingest.wire.protocol import (
    DIRECTORY_REQUESTS,
    Answer,
    Declare,
    DeleteInlet,
    DirectoryStatus,
    DirectoryStatusRequest,
    Done,
    DrainGate,
    ExpectedRates,
    Forget,
    ForgetReader,
    GateList,
    GateListRequest,
    MovedStreams,
    MoveStreams,
    NextRequest,
    Push,
    QueryState,
    ReaderList,
    ReaderListRequest,
    ReaderPosition,
    Redirect,
    Refusal,
    Register,
    StreamGates,
    StreamList,
    StreamListRequest,
    UseGate,
    Wait,
    WhereRequest,
    encode_answers,
)

if TYPE_CHECKING:
    from penstock.ingest.directory.directory import Directory


WAIT_S: Final = 0.5
MAX_BYTES: Final = 16 * 2**20
MOST_CALLS: Final = 256
MOST_CALLS_PER_TOKEN: Final = 128
IDLE_S: Final = 30.0
"""A client that has said nothing for this long loses its call when another one needs it."""


class DirectoryServer(flight.FlightServerBase):  # type: ignore[misc] # Flight is untyped
    """Translates Flight's calls; every error of ours becomes one of Flight's with the same words."""

    def __init__(self, directory: "Directory", address: Address, security: Security) -> None:
        super().__init__((address.host, address.port), **security.server_options())
        self._directory = directory
        self._security = security
        self._calls = Slots("calls", MOST_CALLS, MOST_CALLS_PER_TOKEN, IDLE_S)

    def do_put(self, context: Any, _: Any, reader: Any, writer: Any) -> None:
        """Send every stream to its gate; a drained gate sends its clients here."""
        with flight_errors(), self._slot(context) as slot:
            rights = self._security.rights(context)
            for chunk in _chunks(reader, slot):
                push = Push.decode(chunk.app_metadata)
                require(rights.may_push(push.stream), f"push to stream {push.stream!r}")
                writer.write(encode_answers([self._answer(push)]))

    def _answer(self, push: Push) -> Answer:
        try:
            self._directory.check()
            found = self._directory.where({push.stream: push.declare}, {push.stream: push.producer})
            if push.stream not in found:
                error = TakenOver.by(self._directory.producer(push.stream), push.producer, push.stream)
                return Refusal(TakenOver.__name__, str(error), push.stream)
            return Redirect(push.stream, found[push.stream])
        except (NoGate, Superseded) as error:
            return Wait(push.stream, WAIT_S, message=str(error))

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """A request and its answer."""
        with flight_errors(), self._slot(context):
            if action.body is not None and action.body.size > MAX_BYTES:
                raise BadMessage(f"a body of {action.body.size:,} bytes; send at most {MAX_BYTES:,}")
            kind = DIRECTORY_REQUESTS.get(action.type)
            if kind is None:
                known = ", ".join(DIRECTORY_REQUESTS)
                raise BadMessage(f"no action {action.type[:40]!r}; the actions are: {known}")
            request = kind.decode(action.body and action.body.to_pybytes())
            self._directory.check()
            return [_ANSWERS[kind](self._directory, request, self._security.rights(context)).encode()]

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Every request that a directory answers; by `where` a client tells a controller from a gate."""
        with flight_errors():
            self._directory.check()
            self._security.rights(context)
            return [(name, kind.about()) for name, kind in DIRECTORY_REQUESTS.items()]

    def _slot(self, context: Any) -> AbstractContextManager[Slot]:
        return self._calls.taken(self._security.tenant(context), context.peer())


def _chunks(reader: Any, slot: Slot) -> Iterator[Any]:
    """What a client sends, until it has ended or gone."""
    while not slot.lost:
        try:
            yield slot.wait_for(reader.read_chunk)
        except (StopIteration, flight.FlightError, pa.ArrowException):
            return


def _register(directory: "Directory", asked: Register, rights: Rights) -> Message:
    require(rights.administer, "register a gate")
    return directory.register(
        asked.gate, {name: value for name, value in asked.to_object().items() if name != "gate"}
    )


def _where(directory: "Directory", asked: WhereRequest, rights: Rights) -> Message:
    for stream in asked.streams:
        require(rights.may_push(stream), f"push to stream {stream!r}")
    found = directory.where(asked.streams, asked.producers)
    return StreamGates(found, tuple(each for each in asked.streams if each not in found))


def _next(directory: "Directory", asked: NextRequest, rights: Rights) -> Message:
    for stream in asked.streams:
        if asked.claim:
            require(rights.may_push(stream), f"push to stream {stream!r}")
        require(rights.may_push(stream) or rights.may_read(stream), f"ask for stream {stream!r}")
    return directory.next_sequences(list(asked.streams), claim=asked.claim, metadata=asked.metadata)


def _declare(directory: "Directory", asked: Declare, rights: Rights) -> Message:
    require(rights.administer, "declare metadata")
    directory.declare(asked.stream, asked.metadata)
    return Done()


def _gates(directory: "Directory", _: GateListRequest, rights: Rights) -> Message:
    require(rights.administer or bool(rights.read), "look at the gates")
    return GateList(tuple(directory.gates()), tuple(directory.forgotten_gates()))


def _streams(directory: "Directory", asked: StreamListRequest, rights: Rights) -> Message:
    streams = directory.streams(asked.inlet)
    if not rights.administer:
        streams = [each for each in streams if rights.may_read(each["stream"])]
    if asked.brief:
        streams = [{name: each[name] for name in ("stream", "next", "empty")} for each in streams]
    return StreamList(tuple(streams))


def _reader(directory: "Directory", asked: ReaderPosition, rights: Rights) -> Message:
    require(rights.may_commit_some(asked.inlet), f"commit rows of inlet {asked.inlet!r}")
    for stream in asked.upto:
        require(rights.may_commit(stream), f"commit rows of stream {stream!r}")
    directory.reader_at(asked.inlet, asked.reader, asked.upto, asked.run)
    return Done()


def _query(directory: "Directory", asked: QueryState, rights: Rights) -> Message:
    require(rights.may_commit_some(asked.inlet), f"tell of a run over inlet {asked.inlet!r}")
    load = QueryLoad(asked.lag, asked.row_seconds, asked.bound)
    known = directory.query(asked.inlet, asked.reader, load, by_stream=asked.by_stream)
    if known is None:
        return ExpectedRates(time.time(), 0.0)
    streams = {name: list(each) for name, each in known.streams.items() if rights.may_read(name)}
    return ExpectedRates(known.at, known.period, known.rates, known.lower, known.upper, streams or None)


def _readers(directory: "Directory", _: ReaderListRequest, rights: Rights) -> Message:
    require(rights.administer, "look at the readers")
    return ReaderList(tuple(directory.readers()))


def _forget_reader(directory: "Directory", asked: ForgetReader, rights: Rights) -> Message:
    require(rights.administer, "forget a reader")
    directory.forget_reader(asked.inlet, asked.reader)
    return Done()


def _redirect(directory: "Directory", asked: MoveStreams, rights: Rights) -> Message:
    require(rights.administer, "redirect streams")
    found = directory.redirect(list(asked.streams), asked.to)
    return MovedStreams(tuple(found["moved"]), tuple(found["unreached"]))


def _drain(directory: "Directory", asked: DrainGate, rights: Rights) -> Message:
    require(rights.administer, "drain gates")
    found = directory.operator.drain(asked.gate)
    return MovedStreams(tuple(found["moved"]), tuple(found["unreached"]))


def _use(directory: "Directory", asked: UseGate, rights: Rights) -> Message:
    require(rights.administer, "use gates")
    directory.operator.use(asked.gate)
    return Done()


def _delete_inlet(directory: "Directory", asked: DeleteInlet, rights: Rights) -> Message:
    require(rights.administer, "delete an inlet")
    directory.operator.delete_inlet(asked.inlet)
    return Done()


def _forget(directory: "Directory", asked: Forget, rights: Rights) -> Message:
    require(rights.administer, "forget gates or streams")
    directory.forget(gate=asked.gate, streams=list(asked.streams or ()) or None)
    return Done()


def _status(directory: "Directory", _: DirectoryStatusRequest, rights: Rights) -> Message:
    require(rights.administer or bool(rights.read), "look at the directory")
    return DirectoryStatus(
        controller=directory.address,
        started_ms=int(directory.started * 1000),
        gates=tuple(directory.gates()),
        streams=len(directory.streams()),
    )


_ANSWERS: Final[dict[type, Callable[["Directory", Any, Rights], Message]]] = {
    Register: _register,
    WhereRequest: _where,
    NextRequest: _next,
    GateListRequest: _gates,
    StreamListRequest: _streams,
    MoveStreams: _redirect,
    Forget: _forget,
    ReaderPosition: _reader,
    QueryState: _query,
    ReaderListRequest: _readers,
    ForgetReader: _forget_reader,
    DirectoryStatusRequest: _status,
    Declare: _declare,
    DrainGate: _drain,
    UseGate: _use,
    DeleteInlet: _delete_inlet,
}
