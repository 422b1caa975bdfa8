"""A gate without sockets or files: a real `GateState` between calls and a disk in memory, in one thread.

Messages of one call keep their order, as in gRPC. A gate that crashes keeps what it synced, and possibly some
of what it was writing.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.ingest import Limits
from penstock.ingest.client.outbox import ClientLimits
from penstock.ingest.gate.events import (
    Append,
    AwaitRows,
    BatchOffered,
    BatchPrepared,
    CallClosed,
    CallOpened,
    DeleteBelow,
    DropReader,
    GroupDurable,
    HoldUp,
    Prepare,
    ProducersStored,
    Promise,
    ReaderStored,
    Reply,
    SchemaStored,
    Send,
    StoreProducers,
    StoreReader,
    StoreSchema,
    WriteFailed,
)
from penstock.ingest.gate.ranges import RowRanges
from penstock.ingest.gate.state import GateState, Restored
from penstock.ingest.wire.protocol import encode_answers

SCHEMA = pa.schema([("n", pa.int64())])
GATE_LIMITS = Limits(stream_bytes=600, gate_bytes=1000)
CLIENT_LIMITS = ClientLimits(batch_rows=5, buffer_rows=60, batch_seconds=0.5)


@dataclass(eq=False)
class Call:
    """One open push: batches on their way to a gate, answers on their way back."""

    gate: "SimulatedGate"
    number: int
    forward: deque = field(default_factory=deque)
    back: deque = field(default_factory=deque)
    alive: bool = True


@dataclass
class Disk:
    """What a gate has when it starts again."""

    log: str = "log"
    stored: dict = field(default_factory=dict)
    settled: dict = field(default_factory=dict)
    producers: dict = field(default_factory=dict)
    readers: set = field(default_factory=set)
    promises: dict = field(default_factory=dict)
    """The last promise that came with rows of each stream, and the row from which on it holds."""

    def ranges(self, stream):
        return RowRanges((row, row + 1) for row in sorted(self.stored.get(stream, ()))).all()


class SimulatedGate:
    """A gate that is up until it crashes; with `awaits_readers` it belongs to a controller."""

    def __init__(self, name, log="log", *, awaits_readers=False):
        self.name, self.disk, self.awaits_readers = name, Disk(log), awaits_readers
        self.lives, self.counts = 0, Counter()
        self.start()

    def start(self):
        held = {
            stream: [(0, self.disk.settled.get(stream, 0)), *self.disk.ranges(stream)]
            for stream in {*self.disk.stored, *self.disk.settled}
        }
        self.state = GateState(
            GATE_LIMITS,
            Restored(
                held=held,
                producers=self.disk.producers,
                readers=dict.fromkeys(self.disk.readers),
                awaits_readers=self.awaits_readers,
            ),
        )
        self.writing, self.calls, self.unsynced, self.up = deque(), {}, {}, True
        self.promises = dict(self.disk.promises)
        self.lives += 1

    def crash(self, survive):
        """Lose everything in memory; the first `survive` appends had reached the disk."""
        for append, values in list(self.writing)[:survive]:
            self.disk.producers.update(self.unsynced)
            self.store(append, values)
        for call in self.calls.values():
            call.alive = False
            call.forward.clear()
            call.back.clear()
        self.counts += self.state.counts
        self.writing, self.up = deque(), False

    # ---- calls ----

    def open(self):
        call = Call(self, len(self.calls) + 1)
        self.calls[call.number] = call
        self.feed(CallOpened(call.number, SCHEMA, lambda _: True))
        return call

    def end(self, call):
        """The gate hears that a call is over, if everything taken from it is answered by then."""
        if call.alive and not self.state.waiting(call.number):
            self.feed(CallClosed(call.number))

    def receive(self, call, push, batch):
        """What the shell does with a batch."""
        values = batch["n"].to_pylist()
        event = BatchOffered(call.number, push, len(values), 8 * len(values))
        while True:
            match self.feed(event, values):
                case StoreSchema(inlet, schema):
                    self.feed(SchemaStored(inlet, schema))
                case StoreProducers(producers):
                    self.unsynced.update(producers)
                    self.feed(ProducersStored(producers))
                case Prepare(skip, take):
                    event = BatchPrepared(call.number, push, len(values), skip, take, 8 * take)
                case HoldUp():
                    event = BatchPrepared(
                        call.number, push, len(values), event.skip, event.take, event.size, held_up=True
                    )
                case _:
                    return

    # ---- requests ----

    def ask(self, request):
        """The answer to a question for the next sequence; None while rows are on their way to the disk."""
        while True:
            match self.feed(request):
                case StoreProducers(producers):
                    self.disk.producers.update(producers)
                    self.feed(ProducersStored(producers))
                case AwaitRows():
                    return None
                case answer:
                    return answer

    def tell(self, request):
        """Positions, a list of readers, or what to do with streams."""
        while isinstance(wanted := self.feed(request), StoreReader):
            self.disk.readers.add((wanted.inlet, wanted.reader))
            self.feed(ReaderStored(wanted.inlet, wanted.reader))

    # ---- the disk ----

    def sync(self, count):
        """Make the first of what is being written durable."""
        self.disk.producers.update(self.unsynced)
        self.unsynced = {}
        group = [self.writing.popleft() for _ in range(min(count, len(self.writing)))]
        for append, values in group:
            self.store(append, values)
        self.feed(GroupDurable(tuple(append for append, _ in group), 0, 1e6))

    def fail_writes(self):
        lost, self.writing = list(self.writing), deque()
        if lost:
            self.feed(WriteFailed(tuple(append for append, _ in lost), "the disk is full"))

    def store(self, append, values):
        rows = self.disk.stored.setdefault(append.stream, {})
        for sequence, value in enumerate(values, start=append.sequence):
            assert sequence not in rows, f"{self.name} stores row {sequence} of {append.stream} twice"
            rows[sequence] = value
        if append.frontier is not None:
            for known in (self.disk.promises, self.promises):
                self.promise(known, append.stream, append.frontier, append.end)

    @staticmethod
    def promise(known, stream, frontier, at):
        if stream not in known or frontier > known[stream][0]:
            known[stream] = (frontier, at)

    def delete(self, committed):
        for stream, rows in self.disk.stored.items():
            done = min((upto.get(stream, 0) for upto in committed.values()), default=0)
            gone = [row for row in rows if row < done]
            for row in gone:
                del rows[row]
            if gone:
                self.disk.settled[stream] = max(done, self.disk.settled.get(stream, 0))

    def index(self):
        """Stream, low and high of every range, as the gate tells them."""
        lines = []
        for stream in sorted({*self.disk.stored, *self.disk.settled, *self.promises}):
            at = self.disk.settled.get(stream, 0)
            if stream not in {*self.disk.stored, *self.disk.settled}:
                at = self.promises[stream][1]
            lines += [(stream, *each) for each in self.disk.ranges(stream)] or [(stream, at, at)]
        return lines

    def feed(self, event, values=()):
        """Hand an event to the state and carry out its actions; what it wants first, or its reply."""
        wanted = None
        for action in self.state.handle(event, 0.0):
            match action:
                case Append():
                    first = action.sequence - event.push.sequence
                    self.writing.append((action, values[first : first + action.rows]))
                case Send(call, answer):
                    self.calls[call].back.append(encode_answers([answer]))
                case Promise(stream, frontier, at):
                    self.promise(self.promises, stream, frontier, at)
                case DeleteBelow(committed):
                    self.delete(committed)
                case DropReader(inlet, reader):
                    self.disk.readers.discard((inlet, reader))
                case Reply(message):
                    wanted = message
                case _:
                    wanted = action
        return wanted
