"""How the rows of a stage find channels: one value says it, and nobody else has to know.

A `Distribution` is a frozen value that an operator names. Its setting at a time is a `Layout`, which plans
hold and nobody but the distribution reads. The map side of an epoch opens a `Placer`, which gives every row
the channel that it goes to, or several where rows have copies. When the layout changes, `move` says which
rows of state belong where. A row is placed by its content and its number in its task: any attempt of a task,
and any cut of its rows into batches, places it alike.

Where rows are combined into mergeable partials, they may take two hops: a `Forming` deals them out to
channels that form partials, and each partial then goes to the channel that keeps its key. On the driver a
`Steering` makes the layouts: it learns from what channels tell, and follows the changes that users and
policies ask for.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution.cost_columns import RowCosts
from penstock.distribution.frequent_keys import KeyCounts, count_keys
from penstock.errors import BadRescale
from penstock.routing import Resources
from penstock.routing.spark_hash import spark_hash
from penstock.sketches import ValueCosts
from penstock.state.placing import Placing

__all__ = [
    "COUNTING",
    "Change",
    "Counts",
    "Distribution",
    "Files",
    "Form",
    "Forming",
    "Held",
    "KeyCounts",
    "Layout",
    "Measured",
    "One",
    "Placed",
    "Placer",
    "Receipt",
    "RowCosts",
    "Sample",
    "Settings",
    "Steering",
    "Told",
    "by_channel",
    "count_keys",
    "dealt",
    "salts",
]

Placed = tuple[NDArray[np.int64] | None, NDArray[np.int32]]
"""Rows and the channel of each; None for all rows in their order."""

Form = Literal["rows", "combined"]
"""How new rows reach a channel: as they are, or combined into partials on the way."""

COUNTING = "counting"
"""The setting of a stage with keys that says whether they are counted."""

Counts = Literal["never", "as asked", "always"]
"""Whether keys are counted: as asked means while a policy asks for it, and now and then."""

Adapts = Literal["on", "observe", "off"]
"""Layouts follow what is learnt; what they would be is told; neither."""

Sample = Callable[[int], Iterator[NDArray[np.int64]]]
"""The hashes of the keys of a port's next tuples, batch by batch, without those that have a null."""


class Placer(Protocol):
    """Says where the rows of a port go; any attempt of a task says the same of the same rows."""

    @property
    def channels(self) -> int:
        """The number of channels."""

    def place(self, rows: Any) -> Placed:
        """The channels of some rows."""


def by_channel(table: Any, placer: Placer, sent: Any = None) -> Iterator[tuple[int, Any]]:
    """The rows for each channel that gets any, in their order; `sent` has the columns that go, if not all."""
    sent = table if sent is None else sent
    if placer.channels == 1:
        yield 0, sent
        return
    rows, channels = placer.place(table)
    if not len(channels):
        return
    # 16-bit numbers are sorted by radix: linear, and several times faster than by comparison.
    order = np.argsort(channels.astype(np.int16 if placer.channels < 1 << 15 else np.int32), kind="stable")
    sizes = np.bincount(channels, minlength=placer.channels)
    found = sent.take(pa.array(order if rows is None else rows[order]))
    start = 0
    for channel in np.flatnonzero(sizes).tolist():
        yield channel, found.slice(start, int(sizes[channel]))
        start += int(sizes[channel])


@dataclass(frozen=True)
class One:
    """All rows go to the first channel."""

    channels: int = 1

    def place(self, rows: Any) -> Placed:
        """The first channel."""
        return None, np.zeros(rows.num_rows, np.int32)


def salts(rows: Any) -> NDArray[np.uint64]:
    """A number for each row that follows from its content alone."""
    return spark_hash(rows.columns, rows.num_rows)


# Settings.

Stored = TypeVar("Stored")


class Files(Protocol):
    """What layouts name because it is too large for a plan: files named by their content."""

    def store(self, value: Any) -> str:
        """Make a value with `to_bytes` durable and return its name."""

    def find(self, name: str, kind: type[Stored]) -> Stored:
        """The value with this name."""


