# ruff: noqa: RUF009 -- `checked` makes a field of a data class
"""Every message between clients, gates, readers and controllers, in both directions.

A message is one UTF-8 JSON object and one frozen data class here. `encode` leaves out fields that have their
default; `decode` checks every field, ignores fields it does not know, and raises `BadMessage` for anything
else. To add a message, write a class; a request also names its action and the class of its answer, and goes
into GATE_REQUESTS or DIRECTORY_REQUESTS.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, get_args

import pyarrow as pa

from penstock.errors import BadMessage
from penstock.ingest.wire.codec import (
    Message,
    as_count,
    as_flag,
    as_gates,
    as_json,
    as_metadata,
    as_object,
    as_objects,
    as_ranges,
    as_rates,
    as_reader,
    as_readers,
    as_runs,
    as_seconds,
    as_sequence,
    as_sequences,
    as_stream,
    as_streams,
    as_text,
    as_texts,
    as_whole,
    checked,
    from_json,
    nullable,
    short,
)

__all__ = [
    "DIRECTORY_REQUESTS",
    "GATE_REQUESTS",
    "PROTOCOL",
    "Acknowledged",
    "Answer",
    "BatchLabel",
    "Committed",
    "Declare",
    "DeleteInlet",
    "DirectoryStatus",
    "DirectoryStatusRequest",
    "Done",
    "Drain",
    "DrainGate",
    "ExpectedRates",
    "Follow",
    "Forget",
    "ForgetReader",
    "GateList",
    "GateListRequest",
    "GateStatistics",
    "GateStatisticsRequest",
    "GateStatus",
    "GateStatusRequest",
    "IndexTicket",
    "InletSchema",
    "MoveStreams",
    "MovedStreams",
    "NextRequest",
    "NextSequences",
    "OpenPush",
    "Push",
    "QueryState",
    "ReadTicket",
    "ReaderList",
    "ReaderListRequest",
    "ReaderPosition",
    "Redirect",
    "RedirectStreams",
    "RedirectedStreams",
    "Refusal",
    "Register",
    "Registered",
    "Request",
    "Resume",
    "ResumedStreams",
    "SchemaRequest",
    "StoreSize",
    "StreamGates",
    "StreamList",
    "StreamListRequest",
    "Suspend",
    "SuspendedStreams",
    "UseGate",
    "Wait",
    "WhereRequest",
    "decode_answers",
    "decode_ticket",
    "encode_answers",
    "inlet_of",
]

PROTOCOL: Final = 1

AnswerT = TypeVar("AnswerT", bound="Message")


def inlet_of(stream: str) -> str:
    """The inlet of a stream id: all streams of one schema that one query reads together.

    >>> inlet_of("reports/vehicle-17"), inlet_of("reports")
    ('reports', 'reports')
    """
    return stream.split("/", 1)[0]


# ---- a push: client to gate ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenPush(Message):
    """Opens a push; the descriptor of `do_put`."""

    called: ClassVar[str] = "the descriptor of a push"
    op: str = checked(as_text)
    protocol: int = checked(as_whole)

    @classmethod
    def current(cls) -> "OpenPush":
        """What a client of this version sends."""
        return cls("push", PROTOCOL)

    @classmethod
    def decode(cls, body: Any) -> "OpenPush":
        """Refuse whatever is not a push of this protocol."""
        said = from_json(body, cls.called)
        if said.get("op") != "push" or said.get("protocol") != PROTOCOL:
            raise BadMessage(f'{cls.called} is {short(said)}; give {{"op": "push", "protocol": {PROTOCOL}}}')
        return cls.current()


@dataclass(frozen=True, slots=True)
class Push(Message):
    """What a client says about one record batch: its rows have the numbers from `sequence` on.

    `connect` is set on the first batch of a stream on a call. `frontier` promises that no later row is older,
    in microseconds since 1970. `declare` is the metadata of the stream. `producer` is the number under which
    the client took the stream (`NextRequest`): rows of an older producer than the newest known are refused.
    `oldest` is the age in seconds of the oldest row that no gate has acknowledged, `upto` the number after
    the last row that the client holds: what waits at the client, as it was when the batch was sent.

    >>> push = Push.decode(b'{"stream": "reports/vehicle-17", "sequence": 100, "oldest": 0.5, "upto": 120}')
    >>> push.sequence, push.connect, push.oldest, push.upto
    (100, False, 0.5, 120)
    """

    called: ClassVar[str] = "the metadata of a batch"
    stream: str = checked(as_stream)
    sequence: int = checked(as_sequence)
    connect: bool = checked(as_flag, default=False)
    frontier: int | None = checked(as_whole, default=None)
    declare: dict[str, Any] | None = checked(as_object, default=None)
    producer: int = checked(as_count, default=0)
    oldest: float | None = checked(as_seconds, default=None)
    upto: int | None = checked(as_sequence, default=None)


# ---- answers to a push: gate to client -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acknowledged(Message):
    """All rows below `acknowledged` are durable; `credit` bytes may be in flight.

    >>> Acknowledged("reports", 10, 4096).encode()
    b'{"stream":"reports","acknowledged":10,"credit":4096}'
    """

    stream: str = checked(as_stream)
    acknowledged: int = checked(as_sequence)
    credit: int | None = checked(as_count, default=None)


@dataclass(frozen=True, slots=True)
class Wait(Message):
    """The batch was not taken: send it again after `wait` seconds."""

    stream: str = checked(as_stream)
    wait: float = checked(as_seconds)
    acknowledged: int | None = checked(as_sequence, default=None)
    credit: int | None = checked(as_count, default=None)
    reason: str | None = checked(as_text, default=None)
    message: str | None = checked(as_text, default=None)


@dataclass(frozen=True, slots=True)
class Refusal(Message):
    """The batch is not taken, and would not be later; `refused` names the error.

    `expected` is given where the batch would leave a gap: send again from there. Without a stream the gate
    could not read the metadata of the batch.
    """

    refused: str = checked(as_text)
    message: str | None = checked(as_text, default=None)
    stream: str | None = checked(as_stream, default=None)
    expected: int | None = checked(as_sequence, default=None)


@dataclass(frozen=True, slots=True)
class Redirect(Message):
    """Send the stream to another gate, from the first row that is not acknowledged."""

    stream: str = checked(as_stream)
    redirect: str = checked(as_text)
    acknowledged: int | None = checked(as_sequence, default=None)


Answer: TypeAlias = Acknowledged | Wait | Refusal | Redirect
_ANSWERS: Final[tuple[tuple[str, type[Answer]], ...]] = (
    ("redirect", Redirect),
    ("wait", Wait),
    ("refused", Refusal),
    ("acknowledged", Acknowledged),
)


def encode_answers(answers: Iterable[Answer]) -> bytes:
    """One or more answers as one message."""
    objects = [each.to_object() for each in answers]
    return as_json(objects[0] if len(objects) == 1 else {"answers": objects})


def decode_answers(body: Any) -> list[Answer]:
    """The answers of one message.

    >>> decode_answers(b'{"answers": [{"stream": "a", "acknowledged": 7}, {"stream": "b", "wait": 1}]}')[0]
    Acknowledged(stream='a', acknowledged=7, credit=None)
    """
    said = from_json(body, "the answer of a gate")
    parts = said.get("answers", [said])
    if not isinstance(parts, list):
        raise BadMessage(f"answers is {short(parts)}; give a list of answers")
    return [_answer(each) for each in parts]


def _answer(said: Any) -> Answer:
    if isinstance(said, dict):
        for key, kind in _ANSWERS:
            if key in said:
                return kind.from_object(said)
    raise BadMessage(f"no answer: {short(said)}; give acknowledged, wait, refused or redirect")


# ---- reading: tickets and the labels of batches --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexTicket(Message):
    """Asks for the ranges that a gate holds of an inlet, or for those that changed after `since`."""

    inlet: str = checked(as_text)
    since: str | None = checked(as_text, default=None)
    op: str = checked(as_text, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", "index")


@dataclass(frozen=True, slots=True)
class ReadTicket(Message):
    """Asks for the rows of ranges [stream, from, to), in this order.

    `stream_column` adds a column with the stream id, `arrived_column` one with the time at which the gate got
    the row, in microseconds since 1970; `together` joins small batches up to this many rows.
    """

    inlet: str = checked(as_text)
    ranges: tuple[tuple[str, int, int], ...] = checked(as_ranges)
    stream_column: str | None = checked(as_text, default=None)
    together: int | None = checked(as_count, default=None)
    arrived_column: str | None = checked(as_text, default=None)
    op: str = checked(as_text, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", "read")


def decode_ticket(body: Any) -> IndexTicket | ReadTicket:
    """The ticket of a `do_get`."""
    said = from_json(body, "the ticket")
    match said.get("op"):
        case "index":
            return IndexTicket.from_object(said)
        case "read":
            return ReadTicket.from_object(said)
        case other:
            raise BadMessage(f"op {short(other)}; give 'read' or 'index'")


@dataclass(frozen=True, slots=True)
class BatchLabel(Message):
    """Names the rows of one batch that is read: runs of [stream, sequence, rows], in order."""

    called: ClassVar[str] = "the metadata of a batch that was read"
    runs: tuple[tuple[str, int, int], ...] = checked(as_runs)


# ---- requests and their answers ------------------------------------------------------------------------


class Request(Message, Generic[AnswerT]):
    """A message that asks for something; `action` is its Flight action, `reply` the class of its answer."""

    __slots__ = ()
    action: ClassVar[str]
    reply: ClassVar[type[Message]]

    def __init_subclass__(cls, *, action: str | None = None) -> None:
        # A data class with slots is made a second time, without the argument but with what it set.
        if action is not None:
            cls.action, cls.called = action, f"the body of {action!r}"
            cls.reply = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined] # every generic has it

    @classmethod
    def about(cls) -> str:
        """One line for people who list the actions of a server: what it does, and its fields."""
        names = ", ".join(each.name for each in fields(cls))  # type: ignore[arg-type] # a data class
        return f"{(cls.__doc__ or '').splitlines()[0]} {{{names}}}"


@dataclass(frozen=True, slots=True)
class Done(Message):
    """The answer to a request that has nothing to tell."""


@dataclass(frozen=True, slots=True)
class NextSequences(Message):
    """For every stream the number that its next row has, and its newest producer.

    That is the number after the last durable row. It is higher where rows are known to have been there that
    no gate has any more; `held` then says after which row the gates have none.
    """

    next: dict[str, int] = checked(as_sequences)
    producers: dict[str, int] | None = checked(as_sequences, default=None)
    held: dict[str, int] | None = checked(as_sequences, default=None)


@dataclass(frozen=True, slots=True)
class NextRequest(Request[NextSequences], action="next"):
    """Asks for the next sequence of streams; a controller asks all gates that may hold rows of them.

    The answer waits for rows that are on their way to the disk. With `claim` the caller becomes the producer
    of the streams: it gets a new number for each, and rows of earlier producers are refused from then on.
    With `producers` a controller says which numbers it has given. `metadata` are those of the streams, by
    which a controller chooses the gates of new ones.
    """

    streams: tuple[str, ...] = checked(as_streams)
    claim: bool = checked(as_flag, default=False)
    producers: dict[str, int] | None = checked(as_sequences, default=None)
    metadata: dict[str, Any] | None = checked(as_object, default=None)


@dataclass(frozen=True, slots=True)
class GateStatus(Message):
    """A gate, its log, its inlets, readers and streams."""

    gate: str = checked(as_text)
    protocol: int = checked(as_whole)
    started_ms: int = checked(as_whole)
    draining: bool = checked(as_flag)
    pending_bytes: int = checked(as_count)
    limits: dict[str, Any] = checked(as_object)
    log: dict[str, Any] = checked(as_object)
    inlets: tuple[str, ...] = checked(as_texts)
    readers: tuple[dict[str, Any], ...] = checked(as_objects)
    streams: dict[str, Any] = checked(as_object)
    trouble: str | None = checked(nullable(as_text))


@dataclass(frozen=True, slots=True)
class GateStatusRequest(Request[GateStatus], action="status"):
    """Asks how a gate is."""


@dataclass(frozen=True, slots=True)
class GateStatistics(Message):
    """Counts of a gate and of each stream since the gate started; they only grow within one `life` of it.

    `cpu_seconds` is the processor time of the gate's process in these `seconds`. Of each stream: `rows`,
    `batches` and `bytes` made durable here, `next`, `frontier`, `pending_bytes`, `connected`;
    `oldest_seconds` and `client_rows` wait at its client for an acknowledgement of this gate; `kept_rows`
    are held because a reader has not committed them, or because the inlet has none.
    """

    gate: str = checked(as_text)
    seconds: float = checked(as_seconds)
    counts: dict[str, Any] = checked(as_object)
    groups: int = checked(as_count)
    sync_seconds: float = checked(as_seconds)
    pending_bytes: int = checked(as_count)
    store_bytes: int = checked(as_count)
    streams: dict[str, Any] = checked(as_object)
    life: str | None = checked(as_text, default=None)
    cpu_seconds: float | None = checked(as_seconds, default=None)


@dataclass(frozen=True, slots=True)
class GateStatisticsRequest(Request[GateStatistics], action="statistics"):
    """Asks for the counts of a gate."""


@dataclass(frozen=True, slots=True)
class InletSchema(Message):
    """The schema of an inlet, as Arrow serialises it, in base64."""

    inlet: str = checked(as_text)
    schema: str = checked(as_text)

    @classmethod
    def of(cls, inlet: str, schema: pa.Schema) -> "InletSchema":
        """The message for a schema."""
        return cls(inlet, b64encode(schema.serialize()).decode())

    def arrow(self) -> pa.Schema:
        """The schema."""
        try:
            return pa.ipc.read_schema(pa.py_buffer(b64decode(self.schema)))
        except (ValueError, pa.ArrowException) as error:
            raise BadMessage(f"the schema of inlet {self.inlet!r} cannot be read ({error})") from None


@dataclass(frozen=True, slots=True)
class SchemaRequest(Request[InletSchema], action="schema"):
    """Asks for the schema of an inlet."""

    inlet: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class StoreSize(Message):
    """The size of a gate's log."""

    store_bytes: int = checked(as_count)


