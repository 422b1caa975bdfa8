"""Gates and clients in one thread: real `GateState` and `Outbox` objects, and a network and disks that fail.

Every step draws what happens next. Messages of different calls overtake each other, arrive late, or are lost
with their call.
"""

import random

import pyarrow as pa

from ingest.simulated_gate import CLIENT_LIMITS, SCHEMA, SimulatedGate
from penstock.ingest.client.outbox import Outbox
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
)


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
            (2, lambda: gate.tell(RedirectStreams((stream.name,), self.other(gate)))),
            (2, lambda: gate.tell(Suspend((stream.name,)))),
            (4, lambda: gate.tell(Resume((stream.name,)))),
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
        gate.start()
        for stream in self.streams:
            if not stream.call.alive:
                self.connect(stream)

    def heal(self):
        """Nothing fails any more: everything that was pushed has to be acknowledged."""
        for gate in self.gates.values():
            gate.tell(Resume(tuple(each.name for each in self.streams)))
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
                for sequence, value in gate.disk.stored.get(stream.name, {}).items():
                    assert union.setdefault(sequence, value) == value == sequence
            missing = set(range(stream.outbox.acknowledged)) - union.keys()
            assert not missing, f"acknowledged rows of {stream.name} are lost: {sorted(missing)[:5]}"
