"""What a gate's work costs: seconds for each batch, byte and row, fitted to what gates measured.

Rows per second alone do not describe a gate: the same gate takes many times more rows in large batches than
in small ones. Work in seconds per second has one capacity, the part of a gate's time that it may be busy.
"""

from collections import deque
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from penstock.control.admission.cluster import Floats
from penstock.errors import BadAdmission

__all__ = ["Price", "PriceFit", "fit_price"]


@dataclass(frozen=True)
class Price:
    """Seconds of a gate's time for a batch, a byte and a row.

    >>> Price(batch=1e-4, byte=1e-9, row=0.0).of(np.array([10.0]), np.array([1e6]), np.array([1e4]))
    array([0.002])
    """

    batch: float
    byte: float
    row: float

    def __post_init__(self) -> None:
        if min(self.batch, self.byte, self.row) < 0 or max(self.batch, self.byte, self.row) <= 0:
            raise BadAdmission(f"{self}; give costs from 0, at least one of them above 0")

    @classmethod
    def per_row(cls, rows: float) -> "Price":
        """A gate that takes this many rows a second, however they come."""
        return cls(0.0, 0.0, 1 / rows)

    def of(self, batches: Floats, bytes_: Floats, rows: Floats) -> Floats:
        """The work of streams from their counts per second."""
        return self.batch * batches + self.byte * bytes_ + self.row * rows


class PriceFit:
    """The price that fits the last periods of gates best; a given one until enough are known.

    >>> fit = PriceFit(Price(1.0, 0.0, 0.0), least=2)
    >>> fit.price
    Price(batch=1.0, byte=0.0, row=0.0)
    >>> fit.observe(0.2, 100.0, 1000.0, 1000.0); fit.observe(0.4, 200.0, 1000.0, 5000.0)
    >>> fit.price
    Price(batch=0.002, byte=0.0, row=0.0)
    """

    def __init__(self, start: Price, *, least: int = 16, most: int = 512) -> None:
        self._seen: deque[tuple[float, float, float, float]] = deque(maxlen=most)
        self._least = least
        self.price = start

    def observe(self, busy: float, batches: float, bytes_: float, rows: float) -> None:
        """A gate was busy for this part of a period, with these counts a second; idle ones tell nothing."""
        if busy > 0 and batches > 0:
            self._seen.append((busy, batches, bytes_, rows))
            if len(self._seen) >= self._least:
                self.price = fit_price(*np.array(self._seen, np.float64).T)


def fit_price(busy: Floats, batches: Floats, bytes_: Floats, rows: Floats) -> Price:
    """The costs that fit best, in squared error, to the seconds that gates were busy with these counts.

    No cost is below 0: all seven choices of costs that may be above 0 are tried, which is exact for three.

    >>> counts = np.array([[1.0, 1e3, 10.0], [5.0, 1e3, 10.0], [1.0, 9e3, 10.0], [2.0, 2e3, 90.0]])
    >>> fit_price(counts @ [1e-3, 1e-6, 0.0], *counts.T)
    Price(batch=0.001, byte=1e-06, row=0.0)
    """
    counts = np.column_stack([batches, bytes_, rows]).astype(np.float64)
    known = np.isfinite(counts).all(axis=1) & np.isfinite(busy)
    if not known.any() or not (counts[known] > 0).any() or not (np.asarray(busy)[known] > 0).any():
        raise BadAdmission("no period in which a gate was busy; measure gates that take rows")
    counts, busy = counts[known], np.asarray(busy, np.float64)[known]
    scale = np.maximum(np.abs(counts).max(axis=0), 1e-300)
    best, least = np.zeros(3), np.inf
    for chosen in (each for size in (1, 2, 3) for each in combinations(range(3), size)):
        columns = list(chosen)
        cost, *_ = np.linalg.lstsq(counts[:, columns] / scale[columns], busy, rcond=None)
        error = float(
            ((counts[:, columns] / scale[columns]) @ cost - busy)
            @ ((counts[:, columns] / scale[columns]) @ cost - busy)
        )
        # A further cost must explain more than rounding, or the same data fit in two ways.
        if cost.min() >= 0 and error < least * (1 - 1e-9) - 1e-24:
            best, least = np.zeros(3), error
            best[columns] = cost / scale[columns]
    return Price(*(float(f"{each:.12g}") for each in best))
