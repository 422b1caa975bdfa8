"""SplitMix64: a bijection of 64-bit words whose outputs look independent, even of 0, 1, 2 and so on.

Positions on rings and coefficients of sketches come from it. It is written out here, not taken from
numpy's generators, because rings and sketches of different processes and versions must always agree.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["splitmix64"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def splitmix64(values: NDArray[np.uint64], seed: int = 0) -> NDArray[np.uint64]:
    """Mixes every word; different seeds give unrelated mixtures.

    >>> [hex(word) for word in splitmix64(np.arange(2, dtype=np.uint64)).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    word = np.asarray(values, np.uint64) * _GOLDEN + _GOLDEN
    if seed:
        word ^= splitmix64(np.array([seed], np.uint64))
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))
