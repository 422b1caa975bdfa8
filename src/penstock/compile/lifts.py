"""From raw rows to partials inside a channel.

Where the combine on the map side would hardly shrink the rows, they are shipped as they are; each
row is then a partial of itself, and the merge that combines partials also forms the first ones.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import BadAggregate
from penstock.query import ArrowAggregate

__all__ = ["TIME", "Accumulated", "Lift", "Ones", "Pair", "Single", "Triple", "Valid"]

TIME = "_ps_time"


class Lift(Protocol):
    """Makes each raw row a partial of itself."""

    def columns(self, rows: Any) -> list[Any]:
        """Columns of one partial per raw row."""
        ...


@dataclass(frozen=True)
class Ones:
    """Every row counts."""

    def columns(self, rows: Any) -> list[Any]:
        """A one for each row."""
        return [pa.array(np.ones(rows.num_rows, np.int64))]


@dataclass(frozen=True)
class Valid:
    """A row counts when its value is not null."""

    input: str

    def columns(self, rows: Any) -> list[Any]:
        """One or zero."""
        return [rows[self.input].is_valid().cast(pa.int64())]


@dataclass(frozen=True)
class Single:
    """The value is its own partial."""

    input: str
    type: Any

    def columns(self, rows: Any) -> list[Any]:
        """The value, in the type of the partial."""
        return [rows[self.input].cast(self.type)]


@dataclass(frozen=True)
class Pair:
    """Event time and value, for first and last."""

    input: str

    def columns(self, rows: Any) -> list[Any]:
        """When and what."""
        return [rows[TIME], rows[self.input]]


@dataclass(frozen=True)
class Triple:
    """Count, mean and squared deviations of a single value."""

    input: str

    def columns(self, rows: Any) -> list[Any]:
        """One value deviates from itself by nothing."""
        value = rows[self.input].cast(pa.float64())
        zero = pa.array(np.zeros(rows.num_rows))
        return [value.is_valid().cast(pa.float64()), pc.fill_null(value, 0.0), zero]


@dataclass(frozen=True)
class Accumulated:
    """A user-defined aggregate's own accumulate over the rows of each group, in event-time order."""

    aggregate: ArrowAggregate
    inputs: tuple[str, ...]

    def over_groups(self, rows: Any, groups: NDArray[np.int64], count: int) -> list[Any]:
        """One state per group."""
        order = np.lexsort((rows[TIME].to_numpy(zero_copy_only=False), groups))
        at = pa.array(order)
        return self.states(groups[order], count, [rows[name].take(at) for name in self.inputs])

    def over_lists(self, collected: Any) -> list[Any]:
        """One state per row of a column of lists of (time, inputs), as Spark collected them."""
        flat = collected.flatten()
        fields = [flat.field(place) for place in range(flat.type.num_fields)]
        rows = pa.RecordBatch.from_arrays(fields, names=[TIME, *self.inputs])
        lengths = pc.fill_null(pc.list_value_length(collected), 0).to_numpy(zero_copy_only=False)
        return self.over_groups(rows, np.repeat(np.arange(len(collected)), lengths), len(collected))

    def states(self, groups: NDArray[np.int64], count: int, columns: list[Any]) -> list[Any]:
        """Call the user's code and check what it gives back."""
        batch = self.aggregate.accumulate(groups, count, *columns)
        if batch.num_rows != count:
            raise BadAggregate(
                f"{type(self.aggregate).__name__}.accumulate() was given {count} groups and returned "
                f"{batch.num_rows} states; it must return one state for each group, in their order"
            )
        state = batch.cast(self.aggregate.state_schema())
        return [pa.array(np.ones(count, np.bool_)), *state.columns]
