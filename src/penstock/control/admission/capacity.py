"""What a gate's work costs and how much of it each gate can do, both learnt from what gates measured.

Rows per second alone do not describe a gate: the same gate takes many times more rows in large batches than
in small ones. So work is counted in gates: the part of a usual gate that batches, bytes and rows take. A gate
is used up when its processor time is, or the rows a second that it may take; where rows wait before, less is
enough, and where they do not wait then, it can do more.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from penstock.control.admission.cluster import Floats
from penstock.errors import BadAdmission

__all__ = ["CORE", "USUAL_PRICE", "Capacities", "Price", "PriceFit", "fit_price"]

CORE: Final = 0.7
"""The part of a core that a gate is taken to be able to use, until it is seen where rows begin to wait."""
HEADROOM = 0.9
"""The part of what a gate can do that is planned with: at all of it no queue would ever be worked off."""
_BUSY = 0.1
"""A gate that is used less tells little of what work costs, mostly what it takes without any."""
_TELLING, _NEAR = 0.25, 0.9
"""A gate that is used so far tells how fast it is; one that is this near to the most may do more."""
_FADING, _PROBING, _LEAST = 0.75, 1.02, 0.01
_CHOICES = [list(each) for own in ([], [3]) for size in (1, 2, 3) for each in combinations(range(3), size)
            for each in [(*each, *own)]]  # fmt: skip


@dataclass(frozen=True)
class Price:
    """The part of a usual gate that a batch, a byte and a row take in a second.

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


USUAL_PRICE: Final = Price(batch=2e-4, byte=2.7e-9, row=0.0)
"""Where learning begins: measured on one machine, with the part of a core that a gate can use as a gate."""


class PriceFit:
    """The price that fits the last periods of gates best.

    Until enough are known it is the `start` price, scaled to what gates were used for. A gate without much
    to do tells little of what work costs, and is left out.

    >>> fit = PriceFit(Price(1.0, 0.0, 0.0), least=3)
    >>> fit.observe(0.2, 100.0, 1000.0, 1000.0); fit.price
    Price(batch=0.002, byte=0.0, row=0.0)
    >>> fit.observe(0.4, 200.0, 1000.0, 5000.0); fit.observe(0.6, 300.0, 1000.0, 9000.0); fit.price
    Price(batch=0.002, byte=0.0, row=0.0)
    """

    def __init__(self, start: Price, *, least: int = 16, most: int = 512) -> None:
        self._seen: deque[tuple[float, float, float, float]] = deque(maxlen=most)
        self._start, self._least = start, least
        self.price = start

    def begin(self, start: Price) -> None:
        """Start from another price, if nothing was learnt yet."""
        if not self._seen:
            self._start = self.price = start

    def observe(self, used: float, batches: float, bytes_: float, rows: float) -> None:
        """This part of a gate was used in a period, for these counts a second."""
        if used < _BUSY or batches <= 0:
            return
        self._seen.append((used, batches, bytes_, rows))
        known = np.array(self._seen, np.float64).T
        if len(self._seen) >= self._least:
            self.price = fit_price(*known)
        else:
            expected = float(self._start.of(*known[1:]).sum())
            scale = float(f"{known[0].sum() / expected:.6g}")
            self.price = Price(
                *(scale * each for each in (self._start.batch, self._start.byte, self._start.row))
            )