class Forming(ABC):
    """How rows find the channels that form partials of them for others; part of a layout.

    Where it has a `dealing`, users may ask for it by that name; it is for rows with a key, or for those
    without one.
    """

    kind: ClassVar[str]
    dealing: ClassVar[str] = ""
    keyed: ClassVar[bool] = True
    known: ClassVar[dict[str, type["Forming"]]] = {}

    def __init_subclass__(cls) -> None:
        Forming.known[cls.kind] = cls

    @abstractmethod
    def open(self, keys: tuple[str, ...], bucket: str, channels: int, task: int) -> Placer:
        """Where the rows of a task go; they have these keys, and a bucket of event time."""

    def words(self, channels: int) -> str:
        """What it does, for people."""
        del channels
        return self.kind

    @classmethod
    def planned(cls, channels: int, held: "Held | None") -> Self:
        """That of the next epoch, from what the stage has; None before its first epoch."""
        del channels, held
        return cls()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """From its plain values."""
        return cls(**value)


def dealt(dealing: str | None, channels: int, held: "Held | None", *, keyed: bool) -> Forming | None:
    """How the raw rows of the next epoch are dealt out, as a user asked for it by name."""
    if dealing is None or channels == 1:
        return None
    for each in Forming.known.values():
        if each.dealing == dealing and each.keyed == keyed:
            return each.planned(channels, held)
    return None


