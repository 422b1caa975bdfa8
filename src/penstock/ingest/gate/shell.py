"""The shell around `GateState`: threads, the log and clients. It feeds events and carries out actions.

One lock orders the events. Rows are validated and serialised, clients are answered and files are deleted
outside of it, so that one slow client or one large batch does not stop the others.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from penstock import threads
from penstock.errors import BadMessage, LogEnded, Superseded, TooMany
from penstock.ingest.gate.events import (
    Action,
    Append,
    AwaitRows,
    BatchOffered,
    BatchPrepared,
    CallClosed,
    CallId,
    CallOpened,
    Control,
    DeleteBelow,
    Deleted,
    DropInlet,
    DropReader,
    Event,
    GroupDurable,
    HoldUp,
    MetadataStored,
    Prepare,
    ProducersStored,
    Promise,
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
from penstock.ingest.gate.state import GateState, Restored
from penstock.ingest.limits import Limits
from penstock.ingest.log.group_commit import LogEntry
from penstock.ingest.log.log import Log
from penstock.ingest.log.record import checksum
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.protocol import Acknowledged, Answer, NextRequest, Push, encode_answers

__all__ = ["AnswerWriter", "GateShell", "OpenCall"]

_ROWS_S: Final = 8.0
"""How long a question waits for rows that are on their way to the disk."""
_LOGGER = logging.getLogger("penstock.gate")


class GateShell:
    """The log and the state of a gate, and the threads that bring them together."""

    def __init__(  # noqa: PLR0913 -- what a gate is started with
        self,
        folder: Path,
        limits: Limits,
        died: Callable[[], None] | None = None,
        *,
        accept_loss: bool = False,
        awaits_readers: bool = False,
        give_up: Sequence[tuple[str, int, int]] = (),
    ) -> None:
        self.limits, self._died = limits, died
        self.failure: str | None = None
        """Why nothing more can be made durable; the gate has to end."""
        self._changed = threading.Condition(threading.Lock())
        self._writers: dict[CallId, AnswerWriter] = {}
        self._terms = threading.Lock()
        self._calls = itertools.count(1)
        self.log = Log(folder, limits, self._durable, self._failed, self._log_ended, accept_loss=accept_loss)
        for stream, low, high in give_up:
            if (low, high) not in self.log.catalogue.given_up.get(stream, ()):
                self.log.give_up(stream, low, high)
                _LOGGER.warning("rows %d to %d of %s are given up; readers skip them", low, high, stream)
        self.state = GateState(limits, _restored(self.log, awaits_readers=awaits_readers))
        self._log_recovery()

    def close(self) -> None:
        """Make everything taken durable and answer it, then close the log."""
        self.log.close()

    @contextmanager
    def call(
        self,
        schema: pa.Schema,
        may_push: Callable[[str], bool],
        write: Callable[[bytes], Any],
        tenant: str | None = None,
        share: float = 1.0,
    ) -> "Iterator[OpenCall]":
        """One open push; it ends when everything taken from it is answered."""
        number = next(self._calls)
        writer = self._writers[number] = AnswerWriter(write)
        self._feed(CallOpened(number, schema, may_push, tenant, share))
        try:
            yield OpenCall(self, number, writer)
        finally:
            with self._changed:
                self._changed.wait_for(lambda: self.failure or not self.state.waiting(number))
            self._feed(CallClosed(number))
            writer.close()
            del self._writers[number]

    def control(self, request: Control) -> Message | None:
        """Carry out a control request; its answer, if the state gives one."""
        while True:
            done = self._feed(request)
            match done.prerequisite:
                case StoreReader(inlet, reader, run):
                    self.log.catalogue.add_reader(inlet, reader, run)
                    self.log.catalogue.sync()
                    self._feed(ReaderStored(inlet, reader, run))
                    _LOGGER.info("reader %s of inlet %s registered%s", reader, inlet, _for(run))
                case StoreProducers(producers):
                    assert isinstance(request, NextRequest), "who asks for the next sequence may claim"
                    self._store_producers(producers)
                    self.log.catalogue.sync()
                    request = replace(request, claim=False, producers=dict(producers))
                case StoreMetadata(stream, metadata):
                    self.log.catalogue.declare(stream, dict(metadata))
                    self.log.catalogue.sync()
                    self._feed(MetadataStored(stream, metadata))
                case AwaitRows(streams):
                    self._await_rows(streams)
                case _:
                    return done.reply

    def obey(self, term: str) -> None:
        """Follow a controller from now on, also after a restart, unless a later one of its kind is known."""
        with self._terms:
            name, _, number = term.partition(":")
            known, _, newest = self.log.catalogue.term.partition(":")
            if term == self.log.catalogue.term:
                return
            if not name or not number.isdecimal():
                raise BadMessage(f"no term of a controller: {term[:60]!r}")
            if name == known and int(number) < int(newest):
                raise Superseded(
                    f"this gate follows the controller of term {newest}, and the order comes from term "
                    f"{number}; that controller was taken over"
                )
            self.log.catalogue.follow(term)
            self.log.catalogue.sync()

    def _await_rows(self, streams: tuple[str, ...]) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: not self.state.pending(streams), _ROWS_S):
                raise TooMany(
                    f"rows of {streams[0]!r} have been on their way to the disk for {_ROWS_S:g} s; ask again "
                    "when the disk has written them"
                )

    def push(self, call: CallId, push: Push, batch: pa.RecordBatch) -> None:
        """Take a batch or answer why not."""
        if self.failure is not None:
            raise LogEnded(self.failure)
        offered = BatchOffered(call, push, batch.num_rows, batch.get_total_buffer_size())
        try:
            wanted = self._offer(offered)
            if wanted is not None:
                self._prepare(offered, batch, wanted)
        except (OSError, MemoryError) as error:
            self._feed(StoreFailed(call, push.stream, str(error)))

    def _offer(self, offered: BatchOffered) -> Prepare | None:
        """Have the batch admitted; the rows to take, or None if it was answered."""
        while True:
            match self._feed(offered).prerequisite:
                case StoreSchema(inlet, schema):
                    with self._changed:  # two calls must not both bring the first schema
                        if inlet not in self.state.schemas:
                            self.log.catalogue.add_schema(inlet, schema)
                            self.state.handle(SchemaStored(inlet, schema), time.time())
                case StoreMetadata(stream, metadata):
                    self.log.catalogue.declare(stream, dict(metadata))
                    self._feed(MetadataStored(stream, metadata))
                case StoreProducers(producers):
                    self._store_producers(producers)
                case Prepare() as wanted:
                    return wanted
                case _:
                    return None

    def _store_producers(self, producers: Mapping[str, int]) -> None:
        self.log.catalogue.add_producers(producers)
        self._feed(ProducersStored(producers))

    def _prepare(self, offered: BatchOffered, batch: pa.RecordBatch, wanted: Prepare) -> None:
        """Serialise outside the lock what will most likely be taken; again if another call came between."""
        problem = _problem(offered.push, batch)
        prepared, payload = _prepared(offered, batch, wanted, problem)
        while True:
            match self._feed(prepared, payload).prerequisite:
                case Prepare() as again:
                    prepared, payload = _prepared(offered, batch, again, problem)
                case StoreProducers(producers):
                    self._store_producers(producers)
                case HoldUp(seconds, size):
                    with self._changed:
                        self._changed.wait_for(lambda: self.state.has_room(size), seconds)
                    prepared = replace(prepared, held_up=True)
                case _:
                    return

    # ---- events in, actions out ------------------------------------------------------------------------

    def _feed(self, event: Event | Callable[[], Event], payload: "_Payload | None" = None) -> "_Outcome":
        """Hand an event to the state and carry out its actions, in order.

        An event that tells the size of the log is made here, with the lock held: of two such events the later
        one must not tell the older size.
        """
        outcome = _Outcome()
        with self._changed:
            if callable(event):
                event = event()
            for action in self.state.handle(event, time.time()):
                self._carry_out(action, payload, outcome)
            if isinstance(event, GroupDurable):
                self._changed.notify_all()  # memory is free, and calls may be done
        if outcome.deletion is not None:  # others push meanwhile
            self._delete(outcome.deletion)
        return outcome

    def _carry_out(self, action: Action, payload: "_Payload | None", outcome: "_Outcome") -> None:
        match action:
            case Append():
                assert payload is not None, "rows come with the batch that is taken"
                self.log.append(payload.entry(action))
            case Send(call, answer):
                self._writers[call].send(answer)
            case Promise(stream, frontier, at):
                self.log.promise(stream, frontier, at)
            case DropReader(inlet, reader):
                self.log.catalogue.remove_reader(inlet, reader)
            case DropInlet(inlet):
                self.log.drop_inlet(inlet)
                _LOGGER.warning("inlet %s is deleted, with its rows, schema and readers", inlet)
            case Reply(message):
                outcome.reply = message
            case DeleteBelow():
                outcome.deletion = action
            case _:
                outcome.prerequisite = action

    def _delete(self, deletion: DeleteBelow) -> None:
        before = self.log.discarded
        try:
            self.log.delete_below(deletion.committed)
        except OSError as error:
            _LOGGER.error("log files were not deleted (%s); tried again when readers commit", error)  # noqa: TRY400 -- the trace says no more
        if self.log.discarded > before:
            _LOGGER.warning("%d log files were deleted unread", self.log.discarded - before)
        self._feed(lambda: Deleted(self.log.bytes))

    def _durable(self, entries: list[LogEntry]) -> None:
        troubled = self.state.trouble is not None
        appends = tuple(each.tag for each in entries)
        self._feed(lambda: GroupDurable(appends, self.log.bytes, self.log.speed))
        if troubled:
            _LOGGER.warning("the log in %s can be written again", self.log.folder)

    def _failed(self, error: Exception, entries: list[LogEntry]) -> None:
        """A group failed: nothing of it or of what waits after it is in the log."""
        with self._changed:
            lost = [*entries, *self.log.take_back()]
            new = self.state.trouble is None
            actions = self.state.handle(
                WriteFailed(tuple(each.tag for each in lost), str(error)), time.time()
            )
            for action in actions:
                self._carry_out(action, None, _Outcome())
            self._changed.notify_all()
        if new:
            _LOGGER.error("the log in %s cannot be written (%s); clients wait", self.log.folder, error)

    def _log_ended(self, error: Exception) -> None:
        """Nothing more can be made durable: let nobody wait for it, and have the process end."""
        with self._changed:
            self.failure = f"the log in {self.log.folder} has ended: {error}"
            self._changed.notify_all()
        _LOGGER.critical("%s; the gate ends, start it again on a sound disk", self.failure)
        if self._died is not None:
            self._died()

    def _log_recovery(self) -> None:
        if self.log.torn_bytes:
            _LOGGER.warning(
                "the end of the log was torn: %d bytes that were never acknowledged are cut off",
                self.log.torn_bytes,
            )
        for damage in self.log.damage:
            _LOGGER.error("damaged log, set aside: %s", damage)


@dataclass(slots=True)
class _Outcome:
    """What an event leaves to its caller."""

    reply: Message | None = None
    prerequisite: Any = None
    deletion: DeleteBelow | None = None


@dataclass(frozen=True, slots=True)
class OpenCall:
    """One open push, as the server sees it."""

    shell: GateShell
    number: CallId
    writer: "AnswerWriter"

    def push(self, push: Push, batch: pa.RecordBatch) -> None:
        """Take a batch or answer why not."""
        self.shell.push(self.number, push, batch)


class AnswerWriter:
    """Writes the answers of one push in a thread of its own, so that a slow client does not stop the log.

    Answers that wait go out as one message. At most two wait for each stream: a later acknowledgement
    replaces an earlier one, and so does a later refusal, wait or redirection.
    """

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write
        self._acknowledged: dict[str, Answer] = {}
        self._others: dict[str | None, Answer] = {}
        self._changed = threading.Condition()
        self._closed = False
        self.broken = False
        self._thread = threads.service("penstock-answers", self._run, _LOGGER, self._break)
        self._thread.start()

    def send(self, answer: Answer) -> None:
        """Answer the client soon."""
        with self._changed:
            if isinstance(answer, Acknowledged):
                self._acknowledged[answer.stream] = answer
            else:
                self._others[answer.stream] = answer
            self._changed.notify()

    def close(self) -> None:
        """Send what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while answers := self._take():
            if self.broken:
                continue
            try:
                self._write(encode_answers(answers))
            except Exception as error:
                # A client that is gone fails in many ways, and all mean the same.
                self.broken = True
                if not isinstance(error, flight.FlightError | pa.ArrowException | OSError):
                    _LOGGER.exception("answers could not be written")

    def _break(self, _: Exception) -> None:
        self.broken = True

    def _take(self) -> list[Answer]:
        with self._changed:
            while not (self._acknowledged or self._others or self._closed):
                self._changed.wait()
            answers = [*self._acknowledged.values(), *self._others.values()]
            self._acknowledged, self._others = {}, {}
        return answers