@dataclass(frozen=True, slots=True)
class Committed(Request[StoreSize], action="committed"):
    """A reader's positions: it never asks again for rows below them, so the gate may delete those."""

    inlet: str = checked(as_text)
    reader: str = checked(as_reader)
    upto: dict[str, int] = checked(as_sequences)
    run: str | None = checked(as_text, default=None)
    """What people call the reader: the checkpoint of its run."""


@dataclass(frozen=True, slots=True)
class ReaderPosition(Request[Done], action="reader"):
    """Tells a controller of a reader and its positions; gates then delete nothing before it has had it."""

    inlet: str = checked(as_text)
    reader: str = checked(as_reader)
    upto: dict[str, int] = checked(as_sequences)
    run: str | None = checked(as_text, default=None)


@dataclass(frozen=True, slots=True)
class ExpectedRates(Message):
    """Rows a second of an inlet that a controller expects in the periods after `at`, in seconds since 1970.

    `lower` and `upper` hold nine of ten rates; `streams` has those of each stream, if asked for. All are
    empty before anything is known.
    """

    at: float = checked(as_seconds)
    period: float = checked(as_seconds)
    rates: tuple[float, ...] = checked(as_rates, default=())
    lower: tuple[float, ...] = checked(as_rates, default=())
    upper: tuple[float, ...] = checked(as_rates, default=())
    streams: dict[str, Any] | None = checked(as_object, default=None)


