"""Versions of keys merged: of every key the newest is left, in the order of hashes."""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.keyed.ordering import ordered

__all__ = ["newest"]


def newest(tables: list[Any], hashed: str, keys: list[str]) -> Any:
    """One table of the newest row of every key; `tables` are from the oldest to the newest.

    Takes memory for all of them and O(rows log rows) time.

    >>> old = pa.table({"h": pa.array([1, 5]), "k": ["a", "b"], "n": [1, 1]})
    >>> new = pa.table({"h": pa.array([5]), "k": ["b"], "n": [2]})
    >>> newest([old, new], "h", ["k"])["n"].to_pylist()
    [1, 2]
    """
    together = pa.concat_tables(tables).combine_chunks()
    age = np.repeat(np.arange(len(tables))[::-1], [table.num_rows for table in tables])
    hashes = together[hashed].to_numpy().view(np.uint64)
    found = ordered(hashes, age, together.select(keys))
    return together.take(pa.array(found.order[found.first]))
