"""One stream at a gate: which rows are expected, durable or on their way to the disk, and who waits."""

from dataclasses import dataclass, field

from penstock.errors import GateError
from penstock.ingest.gate.events import Append, CallId
from penstock.ingest.wire.protocol import Push

__all__ = ["StreamState", "Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Take the rows after the first `skip`; if all are skipped, the batch is a duplicate."""

    skip: int
    gap: bool = False


def judge(expected: int, first: int, rows: int, *, connect: bool) -> Verdict:
    """What to do with the rows [first, first + rows) of a stream whose next row is `expected`.

    >>> judge(100, 95, 10, connect=False), judge(100, 80, 10, connect=True)
    (Verdict(skip=5, gap=False), Verdict(skip=10, gap=False))
    >>> judge(100, 110, 10, connect=False), judge(100, 110, 10, connect=True)
    (Verdict(skip=0, gap=True), Verdict(skip=0, gap=False))
    """
    if first > expected:
        return Verdict(0, gap=not connect)
    return Verdict(min(expected - first, rows))


@dataclass(slots=True, eq=False)
class StreamState:
    """One stream between its client and the log.

    Rows below `durable` are on disk, rows from there to `expected` are appended.
    """

    stream: str
    expected: int
    durable: int = field(init=False)
    promised: int | None = None
    """A frontier that holds once all rows before it are durable."""
    pending: int = 0
    pending_bytes: int = 0
    suspended: bool = False
    told_to_wait: tuple[float, GateError] | None = None
    """Seconds and reason of the last batch that was not taken; rows after it wait for the same reason."""
    redirected_to: str | None = None
    call: CallId | None = None
    """The call that sent last."""
    listeners: set[CallId] = field(default_factory=set)
    """Other calls that sent rows which are still on their way to the disk: they hear of them too."""
    rows: int = 0
    bytes: int = 0
    batches: int = 0

    def __post_init__(self) -> None:
        self.durable = self.expected

    def judge(self, push: Push, rows: int) -> Verdict:
        """What to do with the rows of a batch."""
        return judge(self.expected, push.sequence, rows, connect=push.connect)

    def begin_range(self, sequence: int) -> None:
        """Continue after a gap: the rows between were acknowledged by another gate."""
        self.expected = sequence
        if not self.pending:
            self.durable = sequence

    def promise(self, frontier: int | None) -> None:
        """Note a frontier that came without rows."""
        if frontier is not None and (self.promised is None or frontier > self.promised):
            self.promised = frontier

    def appended(self, append: Append) -> None:
        """Count rows that are on their way to the disk."""
        self.told_to_wait = None
        self.expected = append.end
        self.pending += 1
        self.pending_bytes += append.size

    def left_memory(self, append: Append) -> None:
        """Stop counting rows that are durable or lost."""
        self.pending -= 1
        self.pending_bytes -= append.size

    def stored(self, append: Append) -> None:
        """Count rows that are durable."""
        self.durable = append.end
        self.rows += append.rows
        self.bytes += append.size
        self.batches += 1
