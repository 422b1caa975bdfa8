"""What rows of each value cost, measured in a channel; the clocks come from outside."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from penstock.distribution.distribution import RowCosts
from penstock.sketches import ValueCosts

__all__ = ["CostMeter"]

T = TypeVar("T")


@dataclass
class CostMeter:
    """Times calls, by wall time and by processor time, and learns from them what each value costs."""

    wall: Callable[[], float]
    cpu: Callable[[], float]
    _noted: list[tuple[int, int, float, float]] = field(default_factory=list)
    _rows: list[tuple[list[int], float, float]] = field(default_factory=list)

    def timed(self, call: Callable[[], T]) -> tuple[T, float, float]:
        """What a call gives, and its wall and processor seconds."""
        wall, cpu = self.wall(), self.cpu()
        found = call()
        return found, self.wall() - wall, self.cpu() - cpu

    def note(self, value: int, rows: int, wall: float, cpu: float) -> None:
        """So many rows of the value with this hash cost so much."""
        self._noted.append((value, rows, max(wall, 0.0), max(cpu, 0.0)))

    def note_row(self, values: list[int], wall: float, cpu: float) -> None:
        """A row with these hashes of its values, column by column, cost so much."""
        self._rows.append((values, max(wall, 0.0), max(cpu, 0.0)))

    def row_costs(self) -> RowCosts | None:
        """All rows that were noted, None if none was."""
        if not self._rows:
            return None
        values, wall, cpu = zip(*self._rows, strict=True)
        return RowCosts(np.array(values, np.uint64), np.array(wall, np.float64), np.array(cpu, np.float64))

    def costs(self) -> ValueCosts | None:
        """All that was noted, None if nothing was."""
        if not self._noted:
            return None
        values, rows, wall, cpu = zip(*self._noted, strict=True)
        found = ValueCosts()
        found.update(
            np.array(values, np.int64).view(np.uint64),
            np.array(rows, np.float64),
            np.array(wall, np.float64),
            np.array(cpu, np.float64),
        )
        return found
