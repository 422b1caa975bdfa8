"""What a join is: its sides, keys, bound and condition, and which unmatched rows it delivers.

A left and a right row match if their keys are equal (null equals nothing), the bound holds and the condition
is true. Without keys the join is a Cartesian product ([002] §III.D).
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadJoin

__all__ = [
    "END",
    "REACH",
    "Alone",
    "Bound",
    "ByWindow",
    "Condition",
    "Frontiers",
    "How",
    "JoinSpec",
    "Last",
    "Pair",
    "PairTime",
    "Share",
    "Side",
    "Within",
]

How = Literal["inner", "left", "right", "full", "semi", "anti"]
PairTime = Literal["earliest", "latest", "left", "right"]
"""Which time a pair carries: of its earlier or later row, or of the row of one side."""
Ints = TypeVar("Ints", int, NDArray[np.int64])
T = TypeVar("T")

# Event times, in microseconds, stay below this in size (73,000 years), so that the sum of a time and a
# distance never overflows 64 bits.
REACH = 1 << 61
# The frontier of a stream that has ended.
END = REACH
_MOST_WINDOWS = 1 << 30


@dataclass(frozen=True)
class Within:
    """Two rows may match if the right one is at most `distance` µs after and at most `back` before the left.

    Without `back` it is the distance in both directions. So a left row waits `distance` for a partner and a
    right row `back`.
    """

    distance: int
    back: int = -1

    def __post_init__(self) -> None:
        if self.back == -1:
            object.__setattr__(self, "back", self.distance)
        for each in (self.distance, self.back):
            if not 0 <= each < REACH:
                raise BadJoin(f"a join within {each} µs; give a distance of 0 or more, below 2**61")


@dataclass(frozen=True)
class ByWindow:
    """Two rows may match in each window that holds both.

    Window w is [w · slide + offset, w · slide + offset + size). It is closed when the frontiers of both sides
    have passed its end. A slide above the size leaves rows between windows, which are in none.

    >>> windows = ByWindow(size=10, slide=4)
    >>> windows.first_with(11), windows.last_with(11), windows.first_open(14), windows.floor(14)
    (1, 2, 2, 8)
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.size < REACH and 0 < self.slide < REACH and self.size // self.slide < _MOST_WINDOWS):
            raise BadJoin(
                f"a join by windows of {self.size} µs every {self.slide} µs; give both above zero, and fewer "
                f"than {_MOST_WINDOWS:,} windows for a row"
            )

    def first_with(self, time: Ints) -> Ints:
        """The first window that ends after a time: the first with that time, if any has it."""
        return (time - self.offset - self.size) // self.slide + 1

    def last_with(self, time: Ints) -> Ints:
        """The last window that begins at a time or before it: the last with that time, if any has it."""
        return (time - self.offset) // self.slide

    def start(self, window: Ints) -> Ints:
        """Where a window begins."""
        return window * self.slide + self.offset

    def first_open(self, frontier: int | None) -> int:
        """The first window that a frontier of both sides leaves open."""
        return -REACH if frontier is None else self.first_with(min(frontier, END))

    def floor(self, frontier: int | None) -> int | None:
        """The time below which a row is in no open window, and in a closed one or between two such."""
        if frontier is None:
            return None
        return min(self.start(self.first_open(frontier)), self.ended(frontier))

    def ended(self, frontier: int) -> int:
        """The end of the last window that a frontier of both sides has closed."""
        return self.start(self.first_open(frontier) - 1) + self.size


@dataclass(frozen=True)
class Last:
    """A row may match the last `rows` rows of the other side, of its own key, that precede it.

    Event order decides which rows precede: by time, then by the tie columns of their side, then left before
    right. Channels, epochs and the order of arrival therefore do not change the result. The window is counted
    per key because a channel sees all rows of its keys but not all rows of a stream. Without keys it is
    counted over all rows, which every channel gets. A side
    keeps up to `rows` rows of every key that it has seen, as long as the run lasts.
    """

    rows: int

    def __post_init__(self) -> None:
        if not 1 <= self.rows < 1 << 31:
            raise BadJoin(f"a join with the last {self.rows} rows; give 1 or more, below 2**31")


Bound = Within | ByWindow | Last