@dataclass(frozen=True, slots=True)
class QueryState(Request[ExpectedRates], action="query"):
    """A run tells a controller how far behind it is, what a row costs it and its bound, both in seconds."""

    inlet: str = checked(as_text)
    reader: str = checked(as_reader)
    lag: int = checked(as_count)
    row_seconds: float = checked(as_seconds)
    bound: float = checked(as_seconds)
    by_stream: bool = checked(as_flag, default=False)


@dataclass(frozen=True, slots=True)
class ReaderList(Message):
    """The readers of a controller: inlet, reader, run, silent_seconds (null before it spoke), rows."""

    readers: tuple[dict[str, Any], ...] = checked(as_objects)


@dataclass(frozen=True, slots=True)
class ReaderListRequest(Request[ReaderList], action="readers"):
    """Asks for the readers of a controller."""


@dataclass(frozen=True, slots=True)
class ForgetReader(Request[Done], action="forget-reader"):
    """Stops waiting for a reader that does not come back; a controller tells all gates."""

    inlet: str = checked(as_text)
    reader: str = checked(as_reader)


@dataclass(frozen=True, slots=True)
class DeleteInlet(Request[Done], action="delete-inlet"):
    """Deletes the rows, the schema and the readers of an inlet to which nobody pushes.

    A controller tells all gates. Its streams go on after their last numbers if they come again.
    """

    inlet: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class SuspendedStreams(Message):
    """The streams that are now suspended."""

    suspended: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class Suspend(Request[SuspendedStreams], action="suspend"):
    """Makes streams wait, until they are resumed or the gate restarts."""

    streams: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class ResumedStreams(Message):
    """The streams that are taken again."""

    resumed: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class Resume(Request[ResumedStreams], action="resume"):
    """Takes rows of suspended streams again."""

    streams: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class Declare(Request[Done], action="declare"):
    """Says what is known of a stream's rate, in place of what was said before; to a gate or a controller."""

    stream: str = checked(as_stream)
    metadata: dict[str, Any] = checked(as_object)


