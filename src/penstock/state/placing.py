"""Where rows of state belong after a change of layout, decided by each channel for itself.

A move sends no rows. It gives every channel that may get rows of a segment a reference to the whole file, and
whoever reads the file asks the placing of that move which rows are its own. So the answer for a row depends
on nothing but the row, the number that it has in its file, and a seed that is the same for all who ask: every
row belongs to the channels that have to have it, once in each, without a word between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CELL
from penstock.routing.arrays import RouteArrays
from penstock.routing.spark_hash import spark_hash
from penstock.sketches.splitmix import splitmix64

__all__ = ["Flow", "Mask", "Numbers", "Placing", "Read", "Targets"]

Mask = NDArray[np.bool_]
Targets = NDArray[np.int32]
Numbers = NDArray[np.int64]

Flow = Mapping[int, float | None]
"""The channels that may get rows of a segment, each with the share of them to expect; None for all rows."""


@dataclass(frozen=True, eq=False)
class Read:
    """Rows of a segment that a channel held before a move, as a placing sees them.

    `file` has them, at `places` if these are not all of its rows; `numbers` are their numbers in the file
    that was written. `keys` are the columns that the router hashes, in its order; `port` says which copy rule
    applies. `seed` is the same for all channels that read these rows. Columns are read when they are asked
    for: a file with cells says most of what a placing wants to know of keys.
    """

    file: Any
    numbers: Numbers
    keys: tuple[str, ...] = ()
    port: int = 0
    seed: int = 0
    places: Numbers | None = None

    def column(self, name: str) -> Any:
        """A column of the rows."""
        column = self.file[name]
        return column if self.places is None else column.take(pa.array(self.places))

    @cached_property
    def known(self) -> Mask | None:
        """Which rows have no null in their key; None if all have none."""
        columns = [self.column(name) for name in self.keys if self.file[name].null_count]
        valid = [np.asarray(each.is_valid()) for each in columns]
        return np.logical_and.reduce(valid) if valid else None

    def hashes(self, at: Numbers) -> NDArray[np.uint64]:
        """The hash of the key of each of these rows."""
        places = pa.array(at if self.places is None else self.places[at])
        return spark_hash([self.file[name].take(places) for name in self.keys], len(at))

    def routes(self, router: RouteArrays) -> Targets:
        """The channel of each row."""
        if CELL not in self.file.column_names:
            return router.route(self.hashes(np.arange(len(self.numbers))))
        cells = self.file[CELL].to_numpy()
        return router.by_cells(cells if self.places is None else cells[self.places], self.hashes)

    def salts(self, at: Numbers) -> NDArray[np.uint64]:
        """A uniform number for each of these rows."""
        return splitmix64(self.numbers[at].astype(np.uint64), seed=self.seed)


class Placing(ABC):
    """A change of layout for the state of one stage."""

    kind: ClassVar[str]
    """Its name in the checkpoint."""
    coarse: ClassVar[bool]
    """Whether derived rows belong where the rows do that they are derived from."""
    known: ClassVar[dict[str, type["Placing"]]] = {}

    def __init_subclass__(cls) -> None:
        Placing.known[cls.kind] = cls

    @abstractmethod
    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """Where rows of a segment of a channel may go; its rows have these bounds in their table."""

    @abstractmethod
    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Which rows that channel `source` had belong to channel `target`, which may be the same."""

    @abstractmethod
    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Plain values and arrays, from which `unpacked` makes the same placing."""

    @classmethod
    @abstractmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "Placing":
        """The same placing from what `packed` gave."""
