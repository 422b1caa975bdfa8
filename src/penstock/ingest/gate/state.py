"""What a gate decides, without I/O, threads or a clock: events in, actions out.

It is the mirror of the client's `Outbox`. What holds, whatever order events come in:

- Rows of a stream are appended once and in the order in which their client sends them; only a client that
  has just connected may start after a gap, because another gate acknowledged the rows between, or in a hole.
- A row is acknowledged only if it is durable here: after `GroupDurable` named it.
- Rows of a producer are refused once a newer one is known. Whoever asks for the next sequence is answered
  when nothing is on its way to the disk, so no number is given to two rows.
- Every batch is answered: acknowledged, told to wait, refused or redirected.
- Rows that are appended and not durable are bounded for each stream and in total.

Every event costs O(1), or O(rows of its group) appends; `Drain` and `DeleteBelow` look at every stream.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from penstock.errors import (
    BadMessage,
    GateError,
    LogFull,
    NotAllowed,
    SequenceGap,
    TakenOver,
    TooLarge,
    TooMany,
)
from penstock.ingest.gate.events import (
    Action,
    Append,
    AwaitRows,
    BatchOffered,
    BatchPrepared,
    CallClosed,
    CallId,
    CallOpened,
    DeleteBelow,
    Deleted,
    DropInlet,
    DropReader,
    Event,
    GroupDurable,
    HoldUp,
    IntakeLimited,
    MetadataStored,
    Prepare,
    ProducersStored,
    Promise,
    ReadersListed,
    ReaderStored,
    Reply,
    SchemaStored,
    Send,
    StoreFailed,
    StoreMetadata,
    StoreProducers,
    StoreReader,
    StoreSchema,
    WriteFailed,
)
from penstock.ingest.gate.ranges import RowRanges
from penstock.ingest.gate.readers import Readers, remedy
from penstock.ingest.gate.row_rate import RowRate
from penstock.ingest.gate.stream import StreamState, Verdict
from penstock.ingest.limits import Limits
from penstock.ingest.log.catalogue import check_schema, storable_schema
from penstock.ingest.wire.metadata import Metadata
from penstock.ingest.wire.protocol import (
    Acknowledged,
    Committed,
    Declare,
    DeleteInlet,
    Done,
    Drain,
    ForgetReader,
    NextRequest,
    NextSequences,
    Push,
    Redirect,
    RedirectedStreams,
    RedirectStreams,
    Refusal,
    Resume,
    ResumedStreams,
    Suspend,
    SuspendedStreams,
    Wait,
    inlet_of,
)

__all__ = ["GateState", "Restored"]

LATER: Final = 1.0
"""Seconds to wait where the speed of the disk does not matter: suspended, draining, disk full."""
SOON: Final = 0.005
HOLD_UP: Final = 0.2
"""Seconds that a push is held up for memory before its client is told to wait."""
_QUIET_S: Final = 60.0
"""Where space has run out, a reader that has been silent for so long is named as the reason."""
FIRST_SPEED: Final = 64e6
"""Bytes per second of the log before any group was written."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a gate knows when it starts: everything that the log and the catalogue hold."""

    held: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """For every stream the ranges of its rows that are durable, or that every reader was done with."""
    producers: Mapping[str, int] = field(default_factory=dict)
    """The newest producer of every stream."""
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    readers: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    """The run of every reader (inlet, name), if it is known."""
    store_bytes: int = 0
    awaits_readers: bool = False
    """Whether a controller knows the readers: nothing is deleted before it has listed them."""


@dataclass(slots=True, eq=False)
class _CallState:
    """One open push; `waiting` counts batches that were appended and not yet answered."""

    schema: pa.Schema
    may_push: Callable[[str], bool]
    streams: set[str] = field(default_factory=set)
    waiting: int = 0
    tenant: str | None = None
    share: float = 1.0


