"""A perfect hash of a few thousand keys: every key has a slot of its own, found with one probe.

Hash and displace: keys fall into groups, and each group has a displacement. It is xored to the probe
of its keys, so that no two keys of the table share a slot. A lookup is one array access for the displacement
and one for the slot, whether the key is there or not. Part of the explicit hash of [003] §4.1.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.router import Hashes
from penstock.sketches.splitmix import splitmix64

__all__ = ["Displacement", "displace", "probe"]

Ints = NDArray[np.int64]

_DOUBLINGS = 6
_ROUNDS = 64


@dataclass(frozen=True)
class Displacement:
    """Slot of a key: (probe of its hash) xor (displacement of its group); `slots` is a power of two."""

    displacements: Ints
    slots: int
    fold: int


def probe(hashes: Hashes, fold: int, slots: int) -> Ints:
    """Slots of keys without displacement; `fold` mixes in high bits, for keys with equal low bits."""
    return ((hashes ^ (hashes >> np.uint64(fold))) & np.uint64(slots - 1)).view(np.int64)


def displace(keys: Hashes, groups: Ints, group_count: int) -> Displacement:
    """Displacements for distinct keys in these groups, at most half of the slots being taken.

    Expected linear time for keys that are hashes; the slots are doubled until it works out.
    """
    slots = max(8, 1 << (2 * len(keys) - 1).bit_length())
    for _ in range(_DOUBLINGS):
        for fold in (32, 24, 40, 16, 48, *range(1, 64)):
            probes = probe(keys, fold, slots)
            if _distinct(groups, probes):
                found = _settle(groups, probes, group_count, slots)
                if found is not None:
                    return Displacement(found, slots, fold)
                break
        slots *= 2
    raise BadRouting(
        f"no perfect table was found for {len(keys)} keys in {slots // 2} slots; "
        "give 64-bit hashes of the keys (xxhash64), not the keys themselves"
    )


def _distinct(groups: Ints, probes: Ints) -> bool:
    """Whether displacements can tell all keys apart: those of one group must have different probes."""
    both = np.sort((groups << 32) | probes)
    return not bool((both[1:] == both[:-1]).any())


def _settle(groups: Ints, probes: Ints, group_count: int, slots: int) -> Ints | None:
    """The displacement of every group, or None if groups with several keys do not find their places."""
    displacements = np.zeros(group_count, np.int64)
    free = np.ones(slots, np.bool_)
    sizes = np.bincount(groups, minlength=group_count)
    alone = sizes[groups] == 1
    waiting = np.flatnonzero(~alone)
    # The largest groups choose first, as they need most places at once.
    waiting = waiting[np.argsort(-sizes[groups[waiting]], kind="stable")]
    for turn in range(_ROUNDS):
        if not len(waiting):
            break
        waiting = _one_round(groups, probes, waiting, displacements, free, turn)
    else:
        return None
    # A key that is alone in its group takes any place: the displacement that leads there always exists.
    singles = np.flatnonzero(alone)
    displacements[groups[singles]] = probes[singles] ^ np.flatnonzero(free)[: len(singles)]
    return displacements


def _one_round(  # noqa: PLR0913, PLR0917 -- the state of the search is these arrays
    groups: Ints, probes: Ints, waiting: Ints, displacements: Ints, free: NDArray[np.bool_], turn: int
) -> Ints:
    """Every waiting group draws a displacement, and keeps it without conflict; gives the keys left over."""
    slots = len(free)
    mine = groups[waiting]
    drawn = (splitmix64(mine.view(np.uint64), turn + 1) & np.uint64(slots - 1)).view(np.int64)
    wanted = probes[waiting] ^ drawn
    claims = np.full(slots, -1, np.int64)
    claims[wanted[::-1]] = mine[::-1]  # of several writes the last counts: the group that comes first wins
    failed = ~free[wanted] | (claims[wanted] != mine)
    lost = np.zeros(len(displacements), np.bool_)
    lost[mine[failed]] = True
    kept = ~lost[mine]
    displacements[mine[kept]] = drawn[kept]
    free[wanted[kept]] = False
    return waiting[~kept]
