"""What all state tables share: segments under one name in each channel, moved by key and shown to people.

A table is a plain value that travels to workers and, as JSON, into the checkpoint, so that state can be read
without the query. Each kind has its own `open`, which returns what a kernel works on in one channel for one
epoch; closing that returns the segments after the epoch. No file ever changes: segments are added, merged
into new ones or dropped. Moving is the same for all kinds (see `moving`): channels get references to them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from penstock.columns import HASH, TIME
from penstock.state.segments import Segment
from penstock.state.storage import Location

__all__ = ["HASH", "TABLE", "TIME", "Table", "instants"]

TABLE = "_part"
"""A shown column: the name of the table that a row comes from."""

_INSTANT = pa.timestamp("us", "UTC")


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

    def arrive(self, groups: Sequence[Sequence[Segment]]) -> tuple[Segment, ...]:
        """The segments of a channel after a move, from those of each channel that had them, its own first."""
        return tuple(segment for group in groups for segment in group)

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


def instants(column: Any, unset: Any = None) -> Any:
    """Microseconds as timestamps; null for the values in `unset`."""
    return pa.array(column.to_numpy(), mask=unset).cast(_INSTANT)