class GateState:
    """All streams of a gate. Read its attributes; change them only through `handle`."""

    def __init__(self, limits: Limits, restored: Restored) -> None:
        self.limits = limits
        self.streams: dict[str, StreamState] = {}
        self.schemas = dict(restored.schemas)
        self.metadata = dict(restored.metadata)
        self.readers = Readers(
            positions={each: {} for each in restored.readers},
            runs={each: run for each, run in restored.readers.items() if run is not None},
            listed=not restored.awaits_readers,
            most=limits.readers,
        )
        self.counts: Counter[str] = Counter()
        self.pending_bytes = 0
        self.store_bytes = restored.store_bytes
        self.speed = FIRST_SPEED
        self.draining = False
        self.trouble: str | None = None
        self._drained_to: str | None = None
        self._names = {*restored.held, *restored.metadata}
        """Every stream of which something is remembered, also of earlier lives."""
        self.producers = dict(restored.producers)
        self._claimed: dict[str, int] = {}
        """Producers that were given out and may not be stored yet: no number is given twice."""
        self._restored = restored.held
        self._rate = RowRate(limits.rows_per_second)
        self._slow = IntakeLimited()
        self._calls: dict[CallId, _CallState] = {}
        self._pending_of: Counter[str] = Counter()
        """Bytes on their way to the disk, by the tenant that pushed them."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in what happened at `now`, in seconds since 1970, and say what to do, in this order."""
        handler: Callable[[GateState, Any, float], list[Action]] = _HANDLERS[type(event)]
        return handler(self, event, now)

    def has_room(self, size: int) -> bool:
        """Whether memory has room for this many bytes more; an empty gate takes any batch."""
        return not self.pending_bytes or self.pending_bytes + size <= self.limits.gate_bytes

    def waiting(self, call: CallId) -> int:
        """Batches of a call that are appended and not yet answered."""
        return self._calls[call].waiting

    def next(self, stream: str) -> int:
        """The number after the last durable row of a stream."""
        known = self.streams.get(stream)
        return known.stored.high if known else RowRanges(self._restored.get(stream, ())).high

    def pending(self, streams: tuple[str, ...]) -> bool:
        """Whether rows of any of these streams are on their way to the disk."""
        return any(stream.pending for stream in self._known(streams))

    # ---- calls and batches -----------------------------------------------------------------------------

    def _call_opened(self, event: CallOpened, _: float) -> list[Action]:
        self._calls[event.call] = _CallState(
            event.schema, event.may_push, tenant=event.tenant, share=event.share
        )
        return []

    def _call_closed(self, event: CallClosed, _: float) -> list[Action]:
        for name in self._calls.pop(event.call).streams:
            stream = self.streams[name]
            stream.listeners.discard(event.call)
            if stream.call == event.call:
                stream.call = None
                stream.left()
        return []

    def _offered(self, event: BatchOffered, now: float) -> list[Action]:
        """Admit the stream and check the size, before the rows cost anything."""
        push, call = event.push, self._calls[event.call]
        try:
            if push.stream not in call.streams:
                unknown = self._check_admission(call, push.stream)
                if unknown is not None:
                    return [StoreSchema(inlet_of(push.stream), unknown)]
                self._admit(call, push.stream)
            self._check_size(event)
            changed = self._check_producer(event.call, push)
            if changed is not None:
                return changed
            metadata = None if push.declare is None else Metadata.of(push.declare).given()
        except GateError as error:
            return self._refuse(event.call, push.stream, error)
        if metadata is not None and self.metadata.get(push.stream) != metadata:
            return [StoreMetadata(push.stream, metadata)]
        stream = self.streams[push.stream]
        stream.reported(push, now)
        verdict = stream.judge(push, event.rows)
        early = self._still_waits(event, stream, verdict, now)
        return [Prepare(verdict.skip, verdict.take)] if early is None else [early]

    def _still_waits(
        self, event: BatchOffered, stream: StreamState, verdict: Verdict, now: float
    ) -> Send | None:
        """Tell a batch that would be turned away again to wait, before its rows cost anything.

        Who sends more than its share would else take the time of others with rows that are not taken.
        """
        told = stream.told_to_wait if stream.told_call == event.call else None
        elsewhere = self.draining or stream.redirected_to is not None
        limited = bool(self._rate.rows) and not elsewhere and not event.push.connect
        if told is None or not limited or not verdict.take:
            return None
        left = self._rate.left(stream.stream, now)
        if left <= 0 and not verdict.gap:
            return None
        return self._let_wait(event.call, stream, min(left, LATER) or told[0], told[1])

    def _check_producer(self, call: CallId, push: Push) -> list[Action] | None:
        """Refuse an older producer and note a newer one; None if it is the newest known."""
        newest = self.producers.get(push.stream, 0)
        if push.producer == newest:
            return None
        if push.producer < newest:
            self.counts["taken over"] += 1
            error = TakenOver.by(newest, push.producer, push.stream)
            return [Send(call, Refusal(TakenOver.__name__, str(error), push.stream))]
        stream = self.streams[push.stream]
        if stream.pending:
            # The older producer hears of its rows first; after that, acknowledgements are for the newer one.
            older = GateError(f"rows of an earlier producer of {push.stream!r} are on their way to the disk")
            return [self._let_wait(call, stream, SOON, older)]
        return [StoreProducers({push.stream: push.producer})]

    def _check_admission(self, call: _CallState, stream: str) -> pa.Schema | None:
        """Raise if the stream may not enter; the schema to store if it is the first of its inlet."""
        if not call.may_push(stream):
            raise NotAllowed(
                f"this token may not push to stream {stream!r}; use one whose push rights cover it"
            )
        if len(call.streams) >= self.limits.streams_per_client:
            raise TooMany(
                f"stream {stream!r} would be number {len(call.streams) + 1} of this push; at most "
                f"{self.limits.streams_per_client} are taken: open another connection"
            )
        if stream not in self._names and len(self._names) >= self.limits.streams:
            raise TooMany(
                f"the gate has {len(self._names)} streams, its limit; send {stream!r} to another gate"
            )
        known = self.schemas.get(inlet_of(stream))
        if known is None:
            return storable_schema(stream, call.schema)
        check_schema(stream, call.schema, known)
        return None

    def _admit(self, call: _CallState, stream: str) -> None:
        call.streams.add(stream)
        self._names.add(stream)
        if stream not in self.streams:
            self.streams[stream] = self._restored_stream(stream)

    def _restored_stream(self, stream: str) -> StreamState:
        return StreamState(stream, RowRanges(self._restored.get(stream, ())))

    def _check_size(self, event: BatchOffered) -> None:
        if event.size > self.limits.message_bytes or event.rows > self.limits.message_rows:
            raise TooLarge(
                f"a batch of {event.rows:,} rows in {event.size:,} bytes of stream {event.push.stream!r}; at "
                f"most {self.limits.message_rows:,} rows in {self.limits.message_bytes:,} bytes: send fewer"
            )

    def _prepared(self, event: BatchPrepared, now: float) -> list[Action]:
        """Take the batch, or say why not."""
        push, stream = event.push, self.streams[event.push.stream]
        if event.problem is not None:
            return self._refuse(event.call, push.stream, BadMessage(event.problem))
        changed = self._check_producer(event.call, push)
        if changed is not None:
            return changed
        verdict = stream.judge(push, event.rows)
        if (verdict.skip, verdict.take) != (event.skip, event.take):
            return [Prepare(verdict.skip, verdict.take)]  # another call came between
        stream.call = event.call
        turned_away = self._turn_away(event, stream, now, gap=verdict.gap)
        return self._take(event, stream, now) if turned_away is None else turned_away

    def _turn_away(
        self, event: BatchPrepared, stream: StreamState, now: float, *, gap: bool
    ) -> list[Action] | None:
        """Redirect the batch, refuse its gap or make it wait; None if it can be taken."""
        push = event.push
        if push.connect and not self.draining:
            stream.redirected_to = None
        target = self._drained_to if self.draining else stream.redirected_to
        if target:
            stream.redirected_to = target
            return self._tell_redirection(stream)
        if gap and (stream.told_to_wait is None or stream.told_call != event.call):
            return [self._gap(event.call, stream, push)]
        if push.connect:
            stream.connected(push.sequence)
        reason = self._reason_to_wait(stream, event.size, now) if event.size else None
        reason = reason or self._over_quota(event) or self._over_rate(event, now)
        if reason is None and event.size and not self.has_room(event.size):
            if not event.held_up:
                return [HoldUp(HOLD_UP, event.size)]
            reason = self._no_memory()
        if reason is None and gap:
            reason = stream.told_to_wait
        return None if reason is None else [self._let_wait(event.call, stream, *reason)]

    def _take(self, event: BatchPrepared, stream: StreamState, now: float) -> list[Action]:
        self.counts["duplicates"] += event.skip
        if not event.take:
            return self._without_rows(event, stream)
        push, whole = event.push, event.skip + event.take == event.rows
        append = Append(
            event.call,
            stream.stream,
            push.sequence + event.skip,
            event.take,
            push.frontier if whole else None,
            event.size,
            int(now * 1000),
        )
        call = self._calls[event.call]
        self._rate.taken(stream.stream, append.rows, now, call.tenant, call.share)
        stream.appended(append)
        self._count_pending(append, append.size)
        call.waiting += 1
        return [append] if whole else [append, self._again(event.call, stream, append)]

    def _again(self, call: CallId, stream: StreamState, append: Append) -> Send:
        """A batch that refills a hole goes over its end: what follows comes again and is judged then."""
        self.counts["refilled"] += 1
        reason = GateError(f"rows from {append.end} of {stream.stream!r} are here; send the batch again")
        return self._let_wait(call, stream, SOON, reason)

    def _without_rows(self, event: BatchPrepared, stream: StreamState) -> list[Action]:
        """A duplicate, a frontier or the start of a range: answered at once."""
        stream.promise(event.push.frontier, event.push.sequence + event.rows)
        if stream.pending:
            stream.listeners.add(event.call)
        return [*self._settle(stream), self._acknowledge(event.call, stream)]

    def _awaited(self, now: float) -> str:
        """For whom rows are kept, and what to do about it."""
        for (inlet, reader), seconds in self.readers.silent(now, _QUIET_S):
            known = remedy(inlet, reader, self.readers.runs.get((inlet, reader)))
            return f"reader {reader} of inlet {inlet!r} has not committed for {seconds:,.0f} s: {known}"
        unread = sorted({*self.schemas} - {inlet for inlet, _ in self.readers.positions})
        if unread:
            return (
                f"inlet {unread[0]!r} has no reader, so its rows are kept: start a run that reads it, or "
                f"delete it: penstock gates delete-inlet {unread[0]}"
            )
        return "send again when readers have committed"

    def _reason_to_wait(self, stream: StreamState, size: int, now: float) -> tuple[float, GateError] | None:
        if self.draining:
            return LATER, GateError("the gate is closing; send again later or to another gate")
        if stream.suspended:
            return LATER, GateError(f"stream {stream.stream!r} is suspended; send again later")
        if self.store_bytes >= self.limits.store_bytes:
            full = f"the gate stores {self.store_bytes:,} bytes, its limit"
            return LATER, LogFull(f"{full}; {self._awaited(now)}")
        if stream.pending_bytes and stream.pending_bytes + size > self.limits.stream_bytes:
            return self._delay(stream.pending_bytes), LogFull(
                f"stream {stream.stream!r} has {stream.pending_bytes:,} bytes on their way to the disk, of "
                f"{self.limits.stream_bytes:,}; keep to the credit"
            )
        return None

    def _over_quota(self, event: BatchPrepared) -> tuple[float, GateError] | None:
        tenant = self._calls[event.call].tenant
        pending = 0 if tenant is None else self._pending_of[tenant]
        if not pending or pending + event.size <= self.limits.token_bytes:
            return None
        return self._delay(pending), LogFull(
            f"{pending:,} bytes of this token or its tenant are on their way to the disk, of "
            f"{self.limits.token_bytes:,}; send again later"
        )

    def _over_rate(self, event: BatchPrepared, now: float) -> tuple[float, GateError] | None:
        call = self._calls[event.call]
        wait = self._rate.wait(event.push.stream, event.take, now, call.tenant, call.share)
        if not wait:
            return None
        why = f", because {self._slow.reason}" if self._slow.rows == self._rate.rows else ""
        return min(wait, LATER), TooMany(
            f"the gate takes {self._rate.rows:g} rows/s, shared by its tenants{why}; send again later"
        )

    def _no_memory(self) -> tuple[float, GateError]:
        return self._delay(self.pending_bytes), LogFull(
            f"{self.pending_bytes:,} bytes are on their way to the disk, of {self.limits.gate_bytes:,}; "
            "send again later"
        )

    def _delay(self, ahead: int) -> float:
        return round(min(max(ahead / self.speed, SOON), LATER), 4)

    # ---- the disk --------------------------------------------------------------------------------------

    def _durable(self, event: GroupDurable, _: float) -> list[Action]:
        self.trouble = None
        self.store_bytes, self.speed = event.store_bytes, event.speed
        answered: dict[str, set[CallId]] = {}
        for append in event.appends:
            self._leave_memory(append).stored_now(append)
            self.counts["rows"] += append.rows
            self.counts["bytes"] += append.size
            answered.setdefault(append.stream, set()).add(append.call)
        self.counts["batches"] += len(event.appends)
        actions: list[Action] = []
        for name, calls in answered.items():
            stream = self.streams[name]
            actions += [self._acknowledge(call, stream) for call in sorted(calls | stream.listeners)]
            actions += self._settle(stream)
        if self.store_bytes > self.limits.store_bytes:
            actions += self._delete()
        return actions

    def _write_failed(self, event: WriteFailed, now: float) -> list[Action]:
        """Take the rows back, the last first, so that each stream expects its first lost row again."""
        full = _log_full(event.reason, self._awaited(now) if self.readers.silent(now, _QUIET_S) else "")
        self.trouble = str(full)
        self.counts["failed writes"] += 1
        actions: list[Action] = []
        for append in reversed(event.appends):
            stream = self._leave_memory(append)
            stream.lost(append)
            waiting = sorted({append.call, *stream.listeners})
            actions += [self._let_wait(call, stream, LATER, full) for call in waiting]
            actions += self._settle(stream)
        return actions

    def _leave_memory(self, append: Append) -> StreamState:
        stream = self.streams[append.stream]
        stream.left_memory(append)
        self._count_pending(append, -append.size)
        self._calls[append.call].waiting -= 1
        return stream

    def _count_pending(self, append: Append, size: int) -> None:
        self.pending_bytes += size
        tenant = self._calls[append.call].tenant
        if tenant is not None:
            self._pending_of[tenant] += size
            if not self._pending_of[tenant]:
                del self._pending_of[tenant]

    def _settle(self, stream: StreamState) -> list[Action]:
        """Once nothing is on its way to the disk, a frontier holds and a redirection is told."""
        if stream.pending:
            return []
        stream.listeners.clear()
        promised, stream.promised = stream.promised, None
        promise: list[Action] = [] if promised is None else [Promise(stream.stream, *promised)]
        return promise + self._tell_redirection(stream)

    def _schema_stored(self, event: SchemaStored, _: float) -> list[Action]:
        self.schemas.setdefault(event.inlet, event.schema)
        return []

    def _metadata_stored(self, event: MetadataStored, _: float) -> list[Action]:
        self.metadata[event.stream] = event.metadata
        return []

    def _producers_stored(self, event: ProducersStored, _: float) -> list[Action]:
        for stream, producer in event.producers.items():
            self.producers[stream] = max(producer, self.producers.get(stream, 0))
        return []

    def _store_failed(self, event: StoreFailed, _: float) -> list[Action]:
        full = _log_full(event.reason)
        stream = self.streams.get(event.stream) or self._restored_stream(event.stream)
        return [self._let_wait(event.call, stream, LATER, full)]

    # ---- answers ---------------------------------------------------------------------------------------

    def _acknowledge(self, call: CallId, stream: StreamState) -> Send:
        credit = max(self.limits.stream_bytes - stream.pending_bytes, 0)
        return Send(call, Acknowledged(stream.stream, stream.durable, credit))

    def _let_wait(self, call: CallId, stream: StreamState, seconds: float, error: GateError) -> Send:
        stream.told_to_wait, stream.told_call = (seconds, error), call
        self.counts["waits"] += 1
        answer = Wait(stream.stream, seconds, stream.durable, 0, type(error).__name__, str(error))
        return Send(call, answer)

    def _refuse(self, call: CallId, stream: str, error: GateError) -> list[Action]:
        self.counts["refused"] += 1
        return [Send(call, Refusal(type(error).__name__, str(error), stream))]

    def _gap(self, call: CallId, stream: StreamState, push: Push) -> Send:
        message = (
            f"stream {stream.stream!r}: row {push.sequence} came where {stream.expected} was expected; "
            f"send again from {stream.expected}"
        )
        return Send(call, Refusal(SequenceGap.__name__, message, stream.stream, stream.expected))

    def _tell_redirection(self, stream: StreamState) -> list[Action]:
        """Redirect the client, once nothing of the stream is on its way to the disk."""
        if stream.redirected_to is None or stream.call is None or stream.pending:
            return []
        stream.left()
        return [Send(stream.call, Redirect(stream.stream, stream.redirected_to, stream.durable))]

    # ---- control ---------------------------------------------------------------------------------------

    def _suspend(self, event: Suspend, _: float) -> list[Action]:
        known = self._known(event.streams)
        for stream in known:
            stream.suspended = True
        return [Reply(SuspendedStreams(tuple(each.stream for each in known)))]

    def _resume(self, event: Resume, _: float) -> list[Action]:
        known = self._known(event.streams)
        for stream in known:
            stream.suspended = False
        return [Reply(ResumedStreams(tuple(each.stream for each in known)))]

    def _redirect(self, event: RedirectStreams, _: float) -> list[Action]:
        """It holds until the client connects the stream here again, as it does when it is sent back."""
        known = self._known(event.streams)
        self.counts["redirected"] += len(known)
        actions: list[Action] = []
        for stream in known:
            stream.redirected_to = event.to
            actions += self._tell_redirection(stream)
        return [*actions, Reply(RedirectedStreams(tuple(each.stream for each in known)))]

    def _declare(self, event: Declare, _: float) -> list[Action]:
        metadata = Metadata.of(event.metadata).given()
        if self.metadata.get(event.stream) == metadata:
            return [Reply(Done())]
        if event.stream not in self._names and len(self._names) >= self.limits.streams:
            raise TooMany(
                f"the gate has {len(self._names)} streams, its limit; declare {event.stream!r} elsewhere"
            )
        self._names.add(event.stream)
        return [StoreMetadata(event.stream, metadata)]

    def _drain(self, event: Drain, now: float) -> list[Action]:
        self.draining, self._drained_to = True, event.to
        connected = tuple(each.stream for each in self.streams.values() if each.call is not None)
        if event.to is None:
            return [Reply(RedirectedStreams(()))]
        return self._redirect(RedirectStreams(connected, event.to), now)

    def _known(self, streams: tuple[str, ...]) -> list[StreamState]:
        return [self.streams[each] for each in streams if each in self.streams]

    def _next(self, event: NextRequest, _: float) -> list[Action]:
        if event.claim and event.producers is None:
            return [StoreProducers({each: self._claim(each) for each in event.streams})]
        given = event.producers or {}
        newer = {each: given[each] for each in given if given[each] > self.producers.get(each, 0)}
        if newer:
            return [StoreProducers(newer)]
        if self.pending(event.streams):
            return [AwaitRows(event.streams)]
        held = {each: self.next(each) for each in event.streams}
        # What a reader has had was there, even if the disk of this gate was emptied since.
        known = {each: self.readers.read_upto(each) for each in event.streams}
        less = {each: held[each] for each in held if held[each] < known[each]}
        following = {each: max(held[each], known[each]) for each in held}
        producers = {each: self.producers.get(each, 0) for each in following}
        return [Reply(NextSequences(following, producers, less or None))]

    def _claim(self, stream: str) -> int:
        newest = max(self.producers.get(stream, 0), self._claimed.get(stream, 0)) + 1
        self._claimed[stream] = newest
        return newest

    # ---- readers ---------------------------------------------------------------------------------------

    def _committed(self, event: Committed, now: float) -> list[Action]:
        if not self.readers.knows(event):
            return [StoreReader(event.inlet, event.reader, event.run)]
        self.readers.committed(event, now)
        return self._delete()

    def _delete(self) -> list[Action]:
        return [DeleteBelow(dict(self.readers.positions))] if self.readers.listed else []

    def _readers_known(self, event: ReadersListed, _: float) -> list[Action]:
        """Keep rows for the readers of the controller too; those that never spoke here hold everything."""
        for inlet, reader in event.readers:
            if (inlet, reader) not in self.readers.positions:
                return [StoreReader(inlet, reader)]
        self.readers.listed = True
        dropped: list[Action] = [DropReader(*each) for each in self.readers.forget(event.forgotten)]
        return dropped + (self._delete() if dropped else [])

    def _intake_limited(self, event: IntakeLimited, now: float) -> list[Action]:
        """Take no more than its own limit and the controller's allow."""
        self._slow = event
        own = [each for each in (self.limits.rows_per_second, event.rows) if each]
        self._rate.limit(min(own, default=0.0), now)
        return []

    def _reader_stored(self, event: ReaderStored, _: float) -> list[Action]:
        self.readers.add(event.inlet, event.reader, event.run)
        return []

    def _forget_reader(self, event: ForgetReader, _: float) -> list[Action]:
        self.readers.forget([(event.inlet, event.reader)])
        return [DropReader(event.inlet, event.reader), *self._delete(), Reply(Done())]

    def _delete_inlet(self, event: DeleteInlet, _: float) -> list[Action]:
        """Nothing of an inlet is on its way when it goes, and nobody is about to send more."""
        own = [each for each in self.streams.values() if inlet_of(each.stream) == event.inlet]
        busy = sorted(each.stream for each in own if each.call is not None or each.pending)
        if busy:
            raise GateError(
                f"{len(busy)} streams of inlet {event.inlet!r} are pushed here, such as {busy[0]!r}; end "
                "their clients, then delete the inlet"
            )
        self.schemas.pop(event.inlet, None)
        self.readers.forget(self.readers.of(event.inlet))
        self.metadata = {each: said for each, said in self.metadata.items() if inlet_of(each) != event.inlet}
        return [DropInlet(event.inlet), *self._delete(), Reply(Done())]

    def _deleted(self, event: Deleted, _: float) -> list[Action]:
        self.store_bytes = event.store_bytes
        return []


