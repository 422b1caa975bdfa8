"""Whether keys are the same, column by column: null is the same as null, every NaN as every NaN."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["normal_keys", "same_keys"]


def normal_keys(keys: Any) -> Any:
    """A table of keys in which equal ones look alike: one zero and one NaN."""
    for place, field in enumerate(keys.schema):
        if pa.types.is_floating(field.type):
            column = pc.add(keys.column(place), pa.scalar(0, field.type))
            column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), field.type), column)
            keys = keys.set_column(place, field, column)
    return keys


def same_keys(left: Any, right: Any) -> NDArray[np.bool_]:
    """Row by row, whether two tables of keys, made normal, have the same; one comparison per column.

    >>> same_keys(pa.table({"k": ["a", None, "b"]}), pa.table({"k": ["a", None, None]})).tolist()
    [True, True, False]
    """
    found = np.ones(left.num_rows, np.bool_)
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        equal = pc.fill_null(pc.equal(ours, theirs), False)
        if ours.null_count and theirs.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(ours), pc.is_null(theirs)))
        if pa.types.is_floating(ours.type):
            nan = pc.and_(pc.is_nan(ours), pc.is_nan(theirs))
            equal = pc.or_(equal, pc.fill_null(nan, False))
        found &= equal.to_numpy(zero_copy_only=False) if isinstance(equal, pa.Array) else equal.to_numpy()
    return found
