"""Numbers for keys: equal keys get equal numbers, and a key that nothing new has gets -1.

Only distinct new keys are put into a hash table; a kept row costs one look-up per key column, and one
whose key nothing new has is done with. Whole numbers that lie close together need no hash table: their
distance from the least is their number, and a bitmap says which are new; that takes a fifth of the time.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["Numbers", "key_columns", "number_by_new"]

Numbers = NDArray[np.int64]
# Places of the bitmap for each new value, and how many there may always be.
_ROOM, _LEAST_ROOM = 16, 1 << 16


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
    """A number for every value that one of the first `new` columns has, or -1."""
    dense = _dense(columns, new) if pa.types.is_integer(columns[0].type) else None
    if dense is not None:
        return dense
    chunks = [chunk for column in columns[:new] for chunk in column.chunks]
    values = pc.drop_null(pc.unique(pa.chunked_array(chunks, columns[0].type)))
    return [
        pc.fill_null(pc.index_in(column, value_set=values), -1).to_numpy().astype(np.int64)
        for column in columns
    ]


def _dense(columns: Any, new: int) -> list[Numbers] | None:
    """Distances from the least new value, or None where the new values are too far apart for a bitmap."""
    found = [(pc.fill_null(column, 0).to_numpy(), _valid(column)) for column in columns]
    fresh = [values[valid] if valid is not None else values for values, valid in found[:new]]
    held = [values for values in fresh if len(values)]
    if not held:
        return [np.full(len(values), -1, np.int64) for values, _ in found]
    least, most = min(int(each.min()) for each in held), max(int(each.max()) for each in held)
    if most - least >= _ROOM * sum(len(each) for each in held) + _LEAST_ROOM:
        return None
    # One more place, which no value has, for those outside.
    known = np.zeros(most - least + 2, np.bool_)
    for each in held:
        known[each - least] = True
    return [_distances(values, valid, known, least, most) for values, valid in found]


def _distances(values: Any, valid: Any, known: Any, least: int, most: int) -> Numbers:
    inside = (values >= least) & (values <= most)
    if valid is not None:
        inside &= valid
    place = np.where(inside, values.astype(np.int64, copy=False) - least, most - least + 1)
    numbers: Numbers = np.where(known[place], place, -1)
    return numbers


def _valid(column: Any) -> Any:
    return pc.is_valid(column).to_numpy() if column.null_count else None
