"""The whole way in, in one thread: producers, gates, a controller and readers; networks and disks that fail.

Real are `Outbox`, `GateState`, `StreamRegistry`, `NextQuestion` and `InletReader`; the wires, the disks and
the order of events are drawn from one seed. Producers restart while rows are on the wire, and the older one
may go on; gates crash, join late, lose their disk or come back with an old copy of it; the controller
restarts; readers restart in the middle of an epoch and commit late or never. A hole may be refilled by its
producer.

The event time of a row is its number. Producers promise that no row below the next one comes, so a reader may
believe a promise only if it has taken every row below it.
"""

import copy
import random
import time
from collections import Counter

import numpy as np
import pyarrow as pa

from ingest.simulated_gate import CLIENT_LIMITS, SCHEMA, Disk, SimulatedGate
from penstock.errors import GateAway, RowsGone
from penstock.ingest.client.outbox import Outbox
from penstock.ingest.directory.next_question import NextQuestion
from penstock.ingest.directory.registry import StreamRegistry
from penstock.ingest.directory.store import DirectoryStore
from penstock.ingest.gate.events import ReadersListed
from penstock.ingest.gate.ranges import RowRanges
from penstock.ingest.reader.gate_watch import HeldRanges, Promises
from penstock.ingest.reader.inlet_reader import InletReader
from penstock.ingest.reader.offsets import Offsets
from penstock.ingest.wire.protocol import Push, Redirect, Refusal, Wait, decode_answers

AWAY = 1e9
INDEX = pa.schema([("stream", pa.string()), *((name, pa.int64()) for name in ("low", "high", "frontier"))])


class SimulatedProducer:
    """One client of one stream; it claims the stream, then pushes until a newer one takes over."""

    def __init__(self, number, stream, refill=None):
        self.number, self.stream, self.refill = number, stream, refill
        self.outbox = self.call = self.claim = None
        self.producer, self.values, self.ended = 0, {}, False

    def begin(self, first, producer):
        self.producer, first = producer, first if self.refill is None else min(self.refill)
        self.outbox = Outbox(SCHEMA, first, CLIENT_LIMITS)

    def busy(self):
        """Whether it claims, or holds rows, or has some of a hole to send."""
        if self.ended or self.outbox is None:
            return not self.ended
        return self.outbox.rows > 0 or (self.refill is not None and self.outbox.next <= max(self.refill))

    def offer(self, count, now):
        first = self.outbox.next
        if self.refill is not None:
            count = min(count, max(self.refill) + 1 - first)
        if count <= 0 or not self.outbox.fits(count, 8 * count):
            return
        rows = range(first, first + count)
        values = [self.number * 100_000 + row if self.refill is None else self.refill[row] for row in rows]
        self.values.update(zip(rows, values, strict=True))
        self.outbox.offer(pa.record_batch({"n": values}, schema=SCHEMA), now)


class SimulatedWatch:
    """What a reader sees of gates and controller."""

    def __init__(self, world):
        self.world = world

    def held(self):
        gates = [each for each in self.world.gates.values() if each.joined]
        there = [each for each in gates if each.up]
        lines = [(place, *line) for place, each in enumerate(there) for line in each.index()]
        place, stream, low, high = zip(*lines, strict=True) if lines else ((), (), (), ())
        spoken = [(stream, *promise) for each in there for stream, promise in each.promises.items()]
        promised, frontier, at = zip(*spoken, strict=True) if spoken else ((), (), ())
        known = {each.stream: each.high for each in self.world.registry.streams("r") if not each.empty}
        return HeldRanges(
            gates=tuple(each.name for each in there),
            away=tuple(each.name for each in gates if not each.up),
            streams=pa.array(stream, pa.string()),
            low=np.array(low, np.int64),
            high=np.array(high, np.int64),
            gate=np.array(place, np.int64),
            given_up=np.zeros(len(low), bool),
            since=time.monotonic() if len(there) == len(gates) else None,
            logs={each.name: each.disk.log for each in there},
            known=known,
            forgotten=tuple(self.world.registry.forgotten()),
            promises=Promises(
                pa.array(promised, pa.string()), np.array(frontier, np.int64), np.array(at, np.int64)
            ),
        )

    def tell(self, request):
        for gate in self.world.gates.values():
            if gate.up and gate.joined and self.world.chance.random() < 0.8:
                gate.tell(request)

    def tell_controllers(self, request):
        self.world.registry.reader_at(request.inlet, request.reader, request.upto, 0.0)
        return True


