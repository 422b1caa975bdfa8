"""Gates and clients in one thread: real `GateState` and `Outbox` objects, and a network and disks that fail.

Every step draws what happens next. Messages of one call keep their order, as in gRPC; messages of different
calls overtake each other, arrive late, or are lost with their call. A gate that crashes keeps what it synced
and possibly some of what it was writing.
"""

import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.ingest import Limits
from penstock.ingest.client.outbox import ClientLimits, Outbox
from penstock.ingest.gate.events import (
    Append,
    BatchOffered,
    BatchPrepared,
    CallClosed,
    CallOpened,
    GroupDurable,
    HoldUp,
    Prepare,
    SchemaStored,
    Send,
    StoreSchema,
    WriteFailed,
)
from penstock.ingest.gate.state import GateState, Restored
from penstock.ingest.wire.protocol import (
    Acknowledged,
    Push,
    Redirect,
    RedirectStreams,
    Refusal,
    Resume,
    Suspend,
    Wait,
    decode_answers,
    encode_answers,
)

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


class SimulatedGate:
    """A `GateState` with a log in memory; `stored` is its disk."""

    def __init__(self, name):
        self.name = name
        self.stored = {}
        self.lives = 0
        self.counts = Counter()
        self._start()

    def _start(self):
        held = {stream: [(row, row + 1) for row in sorted(rows)] for stream, rows in self.stored.items()}
        self.state = GateState(GATE_LIMITS, Restored(held=held))
        self.writing = deque()
        self.calls = {}
        self.lives += 1

    def open(self):
        call = Call(self, len(self.calls) + 1)
        self.calls[call.number] = call
        self._feed(CallOpened(call.number, SCHEMA, lambda _: True))
        return call

    def receive(self, call, push, batch):
        """What the shell does with a batch."""
        values = batch["n"].to_pylist()
        event = BatchOffered(call.number, push, len(values), 8 * len(values))
        while True:
            match self._feed(event, values):
                case StoreSchema(inlet, schema):
                    self._feed(SchemaStored(inlet, schema))
                case Prepare(skip, take):
                    event = BatchPrepared(call.number, push, len(values), skip, take, 8 * take)
                case HoldUp():
                    event = BatchPrepared(
                        call.number, push, len(values), event.skip, event.take, event.size, held_up=True
                    )
                case None:
                    return

    def control(self, request):
        self._feed(request)

    def sync(self, count):
        """Make the first groups of what is being written durable."""
        group = [self.writing.popleft() for _ in range(min(count, len(self.writing)))]
        for append, values in group:
            self._store(append, values)
        self._feed(GroupDurable(tuple(append for append, _ in group), 0, 1e6))

    def fail_writes(self):
        lost, self.writing = list(self.writing), deque()
        if lost:
            self._feed(WriteFailed(tuple(append for append, _ in lost), "the disk is full"))

    def crash(self, survive):
        """Lose everything in memory; the first `survive` appends had reached the disk."""
        for append, values in list(self.writing)[:survive]:
            self._store(append, values)
        for call in self.calls.values():
            call.alive = False
        self.counts += self.state.counts
        self._start()

    def end(self, call):
        """The gate hears that a call is over, if everything taken from it is answered by then."""
        if call.alive and not self.state.waiting(call.number):
            self._feed(CallClosed(call.number))

    def _store(self, append, values):
        rows = self.stored.setdefault(append.stream, {})
        for sequence, value in enumerate(values, start=append.sequence):
            assert sequence not in rows, f"{self.name} stores row {sequence} of {append.stream} twice"
            rows[sequence] = value

    def _feed(self, event, values=()):
        wanted = None
        for action in self.state.handle(event, 0.0):
            match action:
                case Append():
                    first = action.sequence - event.push.sequence
                    self.writing.append((action, values[first : first + action.rows]))
                case Send(call, answer):
                    self.calls[call].back.append(encode_answers([answer]))
                case StoreSchema() | Prepare() | HoldUp():
                    wanted = action
        return wanted


class SimulatedStream:
    """One stream of a client: an `Outbox`, and the call that it is on."""

    def __init__(self, name):
        self.name = name
        self.outbox = Outbox(SCHEMA, 0, CLIENT_LIMITS)
        self.call = None

    def attach(self, call):
        self.outbox.suspend()
        self.call = call
        self.outbox.resume()

    def answered(self, call, answer, now):
        """What a connection does with an answer."""
        if not isinstance(answer, Refusal) and answer.acknowledged is not None:
            credit = None if isinstance(answer, Redirect) else answer.credit
            self.outbox.acknowledge(answer.acknowledged, credit)
        if self.call is not call:
            return None
        match answer:
            case Redirect(redirect=target):
                return target
            case Wait(wait=seconds):
                self.outbox.hold(seconds, now)
            case Refusal(expected=int(expected)):
                self.outbox.expect(expected)
            case Refusal():
                raise AssertionError(f"{self.name} was refused: {answer.message}")
            case Acknowledged():
                pass
        return None


