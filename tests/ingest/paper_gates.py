"""Gates and wires on paper: what a gate does with a batch, and answers that are on their way."""

from collections import deque

import pyarrow as pa

from penstock.ingest.client.outbox import ClientLimits, Outbox

SCHEMA = pa.schema([("n", pa.int64())])


def rows(first, count):
    return pa.record_batch({"n": range(first, first + count)}, schema=SCHEMA)


class PaperGate:
    """Holds the rows of one stream by sequence number, and expects the next one."""

    def __init__(self):
        self.rows = {}
        self.expected = 0

    def take(self, outgoing, *, wait):
        if wait:
            return ("wait", 0.5)
        if outgoing.sequence > self.expected and not outgoing.connect:
            return ("expect", self.expected)
        self.rows.update(enumerate(outgoing.batch["n"].to_pylist(), start=outgoing.sequence))
        self.expected = (
            max(self.expected, outgoing.end) if outgoing.sequence <= self.expected else outgoing.end
        )
        return ("acknowledge", self.expected)


class PaperWorld:
    """One outbox, two gates, and for each call the batches and answers under way on it."""

    def __init__(self, limits=None):
        self.outbox = Outbox(
            SCHEMA, 0, limits or ClientLimits(batch_rows=4, buffer_rows=40, batch_seconds=1.0)
        )
        self.gates = [PaperGate(), PaperGate()]
        self.now = 0.0
        self.calls = []
        self.connect(0)

    def connect(self, gate):
        self.calls.append((self.gates[gate], deque(), deque()))
        self.outbox.suspend()
        self.outbox.resume()

    def offer(self, count):
        if self.outbox.fits(count, 8 * count):
            self.outbox.offer(rows(self.outbox.next, count), self.now)

    def send(self):
        outgoing = self.outbox.take(self.now)
        if outgoing is not None:
            self.calls[-1][1].append(outgoing)

    def store(self, call, *, wait=False):
        gate, batches, answers = self.calls[call % len(self.calls)]
        if batches:
            answers.append(gate.take(batches.popleft(), wait=wait))

    def hear(self, call):
        call %= len(self.calls)
        answers = self.calls[call][2]
        if not answers:
            return
        kind, value = answers.popleft()
        if kind == "acknowledge":
            self.outbox.acknowledge(value, credit=100)
        elif call == len(self.calls) - 1:
            if kind == "wait":
                self.outbox.hold(value, self.now)
            else:
                self.outbox.expect(value)

    def cut(self, gate):
        """The call breaks: nothing that is under way on it arrives."""
        self.calls[-1][1].clear()
        self.calls[-1][2].clear()
        self.connect(gate)

    def drain(self):
        for _ in range(1000):
            if self.outbox.rows == 0:
                return
            self.now += 1.0
            self.send()
            self.store(-1)
            self.hear(-1)

    def stored(self):
        """All rows by sequence; a number has the same row wherever it is."""
        union = dict(self.gates[0].rows)
        for sequence, value in self.gates[1].rows.items():
            assert union.setdefault(sequence, value) == value
        return [union[sequence] for sequence in sorted(union)]