def _for(run: str | None) -> str:
    return "" if run is None else f" for run {run!r}"


def _restored(log: Log, *, awaits_readers: bool) -> Restored:
    return Restored(
        awaits_readers=awaits_readers,
        held={stream: log.held.settled(stream) for stream in log.held.streams},
        producers=log.catalogue.producers,
        schemas=log.catalogue.schemas,
        metadata=log.catalogue.declared,
        readers=log.catalogue.readers,
        store_bytes=log.bytes,
    )


def _problem(push: Push, batch: pa.RecordBatch) -> str | None:
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        return f"the rows of stream {push.stream!r} are no sound Arrow batch: {error}"
    return None


def _prepared(
    offered: BatchOffered, batch: pa.RecordBatch, wanted: Prepare, problem: str | None
) -> tuple[BatchPrepared, "_Payload"]:
    part = batch if wanted.take == batch.num_rows else batch.slice(wanted.skip, wanted.take)
    content = part.serialize() if part.num_rows and problem is None else b""
    event = BatchPrepared(
        offered.call, offered.push, offered.rows, wanted.skip, wanted.take, len(content), problem
    )
    return event, _Payload(content, checksum(content))


@dataclass(frozen=True, slots=True)
class _Payload:
    """Serialised rows and their checksum, both made outside the lock."""

    content: Any
    total: int

    def entry(self, append: Append) -> LogEntry:
        """The rows as the log takes them."""
        return LogEntry(
            append.stream,
            append.sequence,
            append.rows,
            append.frontier,
            self.content,
            self.total,
            append,
            append.arrived_ms,
        )