class Simulation:
    """Some streams, two gates, and whatever can go wrong, drawn from one seed."""

    def __init__(self, seed, streams=3):
        self.chance = random.Random(seed)
        self.now = 0.0
        self.gates = {name: SimulatedGate(name) for name in ("a:1", "b:1")}
        self.streams = [SimulatedStream(f"r/{number}") for number in range(streams)]
        self.calls = []
        for stream in self.streams:
            self.connect(stream)

    def run(self, steps):
        for _ in range(steps):
            self.step()
            self.check()
        self.heal()
        self.check()

    def step(self):
        self.now += self.chance.random() * 0.3
        stream, gate = self.chance.choice(self.streams), self.chance.choice(list(self.gates.values()))
        call = self.chance.choice(self.calls)
        happenings = [
            (16, lambda: self.offer(stream)),
            (24, lambda: self.send(stream)),
            (24, lambda: self.arrive(call)),
            (24, lambda: self.hear(call)),
            (16, lambda: gate.sync(self.chance.randint(1, 4))),
            (2, lambda: self.connect(stream)),
            (2, lambda: gate.control(RedirectStreams((stream.name,), self.other(gate)))),
            (2, lambda: gate.control(Suspend((stream.name,)))),
            (4, lambda: gate.control(Resume((stream.name,)))),
            (1, gate.fail_writes),
            (1, lambda: self.cut(call)),
            (1, lambda: self.crash(gate)),
        ]
        weights = [weight for weight, _ in happenings]
        self.chance.choices([happen for _, happen in happenings], weights)[0]()

    def other(self, gate):
        return next(name for name in self.gates if name != gate.name)

    def connect(self, stream, gate=None):
        """A stream goes to a gate; what its old call carries arrives there, late or never."""
        target = self.gates[gate or self.chance.choice(list(self.gates))]
        call = target.open()
        self.calls.append(call)
        stream.attach(call)

    def offer(self, stream):
        count = self.chance.randint(1, 7)
        if stream.outbox.fits(count, 8 * count):
            first = stream.outbox.next
            stream.outbox.offer(pa.record_batch({"n": range(first, first + count)}, schema=SCHEMA), self.now)

    def send(self, stream):
        outgoing = stream.outbox.take(self.now)
        if outgoing is not None and stream.call.alive:
            push = Push(stream.name, outgoing.sequence, outgoing.connect, outgoing.frontier)
            stream.call.forward.append((push.encode(), outgoing.batch))

    def arrive(self, call):
        if call.alive and call.forward:
            body, batch = call.forward.popleft()
            call.gate.receive(call, Push.decode(body), batch)

    def hear(self, call):
        if not call.back:
            return
        for answer in decode_answers(call.back.popleft()):
            stream = next(each for each in self.streams if each.name == answer.stream)
            target = stream.answered(call, answer, self.now)
            if target is not None:
                self.connect(stream, target)

    def cut(self, call):
        """A call breaks: what is on its way in either direction is lost."""
        call.forward.clear()
        call.back.clear()
        call.gate.end(call)
        call.alive = False
        for stream in self.streams:
            if stream.call is call:
                self.connect(stream)

    def crash(self, gate):
        gate.crash(self.chance.randint(0, 3))
        for call in self.calls:
            if call.gate is gate:
                call.forward.clear()
                call.back.clear()
        for stream in self.streams:
            if not stream.call.alive:
                self.connect(stream)

    def heal(self):
        """Nothing fails any more: everything that was pushed has to be acknowledged."""
        for gate in self.gates.values():
            gate.control(Resume(tuple(each.name for each in self.streams)))
        for _ in range(2000):
            if not any(stream.outbox.rows for stream in self.streams):
                return
            self.now += 1.0
            for stream in self.streams:
                self.send(stream)
            for call in list(self.calls):
                while call.alive and call.forward:
                    self.arrive(call)
            for gate in self.gates.values():
                gate.sync(10)
            for call in list(self.calls):
                while call.back:
                    self.hear(call)
        raise AssertionError("rows are still not acknowledged")

    def check(self):
        """Every acknowledged row is on some disk, and wherever it is, it is the same row."""
        for stream in self.streams:
            union = {}
            for gate in self.gates.values():
                for sequence, value in gate.stored.get(stream.name, {}).items():
                    assert union.setdefault(sequence, value) == value == sequence
            missing = set(range(stream.outbox.acknowledged)) - union.keys()
            assert not missing, f"acknowledged rows of {stream.name} are lost: {sorted(missing)[:5]}"
