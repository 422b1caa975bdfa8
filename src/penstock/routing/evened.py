"""Evens one load over channels, whatever a key's cost follows from, and moves as little as that takes.

Keys that matter have a place in the table, cells of the ring with somewhat frequent keys are placed one by
one, and all other cells fill what is missing. A key above a fair share is alone on its channel; the others
are evened over the rest. Unlike the three algorithms of [003] §4.2 it looks at a single cost, which may be
any mix of growths, and at all keys, not only at tracked ones.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.cell_ring import CellRing, cells_of, handed_over
from penstock.routing.feeding import fair_level, feed, part
from penstock.routing.filling import water_level
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair

__all__ = ["evened"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_NAMED, _LIGHT = 0.01, 0.0005
"""Parts of a fair share: from the first a key has a place in the table, from the second it counts for its
cell."""
_CLOSE, _LOOSE, _ENOUGH = 0.01, 0.04, 1.03
"""A channel may differ from the even load by the first part of it, where their number changes by the second;
and the busiest may have the third of the mean: closer is not worth what it moves."""
_MOST_NAMED = 1024


def evened(  # noqa: PLR0913, PLR0917 -- what there is, and what is wanted
    before: HashPair,
    known: Frequencies,
    channels: int,
    cost: Callable[[Floats], Floats],
    unknown: float,
    base: Floats | None = None,
) -> HashPair:
    """The successor of `before` on `channels` channels.

    `cost` gives what keys of these shares cost, and `unknown` is what all keys cost together of which nothing
    is known. `base` is what each channel has besides and cannot give away.

    >>> from penstock.routing.ring import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64) << np.uint64(60), np.array([0.5, 0.2, 0.1, 0.1]))
    >>> two = evened(one, known, 2, lambda shares: shares, 0.1)
    >>> loads = np.bincount(two.route(known.hashes), known.shares)
    >>> (loads + 0.1 * np.bincount(two.ring.cells) / 16_384).round(2).tolist()
    [0.52, 0.48]
    """
    if channels < 1:
        raise BadRouting(f"channels is {channels}; give 1 or more")
    fixed = np.zeros(channels) if base is None else base
    cells = before.ring.cells
    costs = cost(known.shares)
    fair = float(costs.sum() + unknown + fixed.sum()) / channels
    named = costs >= _NAMED * fair
    named[_MOST_NAMED:] = False
    if channels == before.channels:
        # A key never moves because it became rarer.
        named |= np.isin(known.hashes, before.keys)
    light = ~named & (costs >= _LIGHT * fair)
    spare = (unknown + float(costs[~named & ~light].sum())) / len(cells)
    heavy, at = np.unique(cells_of(known.hashes[light], len(cells)), return_inverse=True)
    units = np.concatenate([costs[named], spare + np.bincount(at, costs[light], len(heavy))])
    homes = np.concatenate([before.route(known.hashes[named]), cells[heavy]]).astype(np.intp)
    plain = np.delete(np.arange(len(cells)), heavy)
    owners = cells[plain]
    shares = np.bincount(owners[owners < channels], minlength=channels).astype(np.float64) * spare
    volume = spare * len(plain)
    best: tuple[tuple[float, float], Ints, Floats] | None = None
    for places in _placements(units, homes, channels, fixed, volume):
        under = fixed + np.bincount(places, units, channels)
        poured = _poured(under, shares, volume, _CLOSE if channels == before.channels else _LOOSE)
        moved = float(units[places != homes].sum() + np.maximum(poured - shares, 0.0).sum())
        # Of placements that are even to the same percent, or even enough, the one that moves least.
        order = max(round(float((under + poured).max()) / max(fair, 1e-300), 2), _ENOUGH), moved
        if best is None or order < best[0]:
            best = order, places, poured
    assert best is not None
    _, places, poured = best
    if volume > 0:
        return _pair(before, known.hashes[named], places, heavy, poured / volume, channels)
    # Cells without load stay, and those of channels that go are dealt out.
    kept = np.bincount(owners[owners < channels], minlength=channels).astype(np.float64)
    kept += (len(owners) - kept.sum()) / channels
    return _pair(before, known.hashes[named], places, heavy, kept / max(len(owners), 1), channels)


def _placements(units: Floats, homes: Ints, channels: int, fixed: Floats, volume: float) -> list[Ints]:
    """Units fed from rich to poor channels; and all parted again, the heaviest first."""
    level = fair_level(np.concatenate([units, fixed, [volume / channels] * channels]), channels)
    fed = feed(units, homes, channels, base=fixed, level=level)
    held = np.where(homes < channels, homes, fed)
    return [fed, part(units, held, channels, fixed)]


def _poured(under: Floats, shares: Floats, volume: float, close: float) -> Floats:
    """The plain load of each channel: as even as it can be, and near what there is."""
    if volume <= 0:
        return np.zeros(len(under))
    level = water_level(under, volume)
    low = np.maximum(level * (1 - close) - under, 0.0)
    high = np.maximum(level * (1 + close) - under, 0.0)
    near = np.clip(shares, low, high)
    missing = volume - float(near.sum())
    room = high - near if missing > 0 else near - low
    total = float(room.sum())
    if total <= 0:
        return np.maximum(level - under, 0.0)
    return near + missing * room / total


def _pair(  # noqa: PLR0913, PLR0917 -- the parts of a pair
    before: HashPair, keys: NDArray[np.uint64], places: Ints, heavy: Ints, shares: Floats, channels: int
) -> HashPair:
    cells = before.ring.cells.astype(np.int32)
    cells[heavy] = places[len(keys) :]
    plain = np.delete(np.arange(len(cells)), heavy)
    cells[plain] = handed_over(cells[plain], shares)
    ring = CellRing.over(before.ring, cells, channels)
    targets = places[: len(keys)].astype(np.int32)
    if channels == before.channels:
        stale = np.flatnonzero(~np.isin(before.keys, keys) & (before.targets != ring.route(before.keys)))
        stale = stale[:_MOST_NAMED]
        keys, targets = np.append(keys, before.keys[stale]), np.append(targets, before.targets[stale])
    return HashPair(keys, targets, ring)