@dataclass(frozen=True, slots=True)
class RedirectedStreams(Message):
    """The streams that a gate sends elsewhere."""

    redirected: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class RedirectStreams(Request[RedirectedStreams], action="redirect"):
    """Sends streams to another gate, once everything taken of them is durable."""

    streams: tuple[str, ...] = checked(as_streams)
    to: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class Drain(Request[RedirectedStreams], action="drain"):
    """Takes nothing more; clients are sent to `to`, or told to wait if there is none."""

    to: str | None = checked(as_text, default=None)


@dataclass(frozen=True, slots=True)
class Registered(Message):
    """The readers, as [inlet, reader], that gates have to keep rows for, and those that were forgotten.

    With `most_rows` the gate takes no more rows a second for now, because of the `reason`.
    """

    readers: tuple[tuple[str, str], ...] = checked(as_readers, default=())
    forgotten: tuple[tuple[str, str], ...] = checked(as_readers, default=())
    term: str | None = checked(as_text, default=None)
    """That of the controller: a gate follows none of an earlier one."""
    most_rows: float | None = checked(as_seconds, default=None)
    reason: str | None = checked(as_text, default=None)


@dataclass(frozen=True, slots=True)
class Follow(Request[Done], action="follow"):
    """Has a gate register with a controller that has taken over."""

    controller: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class Register(Request[Registered], action="register"):
    """A gate says that it is there, which log it has and how it is; it repeats this every second.

    `rows`, `batches`, `bytes` and `cpu_seconds` count from the start of this `life` of the gate;
    `oldest_seconds` is the age of the oldest row that waits at a client of it. It may use so many `cores`,
    and take `rows_per_second` if there is such a limit. `store_bytes` are on its disk, `room_bytes` fit there
    in addition. `holding` are readers that keep it from deleting rows and have been silent for long: inlet,
    reader, run, silent_seconds.
    """

    gate: str = checked(as_text)
    log: str | None = checked(as_text, default=None)
    streams: int | None = checked(as_count, default=None)
    rows: int | None = checked(as_count, default=None)
    bytes: int | None = checked(as_count, default=None)
    pending_bytes: int | None = checked(as_count, default=None)
    draining: bool = checked(as_flag, default=False)
    life: str | None = checked(as_text, default=None)
    batches: int | None = checked(as_count, default=None)
    cpu_seconds: float | None = checked(as_seconds, default=None)
    oldest_seconds: float | None = checked(as_seconds, default=None)
    cores: float | None = checked(as_seconds, default=None)
    rows_per_second: float | None = checked(as_seconds, default=None)
    store_bytes: int | None = checked(as_count, default=None)
    room_bytes: int | None = checked(as_count, default=None)
    holding: tuple[dict[str, Any], ...] = checked(as_objects, default=())


