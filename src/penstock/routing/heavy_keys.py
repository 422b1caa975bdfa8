"""Keys above a fair share: where a key cannot be split, a channel of its own is the best that it can have.

The busiest channel is never below its heaviest key. So a key that has more than a fair share, of what heavier
keys leave to the other channels, goes alone, and all other keys share the rest ([003] §4.2). Costs O(keys).
"""

from dataclasses import dataclass

import numpy as np

from penstock.routing.balance import loads
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.resources import Growth
from penstock.routing.router import Costs
from penstock.routing.stepwise import cost_shares

__all__ = ["HeavyKey", "heavy_keys"]

_ALONE = 0.02
"""Other rows in the channel of a key, as a part of a fair share, up to which it counts as alone."""


@dataclass(frozen=True)
class HeavyKey:
    """A key above a fair share of all rows: its signed hash, its share and channel, and the others there.

    `fair` is a fair share of what heavier keys leave, `beside` the share of all rows that other keys of its
    channel have.
    """

    hash: int
    share: float
    fair: float
    channel: int
    beside: float

    @property
    def alone(self) -> bool:
        """Whether it has a channel of its own, but for a few rows of keys that nobody counts."""
        return self.beside <= _ALONE * self.fair

    def words(self, operator: str, text: str = "") -> str:
        """What it has, and what can be done for it.

        >>> HeavyKey(7, 0.31, 0.125, 3, 0.0).words("process", "Rome").partition(": ")[0]
        'key Rome has 31 % of the rows, more than a fair share of 12.5 %'
        """
        named = text or f"{self.hash & 0xFFFF_FFFF_FFFF_FFFF:016x}"
        share, fair, beside = (f"{100 * each:.3g} %" for each in (self.share, self.fair, self.beside))
        has = f"key {named} has {share} of the rows, more than a fair share of {fair}"
        if self.alone:
            return f"{has}: it has a channel of its own, nothing more can be done for `{operator}`"
        return (
            f"{has}, and other keys of channel {self.channel} have {beside}: a channel of its own is all "
            f"that can be done for `{operator}`"
        )


def heavy_keys(known: Frequencies, router: HashPair, domain: int) -> tuple[HeavyKey, ...]:
    """The keys that no router of whole keys can bring down to a fair share, the heaviest first.

    At most all channels but one are for such keys. `domain` is how many keys there are.

    >>> from penstock.routing import first_router
    >>> known = Frequencies(np.array([0, 1 << 63], np.uint64), np.array([0.4, 0.1]))
    >>> [(each.share, each.fair) for each in heavy_keys(known, first_router("balanced", 4), 1000)]
    [(0.4, 0.25)]
    """
    rows = _rows(known, router, domain)
    found: list[HeavyKey] = []
    left, channels = 1.0, router.channels
    signed, homes = known.hashes.view(np.int64).tolist(), router.route(known.hashes).tolist()
    for key, share, channel in zip(signed, known.shares.tolist(), homes, strict=True):
        if channels == 1 or share <= left / channels:
            break
        beside = max(float(rows[channel]) - share, 0.0)
        found.append(HeavyKey(key, share, left / channels, channel, beside))
        left, channels = left - share, channels - 1
    return tuple(found)


def _rows(known: Frequencies, router: HashPair, domain: int) -> Costs:
    """The share of all rows in each channel."""
    keys = np.union1d(router.keys, known.hashes)
    cells = router.ring.cells
    of_keys, of_cells = cost_shares(keys, known, Growth.LINEAR, len(cells), max(domain, len(keys) + 1))
    routes = np.concatenate([router.route(keys), cells])
    return loads(routes, np.concatenate([of_keys, of_cells]), router.channels)
