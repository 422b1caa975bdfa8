"""The rows of one stream from push to acknowledgement: each is held until a gate has it, all go in order.

A state machine without I/O and without a clock: rows and answers in, batches out, time as an argument. Three
places hold the rows, in the order of their sequence numbers: those *in flight* (sent, not acknowledged),
those *queued* (cut and to be sent again) and those *unsent* (never sent).
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from penstock.errors import BadLimit

MARK_S: Final = 0.01
"""Rows that are offered within this time count as offered together, as old as the first of them."""

__all__ = ["ClientLimits", "Outbox", "OutgoingBatch", "UnsentRows"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """A batch goes when it has `batch_rows` rows or `batch_bytes` bytes or is `batch_seconds` old.

    Rows are held until a gate has acknowledged them, at most `buffer_rows` and `buffer_bytes` of them; at
    most `window_batches` batches are in flight before the gate has given credit.

    >>> ClientLimits(batch_rows=0)
    Traceback (most recent call last):
    penstock.errors.BadLimit: batch_rows is 0; give a number above 0
    """

    batch_rows: int = 10_000
    batch_bytes: int = 4 * 2**20
    batch_seconds: float = 0.02
    buffer_rows: int = 100_000
    buffer_bytes: int = 64 * 2**20
    window_batches: int = 4

    def __post_init__(self) -> None:
        for name in ("batch_rows", "batch_bytes", "buffer_rows", "buffer_bytes", "window_batches"):
            if getattr(self, name) <= 0:
                raise BadLimit(f"{name} is {getattr(self, name)}; give a number above 0")
        if self.batch_seconds < 0:
            raise BadLimit(f"batch_seconds is {self.batch_seconds}; give 0 or more")
        if self.batch_rows > self.buffer_rows or self.batch_bytes > self.buffer_bytes:
            raise BadLimit(
                f"a batch of {self.batch_rows} rows or {self.batch_bytes} bytes does not fit the buffer of "
                f"{self.buffer_rows} rows or {self.buffer_bytes} bytes; give a larger one or smaller batches"
            )


class UnsentRows:
    """A queue of rows that come in pieces of any size and leave in batches.

    >>> unsent = UnsentRows()
    >>> unsent.add(pa.record_batch({"a": [1, 2, 3]}))
    >>> unsent.add(pa.record_batch({"a": [4, 5]}))
    >>> [unsent.cut(4, 1000).to_pydict(), unsent.cut(4, 1000).to_pydict(), unsent.rows]
    [{'a': [1, 2, 3, 4]}, {'a': [5]}, 0]
    """

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self._pieces: deque[pa.RecordBatch] = deque()

    def add(self, piece: pa.RecordBatch) -> None:
        """Take rows in at the end."""
        self._pieces.append(piece)
        self.rows += piece.num_rows
        self.bytes += piece.nbytes

    def cut(self, rows: int, size: int) -> pa.RecordBatch:
        """Up to that many rows and bytes from the front; one row always, however large."""
        taken = [self._first(rows, size)]
        rows -= taken[0].num_rows
        size -= taken[0].nbytes
        while self._pieces and rows > 0 and self._pieces[0].nbytes <= size:
            taken.append(self._first(rows, size))
            rows -= taken[-1].num_rows
            size -= taken[-1].nbytes
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)

    def _first(self, rows: int, size: int) -> pa.RecordBatch:
        """The first piece, or as much of it as fits; halving finds that in a logarithm of its rows."""
        whole = self._pieces.popleft()
        part = whole.slice(0, rows)
        while part.nbytes > size and part.num_rows > 1:
            part = part.slice(0, part.num_rows // 2)
        self.rows -= part.num_rows
        self.bytes -= whole.nbytes
        if part.num_rows < whole.num_rows:
            rest = whole.slice(part.num_rows)
            self._pieces.appendleft(rest)
            self.bytes += rest.nbytes
        return part


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """One batch to send; `ready` is the time from which it only waited for its turn."""

    sequence: int
    batch: pa.RecordBatch
    ready: float
    frontier: int | None = None
    connect: bool = False
    oldest: float = 0.0
    """The age of the oldest row that was not acknowledged when this was sent."""
    upto: int = 0
    """The sequence number after the last row that was offered by then."""

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
    >>> outgoing = outbox.take(now=5.0)
    >>> outgoing.sequence, outgoing.end, outgoing.connect, outbox.due()
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
        self._flight: deque[OutgoingBatch] = deque()
        self._flight_bytes = 0
        self._queue: deque[OutgoingBatch] = deque()
        self._unsent = UnsentRows()
        self._unsent_since = 0.0
        self._cut_bytes = 0
        self._hurried = 0
        self._promise_hurried = False
        self._held_until = 0.0
        self._credit: int | None = None
        self._connect = True
        self._offered: deque[tuple[int, float]] = deque()
        """Where rows that were offered together end, and when they came: at most one for each row held."""
        self._promise: tuple[int, int, float] | None = None
        self._promise_sent = self._promise_heard = False

    @property
    def rows(self) -> int:
        """Rows pushed and not acknowledged."""
        return self.next - self.acknowledged

    @property
    def bytes(self) -> int:
        """Bytes held; a batch is held whole until its last row is acknowledged."""
        return self._cut_bytes + self._unsent.bytes

    def oldest(self, now: float) -> float:
        """The age in seconds of the oldest row that is not acknowledged; 0 if all are."""
        return max(now - self._offered[0][1], 0.0) if self._offered else 0.0

    @property
    def waiting(self) -> bool:
        """Whether an answer is owed."""
        return bool(self._flight)

    def fits(self, rows: int, size: int) -> bool:
        """Whether this much more may be offered; an empty buffer takes any one piece."""
        within = self.rows + rows <= self.limits.buffer_rows and self.bytes + size <= self.limits.buffer_bytes
        return within or self.rows == 0

    def offer(self, batch: pa.RecordBatch, now: float) -> None:
        """Take rows in; they have the next sequence numbers."""
        if batch.num_rows == 0:
            return
        if self._unsent.rows == 0:
            self._unsent_since = now
        self._unsent.add(batch)
        self.next += batch.num_rows
        since = now
        if self._offered and now - self._offered[-1][1] < MARK_S:
            since = self._offered.pop()[1]
        self._offered.append((self.next, since))

    def promise(self, frontier: int, now: float) -> None:
        """Promise that no later row is below this time; sent with the last row offered so far, or alone.

        Alone it goes when nothing else is in flight, so that the next acknowledgement is its own.
        """
        if self._promise is None or frontier > self._promise[1]:
            self._promise = (self.next, frontier, now)
            self._promise_sent = self._promise_heard = False

    @property
    def promise_heard(self) -> bool:
        """Whether a gate has acknowledged the last promise, if there is one."""
        return self._promise is None or self._promise_heard

    def hurry(self) -> None:
        """Let everything offered so far go without waiting to be `batch_seconds` old."""
        self._hurried = self.next
        self._promise_hurried = not self.promise_heard

    def resume(self) -> None:
        """A gate is there: send rows, from the first one that is not acknowledged."""
        self.flowing = True
        self._connect = True

    def suspend(self) -> None:
        """The gate is gone, or the stream leaves it: what it has not acknowledged will be sent again."""
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

    def take(self, now: float) -> OutgoingBatch | None:
        """The next batch to send, if one is due."""
        due = self.due()
        if due is None or due > now:
            return None
        outgoing = self._queue.popleft() if self._queue else self._cut()
        # A batch with `connect` that was not taken connects again: all rows before it are acknowledged.
        connect = self._connect or outgoing.connect
        sent = replace(
            outgoing,
            frontier=self._frontier(outgoing),
            connect=connect,
            oldest=self.oldest(now),
            upto=self.next,
        )
        self._connect = False
        self._flight.append(sent)
        self._flight_bytes += sent.batch.nbytes
        self.sent = max(self.sent, sent.end)
        return sent

    def acknowledge(self, upto: int, credit: int | None = None) -> None:
        """Every row before `upto` is durable: forget them; `credit` bytes may be in flight from now on."""
        self.acknowledged = max(self.acknowledged, min(upto, self._cut_end()))
        while self._flight and self._flight[0].end <= self.acknowledged:
            outgoing = self._flight.popleft()
            self._flight_bytes -= outgoing.batch.nbytes
            self._cut_bytes -= outgoing.batch.nbytes
            if self._promise_sent and self._promise is not None and outgoing.frontier == self._promise[1]:
                self._promise_heard, self._promise_hurried = True, False
        while self._queue and self._queue[0].end <= self.acknowledged:
            self._cut_bytes -= self._queue.popleft().batch.nbytes
        while self._offered and self._offered[0][0] <= self.acknowledged:
            self._offered.popleft()
        self._credit = credit

    def hold(self, seconds: float, now: float) -> None:
        """The gate did not take what is in flight: send it again after this many seconds."""
        self._rewind(self.acknowledged)
        # The batch that connected may be among those that another gate acknowledged meanwhile.
        self._connect = True
        self._held_until = max(self._held_until, now + seconds)

    def expect(self, sequence: int) -> None:
        """The gate misses rows from here on: send them again."""
        if sequence < self.acknowledged:
            # The gate knows nothing of the rows before: it must hear where the stream continues.
            self._connect = True
        self._rewind(sequence)

    def _rewind(self, sequence: int) -> None:
        while self._flight and (self._flight[-1].end > sequence or not self._flight[-1].batch.num_rows):
            outgoing = self._flight.pop()
            self._flight_bytes -= outgoing.batch.nbytes
            if outgoing.batch.num_rows:
                self._queue.appendleft(outgoing)
            else:
                self._connect |= outgoing.connect
        # The next gate must hear the latest promise too.
        self._promise_sent = self._promise_heard = False

    def _ready(self) -> float | None:
        if self._queue:
            return self._queue[0].ready
        if self._unsent.rows:
            full = (
                self._unsent.rows >= self.limits.batch_rows or self._unsent.bytes >= self.limits.batch_bytes
            )
            hurried = self._hurried > self._cut_end()
            return self._unsent_since + (0.0 if full or hurried else self.limits.batch_seconds)
        if self._promise is not None and not self._promise_sent and not self._flight:
            return self._promise[2] + (0.0 if self._promise_hurried else self.limits.batch_seconds)
        return None

    def _allowed(self) -> bool:
        """Whether the gate takes more; one batch always, or nothing could ever give credit again."""
        if not self._flight:
            return True
        if self._credit is None:
            return len(self._flight) < self.limits.window_batches
        return self._flight_bytes < self._credit

    def _cut(self) -> OutgoingBatch:
        sequence = self._cut_end()
        ready = self._ready()
        assert ready is not None, "only what is due is cut"
        if self._unsent.rows == 0:
            return OutgoingBatch(sequence, pa.RecordBatch.from_pylist([], self._schema), ready)
        batch = self._unsent.cut(self.limits.batch_rows, self.limits.batch_bytes)
        self._cut_bytes += batch.nbytes
        return OutgoingBatch(sequence, batch, ready)

    def _cut_end(self) -> int:
        return self.next - self._unsent.rows

    def _frontier(self, outgoing: OutgoingBatch) -> int | None:
        if self._promise is None or self._promise_sent or outgoing.end < self._promise[0]:
            return outgoing.frontier
        self._promise_sent = True
        return self._promise[1]
