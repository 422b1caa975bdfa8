"""Numbers for keys: equal keys get equal numbers, and a key that nothing new has gets -1.

Only distinct new keys are put into a hash table; a kept row costs one look-up per key column, and one
whose key nothing new has is done with.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["Numbers", "key_columns", "number_by_new"]

Numbers = NDArray[np.int64]


def key_columns(table: Any, keys: tuple[str, ...], types: tuple[Any, ...]) -> list[Any]:
    """The key columns of a table in the types in which they are compared."""
    return [_comparable(table[key], type_) for key, type_ in zip(keys, types, strict=True)]


def _comparable(column: Any, type_: Any) -> Any:
    column = column if column.type == type_ else column.cast(type_)
    # Both zeros are one value in SQL and two bit patterns; adding zero leaves one.
    return pc.add(column, pa.scalar(0, type_)) if pa.types.is_floating(type_) else column


def number_by_new(new: list[list[Any]], kept: list[list[Any]]) -> tuple[list[Numbers], list[Numbers]]:
    """Numbers of the rows of new and of kept tables, each given as its key columns.

    A row with a null in its key gets -1.

    >>> ab, bc = [pa.chunked_array([["a", "b", None]])], [pa.chunked_array([["b", "c"]])]
    >>> [each.tolist() for part in number_by_new([ab], [bc]) for each in part]
    [[0, 1, -1], [1, -1]]
    """
    tables = new + kept
    numbers, *others = [_codes(columns, len(new)) for columns in zip(*tables, strict=True)]
    for codes in others:
        width = 1 + max((int(each.max()) for each in codes if len(each)), default=0)
        joint = [
            np.where((one < 0) | (other < 0), -1, one * width + other)
            for one, other in zip(numbers, codes, strict=True)
        ]
        # Numbered anew at every column, so that the product of many columns cannot overflow.
        numbers = _codes([pa.chunked_array([pa.array(each, mask=each < 0)]) for each in joint], len(new))
    return numbers[: len(new)], numbers[len(new) :]


def _codes(columns: Any, new: int) -> list[Numbers]:
    """The place of every value among the distinct values of the first `new` columns, or -1."""
    chunks = [chunk for column in columns[:new] for chunk in column.chunks]
    values = pc.drop_null(pc.unique(pa.chunked_array(chunks, columns[0].type)))
    return [
        pc.fill_null(pc.index_in(column, value_set=values), -1).to_numpy().astype(np.int64)
        for column in columns
    ]