@dataclass(frozen=True, kw_only=True)
class Layout(ABC):
    """How a stage is laid out in an epoch: over how many channels, and which of them form partials first.

    >>> from penstock.distribution import Everywhere, Layout
    >>> layout = Everywhere(channels=3)
    >>> Layout.from_json(layout.to_json()) == layout
    True
    """

    channels: int
    forming: Forming | None = None

    kind: ClassVar[str]
    stays: ClassVar[bool] = False
    """Whether rows stay in the tasks that have them."""
    known: ClassVar[dict[str, type["Layout"]]] = {}

    def __init_subclass__(cls) -> None:
        Layout.known[cls.kind] = cls

    @property
    def partitioning(self) -> str:
        """How state is placed, for people."""
        return self.kind

    @property
    def hops(self) -> int:
        """Over how many exchanges rows come to the channel that keeps them."""
        return 1 if self.forming is None else 2

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names."""
        return ()

    def words(self) -> dict[str, str]:
        """What is special about it, for people: keys that are `split`, or the `grouping` of rows."""
        return {} if self.forming is None else {"split": self.forming.words(self.channels)}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        forming = self.forming
        own = asdict(replace(self, forming=None))
        return {
            "kind": self.kind,
            **own,
            "forming": None if forming is None else {"kind": forming.kind, **asdict(forming)},  # type: ignore[call-overload]
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Layout":
        """The layout of the kind that plain values name."""
        given = dict(value)
        kind, forming = Layout.known[given.pop("kind")], given.pop("forming")
        if forming is not None:
            own = dict(forming)
            forming = Forming.known[own.pop("kind")].from_json(own)
        return kind.read(given, forming)

    @classmethod
    def read(cls, value: dict[str, Any], forming: Forming | None) -> "Layout":
        """The layout from its own plain values."""
        return cls(**value, forming=forming)


@dataclass(frozen=True)
class Change:
    """A request: another value for a setting of a stage's layout from the next epoch on, with the reason.

    `numbers` are the figures behind the reason; `shown` says for people what is asked for.

    >>> Change(0, "grouping", "by cost", "costs differ", shown="rows by cost").words()
    'rows by cost'
    """

    stage: int
    setting: str
    value: Any
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)
    shown: str = field(default="", repr=False, compare=False)

    def words(self) -> str:
        """What is asked for, for people."""
        return self.shown or f"{self.setting} {self.value}"

    def subject(self) -> str:
        """What changes, and where."""
        return f"stage {self.stage}, {self.words()}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain = asdict(self.value) if is_dataclass(self.value) else self.value  # type: ignore[arg-type]
        return {
            "kind": self.setting,
            "stage": self.stage,
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "value": plain,
            "shown": self.words(),
        }


# The distribution itself.


class Distribution(ABC):
    """How the rows of all ports of a stage find its channels; a frozen data class, shipped to the workers."""

    copies: ClassVar[bool] = False
    """Whether a row may have copies in several channels."""

    def keys(self, port: int) -> tuple[str, ...]:
        """The columns of a port that tell its keys apart, in the order in which they are hashed."""
        del port
        return ()

    @property
    def bucket(self) -> str:
        """The column that numbers slices of event time, where rows are formed by it."""
        return ""

    @abstractmethod
    def home(self, layout: Any, files: Files, port: int, task: int) -> Placer:
        """Where the rows of a port are kept, or computed with; there are several channels."""

    def open(self, layout: Layout, files: Files, port: int, task: int) -> Placer:
        """Where the rows of a port, or its partials, are kept, or computed with."""
        return One() if layout.channels == 1 else self.home(layout, files, port, task)

    def former(self, layout: Layout, task: int) -> Placer:
        """Where raw rows go first if they take two hops."""
        assert layout.forming is not None
        return layout.forming.open(self.keys(0), self.bucket, layout.channels, task)

    def moves(self, before: Any, after: Any) -> bool:
        """Whether a layout has state elsewhere than the one before it."""
        return bool(before.channels != after.channels)

    @abstractmethod
    def move(self, before: Any, after: Any, files: Files) -> Placing:
        """Where the rows of state go when the layout changes."""

    def view(self, layout: Any) -> Any:
        """What a channel has to know of the layout."""
        del layout

    def counted(self, view: Any, rows: Any, channel: int) -> NDArray[np.bool_] | None:
        """Which rows of a channel count as tuples, where of several copies one does; None for all."""
        del view, rows, channel
        return None

    @abstractmethod
    def steering(self, settings: "Settings", files: Files) -> "Steering":
        """What makes the layouts of a run."""


# The driver's side.


@dataclass(frozen=True)
class Settings:
    """What is set for a stage of a run: how keys are placed, how costs grow with frequency, what may move.

    `dealing` names how raw rows are dealt out to channels that form partials, if at all. `hosted` are the
    stages that run in its channels; they need every key whole in one of them. Keys are `counted` as far as
    somebody makes use of that. With `adapts` the first layout may follow from the first tuples, and what
    other layouts need is measured; with "observe" it is only told what that would be.
    """

    resources: Mapping[Form, Resources]
    partitioning: str = "balanced"
    most_bytes: int = 1 << 62
    sigma: float = 0.1
    dealing: str | None = None
    hosted: tuple[int, ...] = ()
    counted: Counts = "always"
    adapts: Adapts = "on"


@dataclass(frozen=True)
class Held:
    """What a stage has when its next layout is made.

    `bytes` is the size of its state, which has event times within `bounds`; `tuples` are all that it has
    taken. The last epoch had `rows`, and so many tuples `in_bucket`, and rows came in this `form`.
    """

    form: Form = "rows"
    bytes: float = 0.0
    tuples: int = 0
    bounds: tuple[int, int] | None = None
    in_bucket: float | None = None
    rows: int | None = None


class Receipt(Protocol):
    """What a channel tells of an epoch, as far as a steering learns from it."""

    @property
    def received(self) -> int:
        """The rows that came in."""

    @property
    def tuples(self) -> int:
        """The tuples that they represent."""

    @property
    def seconds(self) -> float:
        """How long the kernel was busy."""

    @property
    def cpu_seconds(self) -> float:
        """Its processor time."""

    @property
    def keys(self) -> KeyCounts:
        """The counts of the keys that came in."""

    @property
    def learnt(self) -> ValueCosts | None:
        """What rows cost by their value, None if nothing was measured."""

    @property
    def rows_learnt(self) -> RowCosts | None:
        """What single rows cost, None if none was measured."""


@dataclass(frozen=True)
class Measured:
    """An epoch of a stage: its layout, what its channels told, and what the tasks did that ran them.

    Tasks are channels unless rows stay where they are. `seconds` is how long the stage took.
    """

    layout: Any
    receipts: Sequence[Receipt] = ()
    tasks: Sequence[Receipt] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Told:
    """A change between two layouts as a decision tells it, and a reason for it where nobody gave one."""

    setting: str
    words: str
    why: str


@dataclass
class Steering:
    """Makes the layouts of one stage, on the driver; it learns from whole epochs alone."""

    distribution: Any
    settings: Settings
    files: Files

    def first(self, channels: int, sample: Sample) -> Any:
        """The first layout of a stage, which has no state yet."""
        raise NotImplementedError

    def follow(self, before: Any, asked: Mapping[str, Any], held: Held, sample: Sample) -> Any:
        """The layout after another one, with what is asked for by setting."""
        del held, sample
        return replace(before, channels=self.channels(before, asked))

    def drain(self, before: Any) -> Any:
        """The layout of an epoch that reads nothing and only closes windows."""
        return replace(before, forming=None)

    @staticmethod
    def channels(before: Layout, asked: Mapping[str, Any]) -> int:
        """The number of channels that is asked for, or that there is."""
        return asked["channels"].channels if "channels" in asked else before.channels

    def resume(self, layout: Any, remembered: KeyCounts) -> None:
        """Continue from the last plan, and from what a manifest holds."""

    def learn(self, layout: Any, receipts: Sequence[Receipt]) -> None:
        """Take in what the channels of an epoch told."""

    def remembered(self) -> KeyCounts:
        """What the manifest holds of what was learnt."""
        return KeyCounts()

    def counts(self) -> bool:
        """Whether channels should count the most frequent keys of the next epoch."""
        return False

    def thorough(self) -> bool:
        """Whether channels should sketch all keys of the next epoch."""
        return False

    def measures(self, epoch: int) -> bool:
        """Whether channels measure costs in an epoch."""
        del epoch
        return False

    def choices(self) -> tuple[str, ...]:
        """The settings that policies may change while it runs, beside the number of channels."""
        return ()

    def check(self, change: Any) -> None:
        """Raise `BadRescale` for a change that the stage cannot have."""
        if change.setting != "channels":
            raise BadRescale(f"stage {change.stage} {self.refusal(change)}")
        if change.router is not None:
            raise BadRescale(
                f"stage {change.stage} has no key to route by; ask for channels without a router"
            )
        if change.spread is not None and change.spread.keys:
            raise BadRescale(f"stage {change.stage} has no key to spread; ask for channels without a spread")

    def refusal(self, change: Change) -> str:
        """Why a stage of another kind cannot have a change."""
        return _REFUSALS.get(change.setting, f"has no setting {change.setting!r}").format(change.value)

    def target(self, layout: Any) -> int:
        """The number of channels that a move in several steps leads to."""
        return int(layout.channels)

    def moving(self, layout: Any) -> bool:
        """Whether state is on its way to where it is moved to."""
        del layout
        return False

    def left(self, layout: Any) -> float:
        """The share of state that is not yet where it is moved to."""
        del layout
        return 0.0

    def told(self, before: Any, after: Any) -> Iterator[Told]:
        """What one layout has other than another, without what moves state."""
        del before, after
        return iter(())

    def observed(self, measured: Measured) -> dict[str, Any]:
        """What policies see of the layout and of what was learnt."""
        return {"partitioning": measured.layout.partitioning}

    def tracked(self, layout: Any) -> tuple[Any, ...]:
        """The most frequent keys and where they are, for people."""
        del layout
        return ()


_REFUSALS = {
    "grouping": "cannot have its rows {}; its rows have no choice of channels",
    "batch": "cannot have batches of {} windows; give 1 or more to a stage that shares out windows and "
    "leaves their number to the run",
    COUNTING: "has no keys that are counted if a policy asks for it",
    "sub-keys": "has no keys that could be split into sub-keys; see StageChannels.splits",
}
