"""One stream at a gate: which rows are held, on their way to the disk or expected, and who waits."""

from dataclasses import dataclass, field

from penstock.errors import GateError
from penstock.ingest.gate.events import Append, CallId
from penstock.ingest.gate.ranges import RowRanges
from penstock.ingest.wire.protocol import Push

__all__ = ["StreamState", "Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Skip the rows that are there, take those after them; what follows these comes again later."""

    skip: int
    take: int
    gap: bool = False


def judge(taken: RowRanges, expected: int, first: int, rows: int, *, connect: bool) -> Verdict:
    """What to do with the rows [first, first + rows) of a stream of which some rows are there.

    A row counts as a duplicate only if it is there. Rows of a hole are taken, up to the next row that is
    there.

    >>> taken = RowRanges([(0, 100), (200, 300)])
    >>> judge(taken, 300, 295, 10, connect=False), judge(taken, 300, 80, 10, connect=True)
    (Verdict(skip=5, take=5, gap=False), Verdict(skip=10, take=0, gap=False))
    >>> judge(taken, 300, 310, 10, connect=False), judge(taken, 300, 310, 10, connect=True)
    (Verdict(skip=0, take=10, gap=True), Verdict(skip=0, take=10, gap=False))
    >>> judge(taken, 300, 190, 20, connect=True)
    Verdict(skip=0, take=10, gap=False)
    """
    end = first + rows
    start = min(taken.reach(first), end)
    stop = min(taken.following(start), end)
    return Verdict(start - first, stop - start, gap=start < end and start > expected and not connect)


@dataclass(slots=True, eq=False)
class StreamState:
    """One stream between its client and the log.

    `stored` are the rows that are durable here, or that every reader was done with; `taken` has those on
    their way to the disk too.
    """

    stream: str
    stored: RowRanges
    taken: RowRanges = field(init=False)
    expected: int = field(init=False)
    """The row that follows what the client sent last."""
    since: int = field(init=False)
    """Where the client connected: rows from here on are acknowledged once all of them are durable here."""
    promised: tuple[int, int] | None = None
    """A frontier that holds once all rows before it are durable, and the first row that it speaks of."""
    pending: int = 0
    pending_bytes: int = 0
    suspended: bool = False
    told_to_wait: tuple[float, GateError] | None = None
    """Seconds and reason of the last batch that was not taken; rows after it wait for the same reason."""
    told_call: CallId | None = None
    """The call that was told; on another one such rows are a gap, since nobody may send those before."""
    redirected_to: str | None = None
    call: CallId | None = None
    """The call that sent last."""
    listeners: set[CallId] = field(default_factory=set)
    """Other calls that sent rows which are still on their way to the disk: they hear of them too."""
    rows: int = 0
    bytes: int = 0
    batches: int = 0
    waits_since: float = 0.0
    """When the oldest row came to the client that no gate had acknowledged, as the client last said."""
    waits_upto: int = 0
    """The number after the last row that the client held then."""

    def __post_init__(self) -> None:
        self.taken = RowRanges(self.stored.all())
        self.since = self.expected = self.stored.high

    @property
    def durable(self) -> int:
        """Every row from where the client connected to here is durable."""
        return self.stored.reach(self.since)

    def judge(self, push: Push, rows: int) -> Verdict:
        """What to do with the rows of a batch; nearly always they follow all others."""
        if push.sequence == self.expected == self.taken.high:
            return Verdict(skip=0, take=rows)
        return judge(self.taken, self.expected, push.sequence, rows, connect=push.connect)

    def connected(self, sequence: int) -> None:
        """The client begins here: after a gap, whose rows another gate has, or in a hole that it refills."""
        self.since, self.expected = sequence, self.taken.reach(sequence)

    def reported(self, push: Push, now: float) -> None:
        """Note what waits at the client."""
        if push.oldest is not None:
            self.waits_since, self.waits_upto = now - push.oldest, push.upto or 0

    def left(self) -> None:
        """The client is gone, or sent elsewhere: what waits there is told to another gate."""
        self.waits_upto = 0

    def client_rows(self) -> int:
        """Rows that the client held when it last spoke, and that are not acknowledged."""
        return max(self.waits_upto - self.durable, 0)

    def oldest(self, now: float) -> float:
        """The age of the oldest row that waits at the client; exact while the client is made to wait.

        Between two batches of a client that is not, some rows may be acknowledged that this still counts.
        """
        return max(now - self.waits_since, 0.0) if self.client_rows() else 0.0

    def promise(self, frontier: int | None, at: int) -> None:
        """Note a frontier that came without rows, before the row `at`."""
        if frontier is not None and (self.promised is None or frontier > self.promised[0]):
            self.promised = (frontier, at)

    def appended(self, append: Append) -> None:
        """Count rows that are on their way to the disk."""
        self.told_to_wait = None
        self.taken.add(append.sequence, append.end)
        self.expected = self.taken.reach(append.sequence)
        self.pending += 1
        self.pending_bytes += append.size

    def left_memory(self, append: Append) -> None:
        """Stop counting rows that are durable or lost."""
        self.pending -= 1
        self.pending_bytes -= append.size

    def stored_now(self, append: Append) -> None:
        """Count rows that are durable."""
        self.stored.add(append.sequence, append.end)
        self.rows += append.rows
        self.bytes += append.size
        self.batches += 1

    def lost(self, append: Append) -> None:
        """Expect rows again that were not written."""
        self.taken.remove(append.sequence, append.end)
        self.expected, self.promised = append.sequence, None
