"""What all state tables share: segments under one name in each channel, moved by key and shown to people.

A table is a plain value that travels to workers and, as JSON, into the checkpoint, so that state can be read
without the query. Each kind has its own `open`, which returns what a kernel works on in one channel for one
epoch; closing that returns the segments after the epoch. No file ever changes: segments are added, masked,
merged into new ones or dropped.

Moving is the same for all kinds. Base rows go where the placing puts them, as new segments in the same order;
a segment that has lost rows gets a mask. Derived rows never move, since their new channel can form them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.columns import HASH, TIME
from penstock.state.placing import Placed, Placing
from penstock.state.segments import Segment, masked, read, store
from penstock.state.storage import Location

__all__ = ["HASH", "TABLE", "TIME", "Departure", "Table", "by_target", "instants"]

TABLE = "_part"
"""A shown column: the name of the table that a row comes from."""

_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Departure:
    """What a channel kept of a table or a stage, and the segments it wrote for other channels.

    `rows` counts base rows that left, once for every copy; `keys` counts their distinct keys.
    """

    kept: tuple[Segment, ...]
    gone: tuple[tuple[int, Segment], ...] = ()
    rows: int = 0
    keys: int = 0

    @property
    def bytes(self) -> int:
        """The size of what left."""
        return sum(segment.bytes for _, segment in self.gone)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Departure":
        """The value from its plain values."""
        return cls(
            tuple(Segment(**each) for each in value["kept"]),
            tuple((target, Segment(**each)) for target, each in value["gone"]),
            value["rows"],
            value["keys"],
        )


@dataclass(frozen=True)
class Table(ABC):
    """A state table.

    - `name`: unique among the tables of a stage.
    - `keys`: the columns that the router hashes, in its order; empty if it hashes none.
    - `port`: 0 or 1, the port whose rule for copies applies when rows move (see `placing`).
    - `labels`: the readable names of columns; a column with an empty one is not shown.
    """

    name: str
    keys: tuple[str, ...] = ()
    port: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)

    kind: ClassVar[str]
    """The name of this kind of table in descriptions."""
    usual_labels: ClassVar[Mapping[str, str]] = {HASH: ""}
    """Labels of columns that every table of a kind has."""

    @abstractmethod
    def bounds(self, rows: Any, level: int) -> tuple[int, int]:
        """The bounds of a segment of these rows (at least one), in the order of the table."""

    @abstractmethod
    def show(
        self, folder: Location, segments: Sequence[Segment], frontiers: Sequence[int | None]
    ) -> Iterator[Any]:
        """The live rows of a channel as tables, with the stored names of keys.

        Rows that the kernel would not read any more are left out. `frontiers` are those of the ports
        after the epoch that wrote the segments; before the first epoch there are none.
        """

    def own(self, segments: Sequence[Segment]) -> list[Segment]:
        """The segments of a channel that belong to this table."""
        return [each for each in segments if each.table == self.name]

    def move(
        self, folder: Location, label: str, segments: Sequence[Segment], placing: Placing, channel: int
    ) -> Departure:
        """Write the rows that leave a channel as new segments, and mask them in the old ones."""
        departure, _ = self.leave(folder, label, segments, placing, channel)
        return departure

    def arrive(self, own: Sequence[Segment], came: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments of a channel after others arrived: its own first, those of one source in order."""
        return (*own, *came)

    def named(self, rows: Any) -> Any:
        """Rows to show under their readable names, with times as timestamps.

        Of two columns with one name the first is shown: state may hold keys and times twice, once for the
        kernel and once in their original form.
        """
        shown: dict[str, Any] = {}
        for name in rows.column_names:
            label = self.labels.get(name, self.usual_labels.get(name, name))
            if label and label not in shown:
                shown[label] = self.readable(name, rows[name])
        return pa.table(shown)

    def readable(self, name: str, column: Any) -> Any:
        """A column in readable form."""
        return instants(column) if name == TIME else column

    def describe(self) -> dict[str, Any]:
        """Plain values, from which `table_from` makes the same table."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_description(cls, value: Mapping[str, Any]) -> "Table":
        """The table of this kind that plain values describe."""
        fields: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each for name, each in value.items()
        }
        del fields["kind"]
        return cls(**fields)

    def leave(
        self, folder: Location, label: str, segments: Sequence[Segment], placing: Placing, channel: int
    ) -> tuple[Departure, list[Placed]]:
        """Move all rows of level 0 and above; also return where the rows of each such segment went."""
        kept: list[Segment] = []
        gone: list[tuple[int, Segment]] = []
        places: list[Placed] = []
        hashes: list[Any] = []
        moved = 0
        for segment in self.own(segments):
            if segment.level < 0:
                continue
            rows = read(folder, segment)
            placed = placing.place(rows, self.keys, self.port, channel)
            places.append(placed)
            if placed.stays.all() and not len(placed.rows):
                kept.append(segment)
                continue
            if placed.stays.any():
                kept.append(masked(folder, segment, placed.stays))
            if segment.level > 0:
                continue
            for target, at in by_target(placed):
                chosen = rows.take(pa.array(at))
                first, end = self.bounds(chosen, segment.level)
                name = f"{label}-{self.name}-to-{target}"
                gone.append((target, store(folder, name, chosen, table=self.name, first=first, end=end)))
            moved += len(placed.rows)
            hashes += [placed.hashes[placed.rows]] if placed.hashes is not None else []
        keys = len(np.unique(np.concatenate(hashes))) if hashes else 0
        return Departure(tuple(kept), tuple(gone), moved, keys), places


def by_target(placed: Placed) -> Iterator[tuple[int, Any]]:
    """The rows for each channel, in their order."""
    if not len(placed.rows):
        return
    rows, targets = placed.rows, placed.targets
    if (rows[1:] < rows[:-1]).any():
        ordered = np.argsort(rows, kind="stable")
        rows, targets = rows[ordered], targets[ordered]
    # 16-bit numbers are sorted by radix: linear, and several times faster than by comparison.
    small = targets.astype(np.int16) if targets.max() < 1 << 15 else targets
    order = np.argsort(small, kind="stable")
    sizes = np.bincount(targets)
    found = np.flatnonzero(sizes)
    pieces = np.split(rows[order], np.cumsum(sizes[found])[:-1])
    yield from zip(found.tolist(), pieces, strict=True)


def instants(column: Any, unset: Any = None) -> Any:
    """Microseconds as timestamps; null for the values in `unset`."""
    return pa.array(column.to_numpy(), mask=unset).cast(_INSTANT)