def _log_full(reason: str, awaited: str = "") -> LogFull:
    more = f"; {awaited}" if awaited else ""
    said = f"the log cannot be written ({reason}); rows wait until it can: make room on the disk"
    return LogFull(said + more)


# ruff: noqa: SLF001 -- the table belongs to the class
_HANDLERS: Final[dict[type, Callable[[GateState, Any, float], list[Action]]]] = {
    CallOpened: GateState._call_opened,
    CallClosed: GateState._call_closed,
    BatchOffered: GateState._offered,
    BatchPrepared: GateState._prepared,
    SchemaStored: GateState._schema_stored,
    MetadataStored: GateState._metadata_stored,
    ProducersStored: GateState._producers_stored,
    ReaderStored: GateState._reader_stored,
    StoreFailed: GateState._store_failed,
    GroupDurable: GateState._durable,
    WriteFailed: GateState._write_failed,
    Deleted: GateState._deleted,
    Suspend: GateState._suspend,
    Resume: GateState._resume,
    RedirectStreams: GateState._redirect,
    Drain: GateState._drain,
    Declare: GateState._declare,
    NextRequest: GateState._next,
    Committed: GateState._committed,
    ForgetReader: GateState._forget_reader,
    DeleteInlet: GateState._delete_inlet,
    ReadersListed: GateState._readers_known,
    IntakeLimited: GateState._intake_limited,
}
