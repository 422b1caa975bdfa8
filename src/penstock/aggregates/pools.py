"""Kinds of partial that only their own code can read: sketches, and states in columns of their own.

A state that cannot be laid out in lanes is kept in a pool and referred to by number; a merge of
two cells is a merge of two pooled states. Sketches are Apache DataSketches in their portable
binary form, which Spark's native sketch functions write and the Python library reads.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.aggregates.kinds import Loaded
from penstock.aggregates.merges import Array, Lanes, Merge, Pooled

__all__ = ["Sketch", "StateMerger", "States", "datasketches"]


@cache
def datasketches() -> Any:
    """The library of sketches, imported with the first sketch that is parsed."""
    import datasketches as library  # noqa: PLC0415 -- most queries have no sketch

    return library


class StateMerger(Protocol):
    """What a pool of states calls to merge them."""

    def merge(self, left: Any, right: Any) -> Any:
        """States merged row by row."""
        ...


class Sketch(ABC):
    """A partial that is one serialised sketch."""

    @property
    def types(self) -> tuple[Any, ...]:
        """Its bytes."""
        return (pa.binary(),)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Sketches are parsed when a merge first needs them."""
        return _LoadedSketches(self, columns[0])

    @property
    def summary(self) -> str:
        """The first line of the kind's docstring, which states its error."""
        return (type(self).__doc__ or "").splitlines()[0]

    @abstractmethod
    def parse(self, data: bytes) -> Any:
        """The sketch that the bytes stand for."""

    @abstractmethod
    def union(self, one: Any, other: Any) -> Any:
        """A new sketch of what both have seen."""

    @abstractmethod
    def serialize(self, sketch: Any) -> bytes:
        """Its portable bytes."""


class _LoadedSketches:
    def __init__(self, kind: Sketch, column: Any) -> None:
        self._kind = kind
        self._states: list[Any] = column.to_pylist()
        numbers = np.arange(len(column), dtype=np.int64)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        self.lanes: Lanes = (np.where(valid, numbers, -1),)
        self.merge: Merge = Pooled(_SketchPool(kind, self._states))

    def store(self, lanes: Lanes) -> list[Any]:
        states = (self._states[number] if number >= 0 else None for number in lanes[0].tolist())
        serialized = (s if s is None or isinstance(s, bytes) else self._kind.serialize(s) for s in states)
        return [pa.array(serialized, pa.binary())]


@dataclass(frozen=True)
class _SketchPool:
    kind: Sketch
    states: list[Any]

    def merge(self, left: Array, right: Array) -> Array:
        first = len(self.states)
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        self.states.extend([self.kind.union(self._parsed(one), self._parsed(other)) for one, other in pairs])
        return np.arange(first, len(self.states), dtype=np.int64)

    def _parsed(self, number: int) -> Any:
        state = self.states[number]
        if isinstance(state, bytes):
            state = self.states[number] = self.kind.parse(state)
        return state


@dataclass(frozen=True)
class States:
    """The state of an aggregate in columns that only its own merge can read."""

    aggregate: StateMerger
    schema: Any
    summary: ClassVar[str] = ""

    @property
    def types(self) -> tuple[Any, ...]:
        """A mark that a state is there, then the columns of the state."""
        return (pa.bool_(), *self.schema.types)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """The rows are the first states of the pool."""
        held, *state = columns
        valid = pc.fill_null(held, False).to_numpy(zero_copy_only=False)
        pool = _ColumnPool(self.aggregate, [pa.RecordBatch.from_arrays(state, schema=self.schema)])
        lanes = (np.where(valid, np.arange(len(held), dtype=np.int64), -1),)
        return _LoadedStates(Pooled(pool), lanes, pool)


@dataclass
class _ColumnPool:
    aggregate: StateMerger
    batches: list[Any]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum(batch.num_rows for batch in self.batches)

    def merge(self, left: Array, right: Array) -> Array:
        merged = self.aggregate.merge(self.take(left), self.take(right))
        if merged.num_rows != len(left):
            raise ValueError(
                f"{type(self.aggregate).__name__}.merge() was given {len(left)} pairs of states and returned "
                f"{merged.num_rows}; it must return one state for each pair"
            )
        self.batches.append(merged.cast(self.batches[0].schema))
        first, self.size = self.size, self.size + len(left)
        return np.arange(first, self.size, dtype=np.int64)

    def take(self, numbers: NDArray[np.int64]) -> Any:
        """The states with these numbers, nulls for a number below zero."""
        # Taking from many chunks costs a pass over all of them; few large ones keep it linear.
        if len(self.batches) > 8:
            self.batches = [pa.concat_batches(self.batches)]
        table = pa.Table.from_batches(self.batches).take(pa.array(numbers, mask=numbers < 0))
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else self.batches[0].slice(0, 0)


@dataclass(frozen=True)
class _LoadedStates:
    merge: Merge
    lanes: Lanes
    pool: _ColumnPool

    def store(self, lanes: Lanes) -> list[Any]:
        held = lanes[0] >= 0
        batch = self.pool.take(lanes[0]) if self.pool.size else None
        mark = pa.array(held)
        if batch is None:
            return [mark, *(pa.nulls(len(held), type_) for type_ in self.pool.batches[0].schema.types)]
        return [mark, *batch.columns]
