"""From merged partials to the values that a user asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.compile.duck import evaluate
from penstock.panes import FrequentItems, Hll, Kll
from penstock.query import ArrowAggregate

__all__ = [
    "Average",
    "Distinct",
    "Evaluated",
    "Finish",
    "Finished",
    "Quantile",
    "Taken",
    "TopItems",
    "Variance",
]

Columns = Mapping[str, Any]


class Finish(Protocol):
    """Makes one result column out of partial columns."""

    def __call__(self, columns: Columns) -> Any:
        """The result, one value per row."""
        ...


@dataclass(frozen=True)
class Taken:
    """The partial is the result."""

    column: str

    def __call__(self, columns: Columns) -> Any:
        """As it is."""
        return columns[self.column]


@dataclass(frozen=True)
class Average:
    """Sum over count; null where nothing was counted."""

    total: str
    count: str

    def __call__(self, columns: Columns) -> Any:
        """In double precision."""
        # The sum is null where the count is zero, so no division by zero is looked at.
        total = columns[self.total].cast(pa.float64())
        return pc.divide(total, columns[self.count].cast(pa.float64()))


@dataclass(frozen=True)
class Variance:
    """Sample variance, or its root; null for fewer than two values."""

    count: str
    squares: str
    root: bool

    def __call__(self, columns: Columns) -> Any:
        """Squared deviations over count minus one."""
        count = columns[self.count].to_numpy(zero_copy_only=False)
        squares = columns[self.squares].to_numpy(zero_copy_only=False)
        value = np.divide(squares, count - 1, out=np.zeros(len(count)), where=count > 1)
        return pa.array(np.sqrt(value) if self.root else value, mask=count < 2)


@dataclass(frozen=True)
class Distinct:
    """Rounded estimate of a HyperLogLog sketch."""

    column: str
    kind: Hll

    def __call__(self, columns: Columns) -> Any:
        """Zero where no sketch is."""
        return pa.array(
            [round(self.kind.parse(s).get_estimate()) if s else 0 for s in columns[self.column].to_pylist()],
            pa.int64(),
        )


@dataclass(frozen=True)
class Quantile:
    """A quantile of a KLL sketch."""

    column: str
    kind: Kll
    rank: float

    def __call__(self, columns: Columns) -> Any:
        """Null where no value was seen."""
        return pa.array([self._one(data) for data in columns[self.column].to_pylist()], pa.float64())

    def _one(self, data: bytes | None) -> float | None:
        sketch = self.kind.parse(data) if data else None
        return None if sketch is None or sketch.is_empty() else float(sketch.get_quantile(self.rank))


@dataclass(frozen=True)
class TopItems:
    """The k most frequent items with their estimated counts, most frequent first."""

    column: str
    kind: FrequentItems
    k: int

    def __call__(self, columns: Columns) -> Any:
        """Lists of (item, count)."""
        return pa.array([self._one(data) for data in columns[self.column].to_pylist()], self.type)

    @property
    def type(self) -> Any:
        """array<struct<item, count>>."""
        item = pa.string() if self.kind.strings else pa.int64()
        return pa.list_(pa.struct([("item", item), ("count", pa.int64())]))

    def _one(self, data: bytes | None) -> list[dict[str, Any]]:
        if not data:
            return []
        found = self.kind.parse(data).get_frequent_items(
            datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES
        )
        # Equal counts in the order of the items, so that a replay gives the same list.
        ranked = sorted(found, key=lambda item: (-item[1], item[0]))[: self.k]
        return [{"item": item, "count": count} for item, count, _, _ in ranked]


@dataclass(frozen=True)
class Finished:
    """A user-defined aggregate's own finish."""

    aggregate: ArrowAggregate
    columns: Sequence[str]
    schema: Any
    type: Any

    def __call__(self, columns: Columns) -> Any:
        """Checked for its length and cast to the declared type."""
        state = pa.RecordBatch.from_arrays([columns[name] for name in self.columns], schema=self.schema)
        result = self.aggregate.finish(state)
        assert len(result) == state.num_rows, (
            f"{type(self.aggregate).__name__}.finish() changed the number of rows"
        )
        return result.cast(self.type)


@dataclass(frozen=True)
class Evaluated:
    """An SQL expression over partial columns."""

    sql: str
    columns: Mapping[str, str]

    def __call__(self, columns: Columns) -> Any:
        """Evaluated by DuckDB."""
        table = pa.table({name: columns[source] for name, source in self.columns.items()})
        return evaluate(self.select, table)["value"].combine_chunks()

    @property
    def select(self) -> str:
        """The statement to evaluate."""
        return f"SELECT {self.sql} AS value FROM input"