class SimulatedReader:
    """An `InletReader` with its checkpoint: the offset, and the epoch that is planned."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.offset, self.planned, self.error = Offsets(), None, None
        self.got = {}
        self.excused = bool(world.wiped)
        """Whether a disk was lost that it had not read from: nobody can know what was there."""
        self.restart()

    def restart(self):
        patience = 0.0 if self.world.healed else float("inf")
        self.inlet = InletReader(SimulatedWatch(self.world), "r", self.name, patience=patience)
        self.inlet._began -= 60  # the first epoch has waited for all gates

    def step(self):
        if self.error is not None:
            return
        try:
            if self.planned is None:
                end = self.inlet.latest(self.offset, self.world.chance.choice([None, 3, 20]))
                if end is self.offset:
                    return
                self.planned = Offsets.unpacked(end.packed())
                self.check_promises()
            rows = self.fetch()
        except RowsGone as error:
            self.error = error
            return
        except GateAway:
            self.restart()
            return
        if rows is None:
            return
        for stream, sequence, value in rows:
            known = self.got.setdefault(stream, {}).setdefault(sequence, value)
            assert known == value, f"a replay gives {self.name} another row {sequence} of {stream}"
        if self.world.healed or self.world.chance.random() < 0.9:  # otherwise the epoch is replayed
            self.offset, self.planned = self.planned, None
            if self.world.chance.random() < 0.7:
                self.inlet.commit(self.offset)

    def check_promises(self):
        """Every row below a promise is before the offset, and no promise is taken back."""
        upto, now = self.planned.asdict(), self.planned.promises()
        for stream, before in self.offset.promises().items():
            assert now[stream] >= before, f"{self.name} has another promise of {stream} than before"
        for stream, promise in now.items():
            assert promise <= upto[stream], f"{self.name} believes {stream} at {upto[stream]}: {promise}"
        self.world.counts["promised"] += sum(now.values()) > sum(self.offset.promises().values())

    def state(self):
        return id(self.offset), id(self.planned), id(self.error)

    def fetch(self):
        patience, self.inlet._patience = self.inlet._patience, 0.0  # this world does not wait
        try:
            tasks = self.inlet.tasks(self.offset, self.planned, 2)
        except GateAway as error:
            self.inlet._patience = patience
            # With every gate there, the rows of a planned epoch are lost: this ends the run.
            self.error = error if self.world.healed and self.inlet._held is None else None
            self.inlet._held = None
            return None
        self.inlet._patience = patience
        rows = []
        for part in (part for task in tasks for part in task):
            gate = self.world.gates[part.gate]
            stored = gate.disk.stored
            for stream, first, last in part.wanted:
                if not gate.up or any(row not in stored.get(stream, {}) for row in range(first, last)):
                    self.inlet._held = None
                    return None
                rows += [(stream, row, stored[stream][row]) for row in range(first, last)]
        return rows


class IngestSimulation:
    """Two streams, two gates and one that joins, a controller, two readers and one that comes later."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.now, self.numbers, self.logs, self.healed = 0.0, 0, 0, False
        self.disasters = self.chance.choice([0.0, 0.4])
        self.counts = Counter()
        self.base = DirectoryStore(None)
        self.registry = StreamRegistry(self.base, AWAY, 0.0)
        self.gates, self.calls, self.producers, self.readers = {}, [], [], []
        self.acknowledged = {}
        self.wiped = {}
        self.streams = ("r/a", "r/b")
        for name in ("a:1", "b:1"):
            self.join(name)
        for stream in self.streams:
            self.produce(stream)
        for name in ("one", "two"):
            self.readers.append(SimulatedReader(self, name))

    def run(self, steps):
        for _ in range(steps):
            self.step()
        self.heal()
        self.check()

    def step(self):
        self.now += self.chance.random() * 0.3
        draw = self.chance.choice
        gate = draw(list(self.gates.values()))
        producer = draw(self.producers[-3:])
        happenings = (
            (18, lambda: self.offer(producer)),
            (24, lambda: self.send(producer)),
            (3, lambda: self.promise(producer)),
            (24, lambda: self.arrive(draw(self.calls[-6:])) if self.calls else None),
            (24, lambda: self.hear(draw(self.calls[-6:])) if self.calls else None),
            (16, lambda: gate.up and gate.sync(self.chance.randint(1, 4))),
            (10, lambda: self.advance(producer)),
            (5, lambda: draw(self.readers).step()),
            (5, lambda: self.beat(gate)),
            (2, lambda: self.poll(gate)),
            (2, lambda: self.connect(producer)),
            (2, lambda: self.move(producer)),
            (0.5, lambda: self.produce(draw(self.streams))),
            (2, lambda: draw(self.readers).restart()),
            (1, lambda: gate.up and gate.fail_writes()),
            (1, lambda: self.crash(gate)),
            (2, lambda: self.come_back(gate)),
            (self.disasters, lambda: self.wipe(gate)),
            (2, lambda: self.restore(gate)),
            (1, self.refill),
            (3, lambda: self.snapshot(gate)),
            (1, self.restart_controller),
            (0.5, lambda: self.join("c:1") if "c:1" not in self.gates else None),
            (0.5, self.late_reader),
        )
        weights = [weight for weight, _ in happenings]
        self.chance.choices([happen for _, happen in happenings], weights)[0]()

    # ---- gates and the controller ----

    def join(self, name):
        self.logs += 1
        gate = self.gates[name] = SimulatedGate(name, f"log-{self.logs}", awaits_readers=True)
        gate.joined, gate.copy = False, None
        self.beat(gate)

    def beat(self, gate):
        if not gate.up:
            return
        self.registry.register(gate.name, {"log": gate.disk.log}, self.now)
        gate.joined = True
        readers = tuple((each.inlet, each.reader) for each in self.registry.readers())
        gate.tell(ReadersListed(readers))

    def poll(self, gate):
        if gate.up:
            rows = [{"stream": s, "low": low, "high": high} for s, low, high in gate.index()]
            self.registry.observe(gate.name, pa.Table.from_pylist(rows, INDEX))

    def restart_controller(self):
        self.registry = StreamRegistry(self.base, AWAY, self.now)

    def crash(self, gate):
        gate.crash(self.chance.randint(0, 3))

    def come_back(self, gate):
        if not gate.up:
            gate.start()

    def snapshot(self, gate):
        gate.copy = copy.deepcopy(gate.disk)

    def wipe(self, gate):
        """The disk is lost; the gate comes back empty at the same address."""
        self.counts["wiped"] += 1
        gate.crash(0)
        self.wiped.setdefault(gate.name, []).append(gate.disk.log)
        for reader in self.readers:
            reader.excused = reader.excused or gate.name not in reader.offset.logs
        self.logs += 1
        gate.disk = Disk(f"log-{self.logs}")
        gate.start()
        self.beat(gate)
        if self.chance.random() < 0.7:
            self.produce(self.chance.choice(self.streams))

    def restore(self, gate):
        """An old copy of the disk comes back; the controller had seen what was there."""
        if gate.copy is None or gate.copy.log != gate.disk.log:
            return
        self.counts["restored"] += 1
        self.come_back(gate)
        self.poll(gate)
        gate.crash(0)
        gate.disk = copy.deepcopy(gate.copy)
        gate.start()
        self.beat(gate)

    # ---- producers ----

    def produce(self, stream, refill=None):
        self.numbers += 1
        producer = SimulatedProducer(self.numbers, stream, refill)
        producer.claim = self.claiming(producer)
        self.producers.append(producer)
        return producer

    def claiming(self, producer):
        """A directory carries out a claim, one message at a time; it fails with a gate or a controller."""
        controller, answer = self.registry, None
        question = NextQuestion(controller, [producer.stream], claim=True)
        while answer is None:
            answers = []
            for name, request in question.requests(self.now).items():
                yield
                while self.gates[name].up and (said := self.gates[name].ask(request)) is None:
                    yield
                if not self.gates[name].up:
                    return
                answers.append(said)
            yield
            if self.registry is not controller:
                return
            answer = question.conclude(answers)
        producer.begin(answer.next[producer.stream], answer.producers[producer.stream])
        self.connect(producer)

    def advance(self, producer):
        if producer.claim is not None and producer.outbox is None and next(producer.claim, self) is self:
            producer.claim = None if producer.outbox is not None else self.claiming(producer)

    def connect(self, producer, gate=None):
        if producer.outbox is None or producer.ended:
            return
        if producer.producer < self.registry.producer(producer.stream):
            producer.ended = True
            return
        target = self.gates[gate or self.registry.where({producer.stream: None}, self.now)[producer.stream]]
        producer.outbox.suspend()
        producer.call = None
        if target.up:
            producer.call = target.open()
            self.calls.append(producer.call)
            producer.outbox.resume()

    def move(self, producer):
        """The controller sends a stream elsewhere; its producer hears of it at once."""
        target = self.chance.choice(list(self.gates))
        if self.gates[target].up and producer.stream in {each.stream for each in self.registry.streams()}:
            self.registry.move([producer.stream], target, self.now)
            self.connect(producer)

    def offer(self, producer):
        if producer.outbox is not None and not producer.ended:
            producer.offer(self.chance.randint(1, 7), self.now)

    def promise(self, producer):
        if producer.outbox is not None and not producer.ended:
            producer.outbox.promise(producer.outbox.next, self.now)

    def send(self, producer):
        if producer.outbox is None or producer.ended:
            return
        if producer.call is None or not producer.call.alive:
            self.connect(producer)
            return
        outgoing = producer.outbox.take(self.now)
        if outgoing is not None:
            push = Push(
                producer.stream,
                outgoing.sequence,
                outgoing.connect,
                outgoing.frontier,
                None,
                producer.producer,
            )
            producer.call.forward.append((push.encode(), outgoing.batch))
            producer.call.owner = producer

    def arrive(self, call):
        if call.alive and call.forward:
            body, batch = call.forward.popleft()
            call.gate.receive(call, Push.decode(body), batch)

    def hear(self, call):
        if not call.back:
            return
        producer = call.owner
        for answer in decode_answers(call.back.popleft()):
            if not isinstance(answer, Refusal) and answer.acknowledged is not None:
                self.acknowledge(producer, answer)
            if producer.call is not call or producer.ended:
                continue
            match answer:
                case Wait(wait=seconds):
                    producer.outbox.hold(seconds, self.now)
                case Refusal(expected=int(expected)):
                    producer.outbox.expect(expected)
                case Refusal(refused="TakenOver"):
                    self.counts["taken over"] += 1
                    producer.ended = True
                case Refusal():
                    raise AssertionError(answer.message)

    def acknowledge(self, producer, answer):
        before = producer.outbox.acknowledged
        producer.outbox.acknowledge(
            answer.acknowledged, None if isinstance(answer, Redirect) else answer.credit
        )
        rows = self.acknowledged.setdefault(producer.stream, {})
        for row in range(before, producer.outbox.acknowledged):
            value = producer.values[row]
            if not self.wiped:
                assert rows.get(row, value) == value, f"{row} of {producer.stream} was acknowledged to two"
            rows.setdefault(row, value)
            self.counts["acknowledged"] += 1

    # ---- readers and the end ----

    def late_reader(self):
        if len(self.readers) < 3:
            self.readers.append(SimulatedReader(self, "late"))

    def missing(self):
        """Acknowledged rows that no gate holds and that some reader may need, by stream."""
        found = {}
        for stream, rows in self.acknowledged.items():
            held = {row for gate in self.gates.values() for row in gate.disk.stored.get(stream, ())}
            settled = max(gate.disk.settled.get(stream, 0) for gate in self.gates.values())
            found[stream] = [row for row in sorted(rows) if row not in held and row >= settled]
        return {stream: rows for stream, rows in found.items() if rows}

    def refill(self):
        """After a disk came back old, a producer sends again what readers miss."""
        if self.wiped or not all(gate.up for gate in self.gates.values()):
            return
        for stream, missing in self.missing().items():
            rows = self.acknowledged[stream]
            self.counts["refilled"] += 1
            end = RowRanges((row, row + 1) for row in sorted(rows)).reach(missing[0])
            self.produce(stream, {row: rows[row] for row in range(missing[0], end)})

    def heal(self):
        """Nothing fails any more."""
        self.healed = True
        for gate in self.gates.values():
            self.come_back(gate)
            self.beat(gate)
        self.settle()
        for _ in range(4):
            self.refill()
            self.settle()
        assert self.wiped or not self.missing(), f"refilled rows are on no gate: {self.missing()}"
        for reader in self.readers:
            reader.restart()
        still = 0
        while still < 2:  # a reader that meets an old index looks again
            before = [each.state() for each in self.readers]
            for reader in self.readers:
                reader.step()
            after = [each.state() for each in self.readers]
            still = still + 1 if before == after else 0

    def settle(self):
        for _ in range(300):
            if not self.flow():
                return
        raise AssertionError("rows are still not acknowledged")

    def flow(self):
        """Let everything that is on its way arrive; whether a producer still has something to do."""
        self.now += 1.0
        for producer in self.producers:
            if producer.refill is not None:
                self.offer(producer)
            self.advance(producer)
            self.send(producer)
        for call in self.calls:
            while call.alive and call.forward:
                self.arrive(call)
        for gate in self.gates.values():
            gate.sync(1000)
            self.poll(gate)
        for call in self.calls:
            while call.back:
                self.hear(call)
        return any(each.busy() for each in self.producers)

    def check(self):
        """Every acknowledged row once and in order at every reader, or an error that it raised."""
        for reader in self.readers:
            if reader.error is not None:
                self.counts["errors"] += 1
                continue
            read_before = [gate for gate, logs in self.wiped.items() if reader.offset.logs.get(gate) in logs]
            assert not read_before, f"{reader.name} did not notice that {read_before} lost their disks"
            if reader.excused:
                continue
            for stream, rows in self.acknowledged.items():
                if stream in reader.offset.waiting or stream not in reader.offset.asdict():
                    continue  # named as expected; or everything was deleted before this reader came
                began = reader.offset.began.get(stream, 0)
                got = reader.got.get(stream, {})
                lost = [row for row in rows if row >= began and got.get(row) != rows[row]]
                assert not lost, f"{reader.name} has not had rows {lost[:5]} of {stream}"
                assert sorted(got) == list(range(began, began + len(got)))
                self.counts["read"] += len(got)
