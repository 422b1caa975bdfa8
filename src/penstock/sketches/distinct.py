"""How many distinct items there were: HyperLogLog registers, which merge without loss.

The estimate is Ertl's improved one, which needs no tables for small or large numbers. Its relative standard
error is 1.04 / sqrt(registers): 1.6 % with 4,096 registers, of which `to_text` makes about 3 kB.
"""

import base64
import math
import zlib
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting

__all__ = ["Distinct"]

_PRECISION = 12
_REGISTERS = 1 << _PRECISION
# Bits behind those that choose the register; floats are exact up to 52.
_BITS = 52
_RANK = np.uint64((1 << _BITS) - 1)


class Distinct:
    """Counts distinct hashes; the same hashes in any order and any number give the same registers.

    >>> seen = Distinct()
    >>> seen.update(np.array([1, 5, 5, 9], np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    >>> round(seen.estimate)
    3
    """

    def __init__(self) -> None:
        self._registers: NDArray[np.uint8] = np.zeros(_REGISTERS, np.uint8)
        # Until the registers change.
        self._estimate: float | None = None
        self._text: str | None = None

    def update(self, hashes: NDArray[np.uint64]) -> None:
        """Take in hashes of 64 evenly spread bits; about 15 ns each."""
        places = (hashes >> np.uint64(64 - _PRECISION)).astype(np.intp)
        # The number of leading zeros among the bits behind, plus one; 53 if there is no bit at all.
        _, exponents = np.frexp((hashes & _RANK).astype(np.float64))
        np.maximum.at(self._registers, places, (_BITS + 1 - exponents).astype(np.uint8))
        self._estimate = self._text = None

    def merge(self, other: "Distinct") -> None:
        """Take in what another one has seen."""
        np.maximum(self._registers, other._registers, out=self._registers)  # noqa: SLF001 -- its own class
        self._estimate = self._text = None

    @property
    def estimate(self) -> float:
        """About how many distinct hashes were seen."""
        if self._estimate is None:
            self._estimate = self._estimated()
        return self._estimate

    def _estimated(self) -> float:
        counts = np.bincount(self._registers, minlength=_BITS + 2).tolist()
        if counts[0] == _REGISTERS:
            return 0.0
        rest = _REGISTERS * _tau(1 - counts[_BITS + 1] / _REGISTERS)
        for rank in range(_BITS, 0, -1):
            rest = 0.5 * (rest + counts[rank])
        rest += _REGISTERS * _sigma(counts[0] / _REGISTERS)
        return _REGISTERS**2 / (2 * math.log(2) * rest)

    def to_text(self) -> str:
        """A short form to send or to store."""
        if self._text is None:
            self._text = base64.b64encode(zlib.compress(self._registers.tobytes(), 1)).decode()
        return self._text

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote."""
        found = cls()
        try:
            data = zlib.decompress(base64.b64decode(text, validate=True))
        except (ValueError, zlib.error) as error:
            raise BadRouting(f"a text of {len(text)} characters holds no registers: {error}") from error
        if len(data) != _REGISTERS:
            raise BadRouting(f"a sketch has {len(data)} registers; expected {_REGISTERS}")
        found._registers = np.frombuffer(data, np.uint8).copy()
        return found


def _sigma(share: float) -> float:
    """The part of registers that are still empty, as a sum of share^(2^k) * 2^(k-1)."""
    if share == 1.0:
        return math.inf
    total, weight = share, 1.0
    while True:
        share *= share
        before = total
        total += share * weight
        weight += weight
        if total == before:
            return total


def _tau(share: float) -> float:
    """The part of registers that are full."""
    if share in {0.0, 1.0}:
        return 0.0
    total, weight = 1 - share, 1.0
    while True:
        share = math.sqrt(share)
        before = total
        weight *= 0.5
        total -= (1 - share) ** 2 * weight
        if total == before:
            return total / 3
