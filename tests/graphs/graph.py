"""A query graph written down apart from Penstock: what is run, and what the batch oracle evaluates.

Every relation is a node that names its inputs by their places; times are microseconds.
"""

import dataclasses
from dataclasses import dataclass

from graphs.maps import Mapping


@dataclass(frozen=True)
class Column:
    """A column of a relation.

    `exact` columns have one value whatever the order of summation; only they decide on tuples. `plain` ones
    hold values as the streams have them: sums fit and are exact, numbers are finite, texts are simple.
    """

    name: str
    type: str
    exact: bool = True
    plain: bool = True


@dataclass(frozen=True)
class Source:
    name: str
    delay: int


@dataclass(frozen=True)
class Where:
    condition: str


@dataclass(frozen=True)
class Branch:
    conditions: tuple[str, ...]
    place: int


@dataclass(frozen=True)
class Select:
    names: tuple[str, ...]
    made: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Mapped:
    function: Mapping


@dataclass(frozen=True)
class Union:
    pass


@dataclass(frozen=True)
class Sliding:
    """Windows of one size, one every slide."""

    size: int
    slide: int
    offset: int = 0

    def last_closed_end(self, frontier: int) -> int:
        """The largest window end at or below the frontier."""
        return (frontier - self.size - self.offset) // self.slide * self.slide + self.size + self.offset

    def late_below(self, frontier: int) -> int:
        """Below it all windows have ended at or below the frontier."""
        return min(self.last_closed_end(frontier), self.first_open_start(frontier))

    def first_open_start(self, frontier: int) -> int:
        return self.last_closed_end(frontier) - self.size + self.slide


@dataclass(frozen=True)
class Growing:
    """Windows that start together and grow by a step up to a size; then the next round starts."""

    size: int
    step: int
    offset: int = 0

    def last_closed_end(self, frontier: int) -> int:
        """The largest window end at or below the frontier."""
        return (frontier - self.offset) // self.step * self.step + self.offset

    def late_below(self, frontier: int) -> int:
        """Below it all windows have ended at or below the frontier."""
        return self.first_open_start(frontier)

    def first_open_start(self, frontier: int) -> int:
        return (frontier - self.offset) // self.size * self.size + self.offset


Keys = tuple[tuple[str, str], ...]
Aggregates = tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True)
class Windowed:
    """Windows of all shapes at once; corrected or early ones are `revising`."""

    keys: Keys
    shapes: tuple[Sliding | Growing, ...]
    aggregates: Aggregates
    late: str = "count"
    lateness: int = 0
    early: int | None = None

    @property
    def revising(self) -> bool:
        """Whether its results are changes, which nothing can follow."""
        return bool(self.lateness) or self.early is not None

    def late_below(self, frontier: int) -> int:
        """Below it a tuple is late: all of its windows have ended, or one of them."""
        if self.late == "drop":
            return max(each.last_closed_end(frontier) for each in self.shapes)
        return min(each.late_below(frontier - self.lateness) for each in self.shapes)

    def promise(self, frontier: int) -> int:
        return min(each.first_open_start(frontier) for each in self.shapes)


@dataclass(frozen=True)
class Sessioned:
    """Sessions of neighbours at most one gap apart."""

    keys: Keys
    gap: int
    aggregates: Aggregates
    late: str = "count"
    revising = False

    def late_below(self, frontier: int) -> int | None:
        """Where late tuples count, it depends on their key: none is late by its time alone."""
        return frontier if self.late == "drop" else None

    def promise(self, frontier: int) -> int:
        return frontier


@dataclass(frozen=True)
class Counted:
    """The last `size` rows of a key, one window every `slide` rows."""

    keys: Keys
    size: int
    slide: int
    aggregates: Aggregates
    revising = False

    def late_below(self, frontier: int) -> int:
        return frontier

    def promise(self, frontier: int) -> int:
        return frontier


Grouping = Windowed | Sessioned | Counted


@dataclass(frozen=True)
class Joined:
    keys: tuple[tuple[str, str], ...]
    within: int | None
    last: int | None
    how: str
    condition: str | None
    suffixes: tuple[str, str]
    size: int | None = None
    keep: tuple[int, int] | None = None
    time: str | None = None

    @property
    def paired(self) -> bool:
        return self.how not in {"semi", "anti"}

    def timed(self, left: str) -> tuple[str, ...]:
        """The columns that carry the event time of its results."""
        if self.size is not None:
            return ("window_start", "window_end")
        return ("pair_time",) if self.paired else (left,)

    @property
    def times(self) -> str:
        """The time that a pair carries."""
        return self.time or ("latest" if self.within is None else "earliest")

    @property
    def apart(self) -> tuple[int, int]:
        """How long a left row waits for a right one, and a right one for a left one."""
        if self.keep is None:
            return self.within or 0, self.within or 0
        return self.keep


Operator = Source | Where | Branch | Select | Mapped | Union | Grouping | Joined


