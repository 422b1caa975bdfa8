"""The most frequent keys of an epoch, counted in the channel that has them anyway.

At most 65,536 of the new rows are looked at, evenly spaced, and at most 64 keys of a channel are reported,
so the cost is bounded: about 2 ms a channel. Only the keys that are reported are hashed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.routing.spark_hash import spark_hash
from penstock.runtime.keyed import number_keys

__all__ = ["MOST_KEYS", "MOST_ROWS", "KeyCounts", "count_keys"]

MOST_KEYS = 64
"""How many keys a channel reports."""

MOST_ROWS = 65_536
"""How many rows of a channel are looked at."""


@dataclass(frozen=True)
class KeyCounts:
    """Hashes of keys, as signed numbers, and how many of `total` tuples each has; `keys` were seen in all."""

    hashes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    total: int = 0
    keys: int = 0

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KeyCounts":
        """What plain values stand for."""
        return cls(tuple(value["hashes"]), tuple(value["counts"]), value["total"], value["keys"])


def count_keys(columns: Sequence[Any], rows: int, weights: NDArray[np.int64] | None = None) -> KeyCounts:
    """The counts of the keys in these columns of a table; a row stands for as many tuples as its weight says.

    >>> import pyarrow as pa
    >>> found = count_keys([pa.chunked_array([["a", "b", "a"]])], 3)
    >>> found.counts, found.total, found.keys
    ((2, 1), 3, 2)
    """
    if not columns or not rows:
        return KeyCounts(total=rows)
    step = -(-rows // MOST_ROWS)
    if step > 1:
        at = np.arange(0, rows, step)
        columns = [column.take(at) for column in columns]
        rows = len(at)
        weights = None if weights is None else weights[at]
    numbers, keys = number_keys(list(columns), rows)
    counts = np.bincount(numbers, weights).astype(np.int64)
    most = min(MOST_KEYS, len(counts))
    top = np.argpartition(-counts, most - 1)[:most]
    top = top[np.argsort(-counts[top], kind="stable")]
    hashes = spark_hash([column.take(top) for column in keys], len(top))
    return KeyCounts(
        tuple(hashes.view(np.int64).tolist()),
        tuple((counts[top] * step).tolist()),
        int(counts.sum()) * step,
        len(counts),
    )
