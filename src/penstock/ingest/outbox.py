"""The rows of one stream from push to acknowledgement: each is held until a gate has it, all go in order.

A state machine without I/O and without a clock: rows and answers in, batches out, time as an argument. Three
places hold the rows, in the order of their sequence numbers: those *in flight* (sent, not acknowledged),
those *queued* (cut and to be sent again) and those *loose* (never sent).
"""

from collections import deque
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.ingest.client_limits import ClientLimits
from penstock.ingest.cutting import LooseRows

__all__ = ["Outbox", "Parcel"]


@dataclass(frozen=True, slots=True)
class Parcel:
    """One batch to send; `ready` is the time from which it only waited for its turn."""

    sequence: int
    batch: pa.RecordBatch
    ready: float
    frontier: int | None = None
    connect: bool = False

    @property
    def end(self) -> int:
        """The sequence number after its last row."""
        return self.sequence + int(self.batch.num_rows)


class Outbox:
    """The buffer of one stream.

    >>> rows = pa.record_batch({"a": [1, 2, 3]})
    >>> outbox = Outbox(rows.schema, 0, ClientLimits(batch_rows=2, batch_seconds=1.0))
    >>> outbox.offer(rows, now=5.0)
    >>> outbox.resume()
    >>> parcel = outbox.take(now=5.0)
    >>> parcel.sequence, parcel.end, parcel.connect, outbox.due()
    (0, 2, True, 6.0)
    >>> outbox.acknowledge(2)
    >>> outbox.rows, outbox.take(now=6.0).batch.to_pydict()
    (1, {'a': [3]})
    """

    def __init__(self, schema: pa.Schema, sequence: int, limits: ClientLimits) -> None:
        self._schema = schema
        self.next = sequence
        self.acknowledged = sequence
        self.limits = limits
        self.flowing = False
        self.sent = sequence
        self._flight: deque[Parcel] = deque()
        self._flight_bytes = 0
        self._queue: deque[Parcel] = deque()
        self._loose = LooseRows()
        self._loose_since = 0.0
        self._cut_bytes = 0
        self._hurried = 0
        self._held_until = 0.0
        self._credit: int | None = None
        self._connect = True
        self._promise: tuple[int, int, float] | None = None
        self._promise_sent = False

    @property
    def rows(self) -> int:
        """Rows pushed and not acknowledged."""
        return self.next - self.acknowledged

    @property
    def bytes(self) -> int:
        """Bytes held; a batch is held whole until its last row is acknowledged."""
        return self._cut_bytes + self._loose.bytes

    @property
    def waiting(self) -> bool:
        """Whether an answer is owed."""
        return bool(self._flight)

    def fits(self, rows: int, size: int) -> bool:
        """Whether so much more may be offered; an empty buffer takes any one piece."""
        within = self.rows + rows <= self.limits.buffer_rows and self.bytes + size <= self.limits.buffer_bytes
        return within or self.rows == 0

    def offer(self, batch: pa.RecordBatch, now: float) -> None:
        """Take rows in; they have the next sequence numbers."""
        if batch.num_rows == 0:
            return
        if self._loose.rows == 0:
            self._loose_since = now
        self._loose.add(batch)
        self.next += batch.num_rows

    def promise(self, frontier: int, now: float) -> None:
        """Say that no later row is below this time; it goes with the last row offered so far, or alone."""
        self._promise = (self.next, frontier, now)
        self._promise_sent = False

    def hurry(self) -> None:
        """Let everything offered so far go without waiting to be `batch_seconds` old."""
        self._hurried = self.next

    def resume(self) -> None:
        """A gate is there: rows may flow, from what is not acknowledged on."""
        self.flowing = True
        self._connect = True

    def suspend(self) -> None:
        """The gate is gone or to be left: whatever it has not acknowledged will be sent again."""
        self.flowing = False
        self._rewind(self.acknowledged)
        self._credit = None
        self._held_until = 0.0

    def due(self) -> float | None:
        """When `take` has something; None if only a call of another method can change that."""
        ready = self._ready()
        if not self.flowing or ready is None or not self._allowed():
            return None
        return max(ready, self._held_until)

    def take(self, now: float) -> Parcel | None:
        """The next batch to send, if one is due."""
        due = self.due()
        if due is None or due > now:
            return None
        parcel = self._queue.popleft() if self._queue else self._cut()
        # A batch that was to connect and was not taken connects again: all before it is acknowledged.
        connect = self._connect or parcel.connect
        sent = replace(parcel, frontier=self._frontier(parcel), connect=connect)
        self._connect = False
        self._flight.append(sent)
        self._flight_bytes += sent.batch.nbytes
        self.sent = max(self.sent, sent.end)
        return sent

    def acknowledge(self, upto: int, credit: int | None = None) -> None:
        """Every row before `upto` is durable: forget them; `credit` bytes may be in flight from now on."""
        self.acknowledged = max(self.acknowledged, min(upto, self._cut_end()))
        while self._flight and self._flight[0].end <= self.acknowledged:
            batch = self._flight.popleft().batch
            self._flight_bytes -= batch.nbytes
            self._cut_bytes -= batch.nbytes
        while self._queue and self._queue[0].end <= self.acknowledged:
            self._cut_bytes -= self._queue.popleft().batch.nbytes
        self._credit = credit

    def hold(self, seconds: float, now: float) -> None:
        """The gate did not take what is in flight: send it again, but not before so many seconds."""
        self._rewind(self.acknowledged)
        self._held_until = max(self._held_until, now + seconds)

    def expect(self, sequence: int) -> None:
        """The gate misses rows from here on: send them again."""
        if sequence < self.acknowledged:
            # The gate knows nothing of the rows before: it has to be told where the stream goes on.
            self._connect = True
        self._rewind(sequence)

    def _rewind(self, sequence: int) -> None:
        while self._flight and self._flight[-1].end > sequence:
            parcel = self._flight.pop()
            self._flight_bytes -= parcel.batch.nbytes
            self._queue.appendleft(parcel)
        # Whoever gets the rows next has to hear the latest promise too.
        self._promise_sent = False

    def _ready(self) -> float | None:
        if self._queue:
            return self._queue[0].ready
        if self._loose.rows:
            full = self._loose.rows >= self.limits.batch_rows or self._loose.bytes >= self.limits.batch_bytes
            hurried = self._hurried > self._cut_end()
            return self._loose_since + (0.0 if full or hurried else self.limits.batch_seconds)
        if self._promise is not None and not self._promise_sent:
            return self._promise[2] + self.limits.batch_seconds
        return None

    def _allowed(self) -> bool:
        """Whether the gate takes more; one batch always, or nothing could ever give credit again."""
        if not self._flight:
            return True
        if self._credit is None:
            return len(self._flight) < self.limits.window_batches
        return self._flight_bytes < self._credit

    def _cut(self) -> Parcel:
        sequence = self._cut_end()
        ready = self._ready()
        assert ready is not None, "only what is due is cut"
        if self._loose.rows == 0:
            return Parcel(sequence, pa.RecordBatch.from_pylist([], self._schema), ready)
        batch = self._loose.cut(self.limits.batch_rows, self.limits.batch_bytes)
        self._cut_bytes += batch.nbytes
        return Parcel(sequence, batch, ready)

    def _cut_end(self) -> int:
        return self.next - self._loose.rows

    def _frontier(self, parcel: Parcel) -> int | None:
        if self._promise is None or self._promise_sent or parcel.end < self._promise[0]:
            return parcel.frontier
        self._promise_sent = True
        return self._promise[1]
