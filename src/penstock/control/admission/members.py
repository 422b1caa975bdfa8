"""The streams of every gate, and the work of many streams summed up at many leads."""

import numpy as np

from penstock.control.admission.cluster import NOWHERE, Floats, Ints, loads

__all__ = ["Members", "strain_of", "summed"]

# Streams that are summed together.
_ROWS = 65_536


class Members:
    """The streams of every gate, found without a search over all streams."""

    def __init__(self, home: Ints, gates: int) -> None:
        self._order = np.argsort(home, kind="stable")
        self._starts = np.searchsorted(home[self._order], np.arange(gates + 1))
        self._changed: dict[int, list[int]] = {}

    def of(self, gate: int) -> Ints:
        """In the order of their numbers."""
        if gate in self._changed:
            return np.array(sorted(self._changed[gate]), np.int64)
        if gate + 1 >= len(self._starts):
            return np.empty(0, np.int64)
        found: Ints = self._order[self._starts[gate] : self._starts[gate + 1]]
        return found

    def move(self, stream: int, source: int, target: int) -> None:
        """Take a stream from one gate to another."""
        if source != NOWHERE:
            self._list(source).remove(stream)
        self._list(target).append(stream)

    def _list(self, gate: int) -> list[int]:
        if gate not in self._changed:
            self._changed[gate] = self.of(gate).tolist()
        return self._changed[gate]


def strain_of(load: Floats, capacity: Floats | float, weights: Floats) -> Floats:
    """Gate-periods above the capacity; the last axis of `load` is the leads."""
    strain: Floats = np.maximum(load / np.asarray(capacity)[..., None] - 1, 0.0) @ weights
    return strain


def summed(home: Ints, values: Floats, gates: int) -> Floats:
    """The sums of the rows of each gate; block by block, since a column of many rows misses the cache."""
    found = np.zeros((gates, values.shape[1]))
    for start in range(0, len(home), _ROWS):
        part = slice(start, start + _ROWS)
        for lead, column in enumerate(values[part].T):
            found[:, lead] += loads(home[part], column, gates)
    return found
