"""The most frequent keys among the new rows of a channel, with Spark's hash of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.routing.spark_hash import spark_hash
from penstock.runtime.keyed import number_keys

__all__ = ["MOST_COUNTED", "KeyCount", "count_keys"]

MOST_COUNTED = 64
"""How many keys a channel reports."""
_LONGEST_TEXT = 40


@dataclass(frozen=True)
class KeyCount:
    """A key by its hash (signed, as Spark gives it), how many rows have it, and its text for people."""

    hash: int
    rows: int
    text: str = ""


def count_keys(keys: Sequence[Any], weights: NDArray[np.int64] | None = None) -> tuple[KeyCount, ...]:
    """The most frequent keys, most frequent first; with weights, a row stands for so many.

    One pass over the keys; only those reported are hashed.
    """
    numbers, distinct = number_keys(list(keys), len(keys[0]))
    counts = np.bincount(numbers, weights).astype(np.int64)
    most = min(MOST_COUNTED, len(counts))
    top = np.argpartition(counts, len(counts) - most)[len(counts) - most :]
    top = top[np.argsort(-counts[top], kind="stable")]
    columns = [column.take(top) for column in distinct]
    hashes = spark_hash(columns, most).view(np.int64).tolist()
    texts = (", ".join(map(str, row)) for row in zip(*(each.to_pylist() for each in columns), strict=True))
    return tuple(
        KeyCount(hash_, rows, text[:_LONGEST_TEXT])
        for hash_, rows, text in zip(hashes, counts[top].tolist(), texts, strict=True)
    )