def fit_price(busy: Floats, batches: Floats, bytes_: Floats, rows: Floats) -> Price:
    """The costs that fit best, in squared error, to how busy gates were with these counts.

    No cost is below 0, nor is what a gate takes without rows: all choices of costs that may be above 0 are
    tried, which is exact for so few.

    >>> counts = np.array([[1.0, 1e3, 10.0], [5.0, 1e3, 10.0], [1.0, 9e3, 10.0], [2.0, 2e3, 90.0]])
    >>> fit_price(counts @ [1e-3, 1e-6, 0.0], *counts.T)
    Price(batch=0.001, byte=1e-06, row=0.0)
    """
    counts = np.column_stack([batches, bytes_, rows, np.ones(len(rows))]).astype(np.float64)
    known = np.isfinite(counts).all(axis=1) & np.isfinite(busy)
    if not known.any() or not (counts[known, :3] > 0).any() or not (np.asarray(busy)[known] > 0).any():
        raise BadAdmission("no period in which a gate was busy; measure gates that take rows")
    counts, busy = counts[known], np.asarray(busy, np.float64)[known]
    scale = np.maximum(np.abs(counts).max(axis=0), 1e-300)
    best, least = np.zeros(4), np.inf
    for columns in _CHOICES:
        cost, *_ = np.linalg.lstsq(counts[:, columns] / scale[columns], busy, rcond=None)
        error = float(
            ((counts[:, columns] / scale[columns]) @ cost - busy)
            @ ((counts[:, columns] / scale[columns]) @ cost - busy)
        )
        # A further cost must explain more than rounding, or the same data fit in two ways.
        if cost.min() >= 0 and error < least * (1 - 1e-9) - 1e-24:
            best, least = np.zeros(4), error
            best[columns] = cost / scale[columns]
    return Price(*(float(f"{each:.12g}") for each in best[:3]))


@dataclass
class _Learnt:
    """Faded sums of a gate: what it did, and the part of it that this took; and how far it can be used."""

    counts: Floats
    used: float
    most: float


class Capacities:
    """How much work a second each gate can do.

    How fast a gate is follows from what it did and which part of it this took. How far it can be used begins
    with all of it, falls to where rows wait, and rises to what it did without that, or slowly while it is
    nearly there and nothing waits.

    >>> known, price = Capacities(), Price(batch=0.01, byte=0.0, row=0.0)
    >>> known.of("new", price)
    0.9
    >>> known.observe("slow", np.array([40.0, 0.0, 0.0]), 0.8, waits=False); round(known.of("slow", price), 2)
    0.45
    >>> for _ in range(30):
    ...     known.observe("stuck", np.array([40.0, 0.0, 0.0]), 0.4, waits=True)
    >>> round(known.of("stuck", price), 2), round(known.of("new", price), 2)
    (0.36, 0.41)
    >>> round(known.of("slow", price, {"slow": 3.0}), 2), round(known.of("large", price, {"large": 2.0}), 2)
    (0.45, 0.81)
    """

    def __init__(self) -> None:
        self._gates: dict[str, _Learnt] = {}

    def observe(self, gate: str, counts: Floats, used: float, *, waits: bool) -> None:
        """A gate did this much a second, and so much of it was used; `waits`: rows waited all the time."""
        if used < _TELLING and not waits:
            return
        known = self._gates.setdefault(gate, _Learnt(np.zeros(3), 0.0, 1.0))
        known.counts = _FADING * known.counts + counts
        known.used = _FADING * known.used + used
        if waits:
            known.most = max(known.most + (1 - _FADING) * (used - known.most), _LEAST)
        elif used >= known.most:
            known.most = used
        elif used >= _NEAR * known.most and known.most < 1:
            known.most = min(known.most * _PROBING, 1.0)

    def of(self, gate: str, price: Price, shares: Mapping[str, float] | None = None) -> float:
        """The capacity of a gate; of one that is not known that of the others in the mean, or 1.

        `shares` say how much a gate can do as a multiple of a usual one, as long as it is not known.
        """
        known = self._gates.get(gate)
        if known is not None and known.used > 0:
            return max(HEADROOM * float(price.of(*known.counts)) / known.used * known.most, _LEAST)
        said = shares or {}
        others = [
            self.of(each, price) / said.get(each, 1.0)
            for each, learnt in self._gates.items()
            if learnt.used > 0
        ]
        return said.get(gate, 1.0) * (sum(others) / len(others) if others else HEADROOM)

    def keep(self, gates: set[str]) -> None:
        """Forget all gates but these, unless none of them would be known."""
        if kept := {gate: each for gate, each in self._gates.items() if gate in gates}:
            self._gates = kept

    def to_json(self) -> dict[str, list[float]]:
        """What is known of each gate."""
        return {gate: [*each.counts.tolist(), each.used, each.most] for gate, each in self._gates.items()}

    def resume(self, value: Mapping[str, list[float]]) -> None:
        """Continue from what `to_json` gave."""
        self._gates = {
            gate: _Learnt(np.array(counts), used, most) for gate, (*counts, used, most) in value.items()
        }