@dataclass(frozen=True, slots=True)
class StreamGates(Message):
    """The gate of every stream that was asked for, except those that another producer has taken over."""

    gates: dict[str, str] = checked(as_gates)
    taken_over: tuple[str, ...] = checked(as_streams, default=())


@dataclass(frozen=True, slots=True)
class WhereRequest(Request[StreamGates], action="where"):
    """Asks a controller for the gates of streams; `streams` has the metadata of each, if any is known.

    `producers` are the numbers under which the client took the streams.
    """

    streams: dict[str, dict[str, Any] | None] = checked(as_metadata)
    producers: dict[str, int] | None = checked(as_sequences, default=None)

    def to_object(self) -> dict[str, Any]:
        """A list of streams with their metadata."""
        said = ({"stream": stream, "metadata": metadata} for stream, metadata in self.streams.items())
        streams = [{k: v for k, v in each.items() if v is not None} for each in said]
        return {"streams": streams, **({} if self.producers is None else {"producers": self.producers})}


@dataclass(frozen=True, slots=True)
class GateList(Message):
    """All gates of a controller: gate, state, away, silent_seconds, streams, rate, info; those forgotten.

    `load`, `forecast` and `capacity` are work a second as admission counts it, null where it does not; `why`
    is the reason of the last decision about the gate.
    """

    gates: tuple[dict[str, Any], ...] = checked(as_objects)
    forgotten: tuple[str, ...] = checked(as_texts, default=())