@dataclass(frozen=True)
class Side:
    """One input: its key columns, its event time and what it gives to the result.

    `time` is a column of microseconds or timestamps without nulls. `ties` order rows of equal time, for
    example (stream, sequence); both sides have the same number of tie columns, of comparable types. `columns`
    are pairs of a stored column and its name in the result.
    """

    time: str
    keys: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Condition:
    """A predicate over the pair in DuckDB's SQL: the left row is `l`, the right row `r`.

    `left` and `right` name the columns that it reads. Null is not true. If it `raises` for some values, it is
    evaluated for candidate pairs alone. `left_alone` and `right_alone` are parts of it that read one side
    alone and raise for no value, over the columns of that side.
    """

    sql: str
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    raises: bool = False
    left_alone: tuple[str, ...] = ()
    right_alone: tuple[str, ...] = ()

    @property
    def alone(self) -> "Pair[Alone | None]":
        """What a row of each side has to meet by itself; None if nothing."""
        return Pair(
            Alone(self.left, self.left_alone) if self.left_alone else None,
            Alone(self.right, self.right_alone) if self.right_alone else None,
        )


@dataclass(frozen=True)
class Alone:
    """Parts of a condition over columns of one row: if one is not true, the row matches nothing."""

    columns: tuple[str, ...]
    parts: tuple[str, ...]


@dataclass(frozen=True)
class JoinSpec:
    """A join of two streams.

    `key_types` are the Arrow types in which the keys of both sides are compared. `time` names the timestamp
    of the result: that of a pair as `times` says, that of the row if it stands alone, by windows the start of
    the window. A semi join delivers left rows that match, an anti join those that do not; `right` has no
    columns then. `key_names` name the keys in the result, between the time and the columns of the sides: the
    keys of the left row, or of an unmatched right row, in the key types. Without names the keys are not
    delivered.

    >>> import pyarrow as pa
    >>> call = Side("time", keys=("caller",), columns=(("caller", "caller"), ("time", "first")))
    >>> again = Side("time", keys=("caller",), columns=(("time", "second"),))
    >>> JoinSpec(call, again, Within(60_000_000), key_types=(pa.string(),), how="left").keeps_unmatched
    (True, False)
    """

    left: Side
    right: Side
    bound: Bound
    key_types: tuple[Any, ...] = ()
    how: How = "inner"
    condition: Condition | None = None
    time: str = "time"
    key_names: tuple[str, ...] = ()
    times: PairTime = "earliest"

    def __post_init__(self) -> None:
        if self.how in {"semi", "anti"} and (self.right.columns or isinstance(self.bound, Last)):
            raise BadJoin(f"a {self.how} join delivers left rows alone, and has no bound of the last rows")
        counts = len(self.left.keys), len(self.right.keys), len(self.key_types)
        if len(set(counts)) != 1:
            raise BadJoin(
                f"a join has {counts[0]} left keys, {counts[1]} right keys and {counts[2]} key types; "
                "give the same number of each"
            )
        if self.key_names and len(self.key_names) != len(self.key_types):
            raise BadJoin(
                f"{len(self.key_types)} keys of a join have the names {self.key_names}; "
                "give a name for each key, or no names"
            )
        if len(self.left.ties) != len(self.right.ties):
            raise BadJoin(
                f"ties are broken by {self.left.ties} on the left and {self.right.ties} on the right; "
                "give both sides the same number of columns"
            )
        names = [self.time, *self.key_names]
        names += [name for side in (self.left, self.right) for _, name in side.columns]
        if len(set(names)) != len(names):
            raise BadJoin(f"the columns of a join's result are {', '.join(names)}; give each its own name")

    @property
    def keeps_unmatched(self) -> tuple[bool, bool]:
        """Whether unmatched left and right rows are delivered."""
        return self.how in {"left", "full", "anti"}, self.how in {"right", "full"}

    @property
    def notes_matches(self) -> tuple[bool, bool]:
        """Whether it matters of a left and of a right row if it has matched."""
        return self.how in {"left", "full", "semi", "anti"}, self.how in {"right", "full"}

    @property
    def pairs(self) -> bool:
        """Whether it delivers pairs, and not left rows alone."""
        return self.how not in {"semi", "anti"}


@dataclass(frozen=True)
class Share:
    """The rows that one of several channels looks for partners of, where each channel has all rows.

    They are those whose `column` of integers, modulo the number of channels, is the number of the channel.
    """

    column: str
    number: int
    channels: int


@dataclass(frozen=True)
class Frontiers:
    """The event times below which no more left and right rows come; None while there is no promise."""

    left: int | None = None
    right: int | None = None

    @property
    def both(self) -> int | None:
        """The time below which no more rows come on either side."""
        return None if self.left is None or self.right is None else min(self.left, self.right)


@dataclass(frozen=True)
class Pair(Generic[T]):
    """One thing for each side."""

    left: T
    right: T
