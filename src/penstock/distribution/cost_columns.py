"""Which columns tell what a row costs, found out from the costs of single rows.

A column explains costs as far as a row costs what the other rows with its value cost. Each row is left out of
the mean that predicts it: so a column whose values never come again, such as an identifier, explains nothing,
and a column that merely has many values is not preferred. Costs count by their logarithm and up to a limit,
so that calls that the machine held up do not decide. Nobody looks into the function.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from penstock.sketches.wire import pack, unpack

__all__ = ["CostColumns", "RowCosts", "explained"]

Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]

_FEWEST, _MOST = 96, 2048
"""Rows from which columns are judged, and the most that are remembered, the newest ones."""
_EXPLAINS: Final = 0.3
"""The part of the variance of costs that columns have to explain to be found."""
_MORE: Final = 0.1
"""Two columns have to explain so much more than one of them; of columns within it that with fewer values is
taken, of which more is learnt."""
_PAIRED: Final = 4
"""The best so many columns are tried in pairs."""
_ENOUGH, _SELDOM = 512, 8
"""After so many rows without columns that explain their costs, samples are taken in one of so many epochs."""
_DEAREST: Final = 8.0
"""What a row costs counts up to so many times the mean."""
_NOISE: Final = 1e-12
"""A smaller variance of the logarithms is none."""
_LEAST_CPU: Final = 0.5
"""If the processor was busy for a smaller part of the time, the function waits for something else."""
_ODD = np.uint64(0x9E3779B185EBCA87)


@dataclass(frozen=True)
class RowCosts:
    """Single rows: the hash of the value in each candidate column, and what they took by either clock.

    >>> costs = RowCosts(np.array([[1, 5], [2, 5]], np.uint64), np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    >>> RowCosts.from_bytes(costs.to_bytes()).cpu.tolist()
    [1.0, 2.0]
    """

    hashes: Hashes
    wall: Floats
    cpu: Floats

    def to_bytes(self) -> bytes:
        """A form to send."""
        return pack("row-costs", {}, [self.hashes, self.wall, self.cpu])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote."""
        _, (hashes, wall, cpu) = unpack("row-costs", data)
        return cls(hashes, wall, cpu)

    @property
    def costs(self) -> Floats:
        """Processor time, or wall time if the function mostly waits."""
        return self.cpu if self.cpu.sum() >= _LEAST_CPU * self.wall.sum() else self.wall

    def with_newer(self, others: Sequence["RowCosts"]) -> "RowCosts":
        """All of them together, as far as they are remembered."""
        every = [self, *others]
        return RowCosts(
            np.concatenate([each.hashes for each in every])[-_MOST:],
            np.concatenate([each.wall for each in every])[-_MOST:],
            np.concatenate([each.cpu for each in every])[-_MOST:],
        )


@dataclass
class CostColumns:
    """Looks for the columns among candidates; `found` are those that explain costs, and `why` says more."""

    candidates: tuple[str, ...]
    found: tuple[str, ...] = ()
    why: str = "no row was measured yet"
    _rows: RowCosts | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.candidates:
            self.why = "no column has plain values that costs could go by"

    def update(self, reports: Sequence[RowCosts]) -> None:
        """Take in what channels have measured in an epoch."""
        if not reports or self.found:
            return
        self._rows = (
            reports[0].with_newer(reports[1:]) if self._rows is None else self._rows.with_newer(reports)
        )
        count = len(self._rows.wall)
        if count < _FEWEST:
            self.why = f"only {count} rows were measured, and {_FEWEST} are needed"
            return
        best, part = self._best(self._rows)
        names = " and ".join(best)
        if part >= _EXPLAINS:
            self.found = best
            self.why = f"{names} explain{'s' if len(best) == 1 else ''} {part:.0%} of what {count} rows cost"
            return
        self.why = (
            f"no column explains {_EXPLAINS:.0%} of what {count} rows cost: {names}, the best, "
            f"explains {max(part, 0.0):.0%}"
        )

    def sampled(self, epoch: int) -> bool:
        """Whether channels measure single rows in an epoch."""
        if self.found or not self.candidates:
            return False
        return self._rows is None or len(self._rows.wall) < _ENOUGH or epoch % _SELDOM == 0

    def _best(self, rows: RowCosts) -> tuple[tuple[str, ...], float]:
        """The column that explains most, or two that explain more together, and what part."""
        costs, hashes = rows.costs, dict(zip(self.candidates, rows.hashes.T, strict=True))
        parts = {name: explained(values, costs) for name, values in hashes.items()}
        most = max(parts.values())
        top = sorted(parts, key=lambda name: -parts[name])[:_PAIRED]
        pairs = {
            pair: explained(hashes[pair[0]] * _ODD + hashes[pair[1]], costs) for pair in combinations(top, 2)
        }
        for pair in sorted(pairs, key=lambda each: -pairs[each])[:1]:
            if pairs[pair] >= most + _MORE:
                return pair, pairs[pair]
        near = [name for name in parts if parts[name] >= most - _MORE]
        best = min(near, key=lambda name: len(np.unique(hashes[name])))
        return (best,), parts[best]


def explained(values: Hashes, costs: Floats) -> float:
    """The part of the variance of costs that is gone once the other rows with a row's value are known.

    >>> values, other = np.array([1, 2] * 8, np.uint64), np.array([1, 1, 2, 2] * 4, np.uint64)
    >>> costs = np.array([1.0, 9.0] * 8)
    >>> explained(values, costs), explained(other, costs) < 0
    (1.0, True)
    >>> explained(np.arange(16, dtype=np.uint64), costs)
    0.0
    """
    mean = float(costs.mean())
    if mean <= 0 or len(costs) < 2:
        return 0.0
    each = np.log1p(np.minimum(costs / mean, _DEAREST))
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    others = counts[at] - 1
    unknown = (each.sum() - each) / (len(each) - 1)
    known = (np.bincount(at, each)[at] - each) / np.maximum(others, 1)
    all_error = float(((each - unknown) ** 2).sum())
    if all_error <= _NOISE * len(each):
        return 0.0
    error = float(((each - np.where(others > 0, known, unknown)) ** 2).sum())
    return 1 - error / all_error