@dataclass(frozen=True, slots=True)
class GateListRequest(Request[GateList], action="gates"):
    """Asks for all gates of a controller."""


@dataclass(frozen=True, slots=True)
class StreamList(Message):
    """Streams of a controller: stream, gate, state, rate, forecast, frontier, next, empty, metadata, waiting.

    A stream is empty if every gate was seen to have deleted all rows of it. `rate` and `forecast` are those
    of the last and the next period, `client_rows` and `oldest_seconds` wait at the client, `lag` rows for
    readers.
    """

    streams: tuple[dict[str, Any], ...] = checked(as_objects)


@dataclass(frozen=True, slots=True)
class StreamListRequest(Request[StreamList], action="streams"):
    """Asks for all streams of a controller, or for those of one inlet; `brief` leaves all but `next` away."""

    inlet: str | None = checked(as_text, default=None)
    brief: bool = checked(as_flag, default=False)


@dataclass(frozen=True, slots=True)
class MovedStreams(Message):
    """The streams that moved, and those whose gate did not answer: their clients will ask."""

    moved: tuple[str, ...] = checked(as_streams)
    unreached: tuple[str, ...] = checked(as_streams)


@dataclass(frozen=True, slots=True)
class MoveStreams(Request[MovedStreams], action="redirect"):
    """Asks a controller to move streams to another gate."""

    streams: tuple[str, ...] = checked(as_streams)
    to: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class DrainGate(Request[MovedStreams], action="drain-gate"):
    """Asks a controller to move all streams away from a gate, and not to use it before `UseGate` says so."""

    gate: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class UseGate(Request[Done], action="use-gate"):
    """Lets a controller use a gate again that an operator has drained."""

    gate: str = checked(as_text)


@dataclass(frozen=True, slots=True)
class Forget(Request[Done], action="forget"):
    """Makes a controller forget a gate that is gone for good, or streams that have ended."""

    gate: str | None = checked(as_text, default=None)
    streams: tuple[str, ...] | None = checked(as_streams, default=None)


@dataclass(frozen=True, slots=True)
class DirectoryStatus(Message):
    """A controller, its gates and the number of its streams."""

    controller: str = checked(as_text)
    started_ms: int = checked(as_whole)
    gates: tuple[dict[str, Any], ...] = checked(as_objects)
    streams: int = checked(as_count)


@dataclass(frozen=True, slots=True)
class DirectoryStatusRequest(Request[DirectoryStatus], action="status"):
    """Asks how a controller is."""


def _by_action(*kinds: type[Request[Any]]) -> dict[str, type[Request[Any]]]:
    return {each.action: each for each in kinds}


GATE_REQUESTS: Final = _by_action(
    GateStatusRequest,
    GateStatisticsRequest,
    NextRequest,
    SchemaRequest,
    Committed,
    ForgetReader,
    Suspend,
    Resume,
    RedirectStreams,
    Drain,
    Declare,
    DeleteInlet,
    Follow,
)
DIRECTORY_REQUESTS: Final = _by_action(
    Register,
    WhereRequest,
    NextRequest,
    GateListRequest,
    StreamListRequest,
    MoveStreams,
    Forget,
    ReaderPosition,
    QueryState,
    ReaderListRequest,
    ForgetReader,
    DirectoryStatusRequest,
    Declare,
    DrainGate,
    UseGate,
    DeleteInlet,
)
