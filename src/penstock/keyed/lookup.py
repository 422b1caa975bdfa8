"""Keys found in a table that is sorted by their hashes: k keys among n in O(k log n)."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.keyed.same_keys import same_keys

__all__ = ["find"]


def find(
    hashes: NDArray[np.uint64], keys: Any, wanted: NDArray[np.uint64], wanted_keys: Any
) -> NDArray[np.int64]:
    """The row of each wanted key in a table of ascending `hashes` and their `keys`, -1 where it is not.

    A hash only leads to where a key may be; the keys themselves decide.

    >>> known = np.array([1, 4, 4], np.uint64), pa.table({"k": ["a", "b", "c"]})
    >>> find(*known, np.array([4, 4, 9], np.uint64), pa.table({"k": ["c", "d", "a"]})).tolist()
    [2, -1, -1]
    """
    found = np.full(len(wanted), -1, np.int64)
    asked = np.arange(len(wanted))
    at = np.searchsorted(hashes, wanted)
    while len(asked):
        inside = np.minimum(at, max(0, len(hashes) - 1))
        alike = (at < len(hashes)) & (hashes[inside] == wanted[asked]) if len(hashes) else at < 0
        asked, at = asked[alike], at[alike]
        same = same_keys(keys.take(pa.array(at)), wanted_keys.take(pa.array(asked)))
        found[asked[same]] = at[same]
        asked, at = asked[~same], at[~same] + 1
    return found
