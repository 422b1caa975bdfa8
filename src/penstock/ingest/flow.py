"""One stream between its client and the log: what is expected, what is durable, what is on the way."""

from dataclasses import dataclass, field

from penstock.ingest.call import Call
from penstock.ingest.group_commit import Entry

__all__ = ["Flow"]


@dataclass(slots=True, eq=False)
class Flow:
    """The state of one stream; its methods are called with the intake's lock held."""

    stream: str
    expected: int
    durable: int = field(init=False)
    promised: int | None = None
    pending: int = 0
    pending_bytes: int = 0
    suspended: bool = False
    told_to_wait: float = 0.0
    redirected_to: str | None = None
    call: Call | None = None
    """Whoever sent last."""
    hearers: set[Call] = field(default_factory=set)
    """Others who sent rows that are still on their way: they want to hear of them too."""
    rows: int = 0
    bytes: int = 0
    batches: int = 0

    def __post_init__(self) -> None:
        self.durable = self.expected

    def begin(self, sequence: int) -> None:
        """Start a new range: the rows before it were acknowledged elsewhere."""
        self.expected = sequence
        if not self.pending:
            self.durable = sequence

    def promise(self, frontier: int | None) -> None:
        """Hear a frontier; it holds once the rows before it are durable."""
        if frontier is not None and (self.promised is None or frontier > self.promised):
            self.promised = frontier

    def take(self, upto: int, size: int) -> None:
        """Count rows that are on their way to the disk."""
        self.expected = upto
        self.pending += 1
        self.pending_bytes += size

    def store(self, entry: Entry) -> None:
        """Count rows that are durable."""
        self.durable = entry.sequence + entry.rows
        self.rows += entry.rows
        self.bytes += entry.size
        self.batches += 1

    def redirect(self, to: str) -> None:
        """Send the client elsewhere, as soon as all that was taken is answered."""
        self.redirected_to = to
        self.tell()

    def tell(self) -> None:
        """Tell the client of a redirection, once nothing is on its way."""
        if self.redirected_to and self.call and not self.pending:
            self.call.answers.say(self.stream, {"redirect": self.redirected_to, "acknowledged": self.durable})
