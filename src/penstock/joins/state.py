"""The rows that a join keeps: those that can still match, and whether each has matched."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Held", "Mask", "Pair", "Remains"]

Mask = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True)
class Pair(Generic[T]):
    """One thing for each side."""

    left: T
    right: T


@dataclass(frozen=True)
class Held:
    """Rows that can still match, and whether each of them has matched.

    Only an outer join asks for the marks; for others they are all false.
    """

    rows: Any
    matched: Mask

    def __post_init__(self) -> None:
        assert len(self.matched) == self.rows.num_rows

    @classmethod
    def nothing(cls, schema: Any) -> "Held":
        """Before the first epoch."""
        return cls(schema.empty_table(), np.zeros(0, np.bool_))


@dataclass(frozen=True)
class Remains:
    """What becomes of a side's rows: which kept and which new ones stay, and the marks of all of them.

    Masks, so that a caller can leave segments as they are while any of their rows stay, write only new
    rows, and rewrite only the marks.
    """

    kept: Mask
    new: Mask
    kept_matched: Mask
    new_matched: Mask

    def held(self, kept: Any, new: Any) -> Held:
        """The rows to keep for the next epoch, from the kept and the new rows of this one."""
        rows = pa.concat_tables([kept.filter(pa.array(self.kept)), new.filter(pa.array(self.new))])
        return Held(rows, np.concatenate([self.kept_matched[self.kept], self.new_matched[self.new]]))
