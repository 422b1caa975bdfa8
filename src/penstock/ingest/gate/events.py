"""What happens to a gate, and what a gate does about it: the vocabulary of `GateState.handle`.

To extend the gate, add a class here, its handler to `GateState` and, for an action, its execution to `Gate`.
Control requests (`Suspend`, `Resume`, `RedirectStreams`, `Drain`, `Declare`, `Committed`, `ForgetReader`,
`DeleteInlet`, `NextRequest`) are events as they come off the wire.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.protocol import (
    Answer,
    Committed,
    Declare,
    DeleteInlet,
    Drain,
    ForgetReader,
    NextRequest,
    Push,
    RedirectStreams,
    Resume,
    Suspend,
)

__all__ = [
    "Action",
    "Append",
    "AwaitRows",
    "BatchOffered",
    "BatchPrepared",
    "CallClosed",
    "CallId",
    "CallOpened",
    "Control",
    "DeleteBelow",
    "Deleted",
    "DropInlet",
    "DropReader",
    "Event",
    "GroupDurable",
    "HoldUp",
    "MetadataStored",
    "Prepare",
    "ProducersStored",
    "Promise",
    "ReaderStored",
    "ReadersListed",
    "Reply",
    "SchemaStored",
    "Send",
    "StoreFailed",
    "StoreMetadata",
    "StoreProducers",
    "StoreReader",
    "StoreSchema",
    "WriteFailed",
]

CallId: TypeAlias = int
"""Names one open push of one client."""


@dataclass(frozen=True, slots=True)
class Append:
    """Action: append these rows to the log after everything appended before.

    It comes back in `GroupDurable` or `WriteFailed`.
    """

    call: CallId
    stream: str
    sequence: int
    rows: int
    frontier: int | None
    size: int
    arrived_ms: int

    @property
    def end(self) -> int:
        """The sequence after the last row."""
        return self.sequence + self.rows


# ---- events --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A client has opened a push."""

    call: CallId
    schema: pa.Schema
    may_push: Callable[[str], bool]
    tenant: str | None = None
    """Whose limits count: that of its token, else the token itself."""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class CallClosed:
    """A push is over, and everything taken from it was answered."""

    call: CallId


@dataclass(frozen=True, slots=True)
class BatchOffered:
    """A batch has arrived; nothing of it was looked at but its size."""

    call: CallId
    push: Push
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class BatchPrepared:
    """The `take` rows after the first `skip` are validated and serialised into `size` bytes.

    `problem` says what makes the rows invalid. `held_up` says that the client was already made to wait for
    memory.
    """

    call: CallId
    push: Push
    rows: int
    skip: int
    take: int
    size: int
    problem: str | None = None
    held_up: bool = False


@dataclass(frozen=True, slots=True)
class SchemaStored:
    """The schema of a new inlet was written."""

    inlet: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class MetadataStored:
    """The metadata of a stream was written."""

    stream: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProducersStored:
    """The newest producers of streams were written."""

    producers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReaderStored:
    """The name of a new reader was written and synced."""

    inlet: str
    reader: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class ReadersListed:
    """The controller has said which readers, as (inlet, reader), there are, and which were forgotten."""

    readers: tuple[tuple[str, str], ...]
    forgotten: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class IntakeLimited:
    """The controller has said how many rows a second to take for now, and why; 0 is no limit."""

    rows: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """What a batch needed could not be written: its schema or its metadata."""

    call: CallId
    stream: str
    reason: str


@dataclass(frozen=True, slots=True)
class GroupDurable:
    """Appended rows are on disk; the size of the log and its recent speed in bytes per second."""

    appends: tuple[Append, ...]
    store_bytes: int
    speed: float


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """Nothing of these rows is in the log; they are all that was appended and is not durable."""

    appends: tuple[Append, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """The log was looked through for files to delete; its size now."""

    store_bytes: int


Control: TypeAlias = (
    Suspend
    | Resume
    | RedirectStreams
    | Drain
    | Declare
    | Committed
    | ForgetReader
    | DeleteInlet
    | NextRequest
    | ReadersListed
    | IntakeLimited
)
Event: TypeAlias = (
    CallOpened
    | CallClosed
    | BatchOffered
    | BatchPrepared
    | SchemaStored
    | MetadataStored
    | ProducersStored
    | ReaderStored
    | StoreFailed
    | GroupDurable
    | WriteFailed
    | Deleted
    | Control
)

# ---- actions -------------------------------------------------------------------------------------------
# After Prepare, StoreSchema, StoreMetadata, StoreProducers, StoreReader, AwaitRows and HoldUp the state waits
# for an event: it has done nothing yet for the event that it answered with them.


@dataclass(frozen=True, slots=True)
class Prepare:
    """Validate and serialise the `take` rows after the first `skip`, then report `BatchPrepared`."""

    skip: int
    take: int


@dataclass(frozen=True, slots=True)
class HoldUp:
    """Wait up to this many seconds for memory, then report the batch again; this slows its client down."""

    seconds: float
    size: int


@dataclass(frozen=True, slots=True)
class StoreSchema:
    """Write the schema of a new inlet, report `SchemaStored`, then the batch again."""

    inlet: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Write the metadata of a stream, report `MetadataStored`, then the batch again."""

    stream: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoreProducers:
    """Write the newest producers of streams, report `ProducersStored`, then what they came with again.

    Those of a batch are synced with its rows, those of a `NextRequest` before it is answered.
    """

    producers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AwaitRows:
    """Wait until no row of these streams is on its way to the disk, then ask again."""

    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreReader:
    """Write and sync the name of a reader or its run, report `ReaderStored`, then its positions again."""

    inlet: str
    reader: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class DropReader:
    """Remove the name of a reader from the disk."""

    inlet: str
    reader: str


@dataclass(frozen=True, slots=True)
class DropInlet:
    """Forget an inlet, its readers and its rows on the disk."""

    inlet: str


@dataclass(frozen=True, slots=True)
class Send:
    """Answer a client."""

    call: CallId
    answer: Answer


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the control request that is being handled."""

    message: Message


@dataclass(frozen=True, slots=True)
class Promise:
    """Let readers see a frontier that came without rows: no row from the number `at` on is below it."""

    stream: str
    frontier: int
    at: int


@dataclass(frozen=True, slots=True)
class DeleteBelow:
    """Delete log files that no reader needs, by the positions of every (inlet, reader); report `Deleted`."""

    committed: Mapping[tuple[str, str], Mapping[str, int]]


Action: TypeAlias = (
    Append
    | Prepare
    | HoldUp
    | StoreSchema
    | StoreMetadata
    | StoreProducers
    | AwaitRows
    | StoreReader
    | DropReader
    | DropInlet
    | Send
    | Reply
    | Promise
    | DeleteBelow
)