@dataclass(frozen=True)
class Node:
    operator: Operator
    inputs: tuple[int, ...]
    columns: tuple[Column, ...]
    time: str
    pinned: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)

    @property
    def stateful(self) -> bool:
        return isinstance(self.operator, Grouping | Joined)

    @property
    def revising(self) -> bool:
        """Whether its rows are changes of results."""
        return isinstance(self.operator, Grouping) and self.operator.revising

    def column(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)


@dataclass(frozen=True)
class Graph:
    """`epochs` has for each stream one list of rows for each epoch; `channels` are those of a stage."""

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    epochs: dict[str, list[list[dict]]]
    channels: int
    strategy: str = "subquery"

    @property
    def sources(self) -> dict[str, int]:
        return {
            node.operator.name: place
            for place, node in enumerate(self.nodes)
            if isinstance(node.operator, Source)
        }

    def origins(self, place: int) -> list[int]:
        """The sources and stateful nodes from which tuples reach a relation through stateless ones."""
        node = self.nodes[place]
        if node.stateful or not node.inputs:
            return [place]
        return [origin for each in node.inputs for origin in self.origins(each)]


def selected(nodes: list[Node], place: int, operator: Select, types: dict[str, Column]) -> Node:
    """What select() gives: the pinned columns first, then those named, then those made."""
    given = nodes[place]
    kept = (*given.pinned, *(name for name in operator.names if name not in given.pinned))
    columns = tuple(given.column(name) for name in kept)
    columns += tuple(types[name] for name, _ in operator.made)
    return Node(operator, (place,), columns, given.time, given.pinned)


def mapped(nodes: list[Node], place: int, operator: Mapped) -> Node:
    """What map() gives: the pinned columns or the time if it is in sight, then what the function makes."""
    given = nodes[place]
    kept = given.pinned or tuple(name for name in given.names if name == given.time)
    made = tuple(Column(name, type_) for name, type_ in operator.function.made)
    return Node(
        operator, (place,), tuple(given.column(name) for name in kept) + made, given.time, given.pinned
    )


def windowed(nodes: list[Node], place: int, operator: Grouping, types: dict[str, Column]) -> Node:
    """What agg() gives: the kind of change if results change, the bounds, the keys, the aggregates."""
    pinned = (*(["change"] if operator.revising else []), "window_start", "window_end")
    bounds = tuple(Column(name, "string" if name == "change" else "timestamp") for name in pinned)
    keys = tuple(types[name] for name, _ in operator.keys)
    aggregates = tuple(types[name] for name, _, _ in operator.aggregates)
    time = "window_start" if isinstance(operator, Windowed) else "window_end"
    return Node(operator, (place,), bounds + keys + aggregates, time, pinned)


def joined(nodes: list[Node], left: int, right: int, operator: Joined) -> Node:
    """What join() gives: its event time, the keys, the left and the right columns."""
    ours, theirs = nodes[left], nodes[right]
    pinned = operator.timed(ours.time)
    columns = [Column(name, "timestamp") for name in pinned]
    for one, other in operator.keys:
        pair = (ours.column(one), theirs.column(other))
        wide = "bigint" in {each.type for each in pair}
        plain = all(each.plain for each in pair)
        columns.append(Column(one, "bigint" if wide else pair[0].type, plain=plain))
    given = sides(nodes, left, right, operator)
    for node, pairs in zip((ours, theirs), given, strict=True):
        for stored, name in pairs:
            found = node.column(stored)
            columns.append(dataclasses.replace(found, name=name))
    return Node(operator, (left, right), tuple(columns), pinned[0], pinned)


def sides(nodes: list[Node], left: int, right: int, operator: Joined) -> list[list[tuple[str, str]]]:
    """Stored and result names of the columns of both sides; names of both get the suffixes."""
    ours, theirs = nodes[left], nodes[right]
    times = {*operator.timed(ours.time)}
    alone = operator.size is None and not operator.paired
    gone = (times & {*ours.pinned, *([ours.time] if alone else [])}, times & {*theirs.pinned})
    one = [name for name in ours.names if name not in {*gone[0], *(key for key, _ in operator.keys)}]
    other = [name for name in theirs.names if name not in {*gone[1], *(key for _, key in operator.keys)}]
    other = other if operator.paired else []
    taken = {*times, *(key for key, _ in operator.keys)}
    shared = (set(one) & set(other)) | (taken & {*one, *other})
    return [
        [(name, name + (suffix if name in shared else "")) for name in names]
        for names, suffix in zip((one, other), operator.suffixes, strict=True)
    ]


def sum_type(given: str) -> str:
    """Spark's type of a sum."""
    if not given.startswith("decimal"):
        return "double" if given in {"float", "double"} else "bigint"
    precision, scale = _precision(given)
    return f"decimal({min(precision + 10, 38)},{scale})"


def mean_type(given: str) -> str:
    """Spark's type of a mean."""
    if not given.startswith("decimal"):
        return "double"
    precision, scale = _precision(given)
    return f"decimal({min(precision + 4, 38)},{min(scale + 4, 38)})"


def _precision(decimal: str) -> list[int]:
    return [int(each) for each in decimal.removeprefix("decimal(").removesuffix(")").split(",")]
