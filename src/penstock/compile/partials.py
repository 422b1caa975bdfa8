"""What one pane of one key keeps, and the two ways a value gets there.

A partial is stated once and evaluated where it is cheapest: as Spark SQL aggregates with the
combine on the map side (`combine`), or lifted from raw rows inside the channel (`lift`). Either
way the channel ends up with the same columns, and the same merge takes over.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compile.lifts import Accumulated, Lift
from penstock.panes import Kind, group

__all__ = ["Column", "Partial", "form"]


@dataclass(frozen=True)
class Column:
    """A named expression over the prefix, with the type that it has in Arrow."""

    name: str
    sql: str
    type: Any


@dataclass(frozen=True)
class Partial:
    """One partial: its kind, its Spark SQL aggregates, and its lift from raw rows if it has one."""

    name: str
    kind: Kind
    combine: tuple[str, ...]
    lift: Lift | Accumulated | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in a segment."""
        types = self.kind.types
        return (
            (self.name,) if len(types) == 1 else tuple(f"{self.name}_{place}" for place in range(len(types)))
        )

    @property
    def wire(self) -> tuple[str, ...]:
        """Names of its columns as Spark delivers them, one for each expression of `combine`.

        A user-defined aggregate arrives as a list of its input rows, still to be accumulated.
        """
        return (self.name,) if isinstance(self.lift, Accumulated) else self.columns

    def received(self, table: Any) -> list[Any]:
        """Its segment columns from what Spark delivered."""
        columns = [table[name].combine_chunks() for name in self.wire]
        return self.lift.over_lists(columns[0]) if isinstance(self.lift, Accumulated) else columns


def form(
    partials: tuple[Partial, ...], rows: Any, keys: NDArray[np.int64], panes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[list[Any]]]:
    """Partials of raw rows, one per pane and key: the panes, the keys, and the columns of each partial."""
    width = int(keys.max()) + 1 if len(keys) else 1
    base = int(panes.min()) if len(panes) else 0
    cells, at = group((panes - base) * width + keys)
    columns: list[list[Any]] = []
    for partial in partials:
        if isinstance(partial.lift, Accumulated):
            columns.append(partial.lift.over_groups(rows, at, len(cells)))
        else:
            assert partial.lift is not None, partial
            loaded = partial.kind.load(partial.lift.columns(rows))
            columns.append(loaded.store(loaded.merge.scatter(len(cells), at, loaded.lanes)))
    return cells // width + base, cells % width, columns
