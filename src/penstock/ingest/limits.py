"""The limits of a gate: every buffer, table and message of it is bounded by one of these."""

from dataclasses import dataclass, fields

from penstock.errors import BadGate

__all__ = ["Limits"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits with defaults that work; sizes in bytes.

    >>> Limits(calls=0)
    Traceback (most recent call last):
        ...
    penstock.errors.BadGate: limit calls=0; give 1 or more
    """

    message_bytes: int = 64 * MIB
    """One record batch."""
    message_rows: int = 4_000_000
    """Rows of one record batch."""
    stream_bytes: int = 16 * MIB
    """Rows of one stream in memory, taken but not yet durable: the stream's credit."""
    gate_bytes: int = 256 * MIB
    """The same over all streams."""
    token_bytes: int = 128 * MIB
    """The same over all streams that are pushed with one token."""
    calls: int = 256
    """Pushes open at once; each has two threads."""
    calls_per_token: int = 128
    """Pushes open at once with one token."""
    reads: int = 64
    """Reads open at once."""
    reads_per_token: int = 32
    """Reads open at once with one token."""
    requests: int = 64
    """Other requests served at once."""
    requests_per_token: int = 32
    """Other requests served at once for one token."""
    request_bytes: int = 16 * MIB
    """One request, or the ticket of one read."""
    ranges: int = 200_000
    """Ranges in the ticket of one read."""
    idle_seconds: float = 30.0
    """A push that has sent nothing for this long loses its place when another one needs it."""
    streams_per_client: int = 10_000
    """Streams that one push carries."""
    streams: int = 100_000
    """Streams that the gate knows, also those of which all rows were deleted."""
    readers: int = 1000
    """Readers of one inlet."""
    silent_seconds: float = 600.0
    """A reader that has not committed for so long, and for which rows are kept, is named as forgotten."""
    segment_bytes: int = 128 * MIB
    """A log file is closed at this size; rows are deleted by whole files."""
    group_bytes: int = 8 * MIB
    """Written with one sync."""
    store_bytes: int = 64 * 1024 * MIB
    """All log files and the catalogue; at this size clients are told to wait until readers have committed."""
    keep_bytes: int = 0
    """Committed log files are kept up to this total size, for later readers."""
    rows_per_second: float = 0.0
    """Rows that the gate takes, all streams together; above it clients are told to wait. 0 for no limit."""
    discard_uncommitted: bool = False
    """Over `store_bytes` delete the oldest file though a reader has not committed it; counted."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, least = (
                getattr(self, each.name),
                0
                if each.name in {"keep_bytes", "discard_uncommitted", "idle_seconds", "rows_per_second"}
                else 1,
            )
            if value < least:
                raise BadGate(f"limit {each.name}={value}; give {least} or more")
