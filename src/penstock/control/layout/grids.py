"""Which hot keys of a join should lie on grids: found while the run goes on, and given up again.

A key may get a grid when its work exceeds a quarter of a channel's fair share and keeps it down to an eighth,
so that a key at the limit does not come and go. A grid that exists stays as it is unless its key outgrows it.
The more channels a grid has, the more copies of rows there are: which keys get one and how large it is
depends on what rows and pairs cost, so there are several proposals.
"""

from collections.abc import Iterator

import numpy as np

from penstock.control.layout.key_loads import Keys, Places
from penstock.control.observation import StageChannels
from penstock.routing import Growth, Spread, shaped_grid

__all__ = ["wanted_grids"]

_ENTER, _LEAVE = (0.25, 0.5, 1.0), 0.125
"""Parts of a channel's fair share of work; the first ones are proposals."""
_PIECE = 0.25
"""The part of a fair share that a piece of a key on a grid may have."""
_OUTGROWN = 2
_SIZES = (12, 8, 6, 4, 3, 2)


def wanted_grids(stage: StageChannels, places: Places, keys: Keys) -> Iterator[Spread]:
    """The grids that the known keys may call for, each once; larger ones first."""
    channels = places.router.channels
    # A size that the join makes no grids of would propose none for the hottest keys.
    smaller = [size for size in _SIZES if size < channels and shaped_grid(stage.copied, size).channels > 1]
    sizes = [channels, *smaller]
    yield from dict.fromkeys(_wanted(stage, places, keys, enter, most) for enter in _ENTER for most in sizes)


def _wanted(stage: StageChannels, places: Places, keys: Keys, enter: float, most: int) -> Spread:
    """Grids of at most so many channels: new ones on the channels that have the least work."""
    work = _work(stage)
    channels = places.router.channels
    fair = max(sum(work.values()), 1e-300) / channels
    present = places.spread.grids
    grids = {}
    for key, (columns, cells) in present.items():
        pieces = _pieces(work.get(key, 0.0), fair, most)
        if work.get(key, 0.0) >= _LEAVE * fair and pieces < _OUTGROWN * len(cells):
            grids[key] = columns, cells
    left, right = (dict(zip(stage.known.hashes, side, strict=True)) for side in stage.known.sides)
    hot = [key for key, each in work.items() if each > enter * fair and key not in grids]
    loads = _others(places, keys, grids.keys() | set(hot))
    loads *= max(sum(work.values()) - sum(work[key] for key in {*grids, *hot} if key in work), 0.0)
    for key, (_, cells) in grids.items():
        loads[list(cells)] += work.get(key, 0.0) / len(cells)
    for key in sorted(hot, key=lambda each: (-work[each], each)):
        size = _pieces(work[key], fair, most)
        one, other = stage.known.rates
        shape = shaped_grid(stage.copied, size, left[key] * max(one, 1.0), right[key] * max(other, 1.0))
        chosen = np.argsort(loads, kind="stable")[: shape.channels]
        loads[chosen] += work[key] / shape.channels
        grids[key] = shape.columns, tuple(chosen.tolist())
    grids = {key: grid for key, grid in grids.items() if len(grid[1]) > 1}
    return Spread(
        tuple(grids),
        tuple(len(cells) for _, cells in grids.values()),
        tuple(columns for columns, _ in grids.values()),
        tuple(cell for _, cells in grids.values() for cell in cells),
    )


def _work(stage: StageChannels) -> dict[int, float]:
    """The work of each known key: its left tuples times its right tuples."""
    left, right = stage.known.sides
    return {key: one * other for key, one, other in zip(stage.known.hashes, left, right, strict=True)}


def _pieces(work: float, fair: float, most: int) -> int:
    return int(np.clip(np.ceil(work / (_PIECE * fair)), 1, most))


def _others(places: Places, keys: Keys, apart: set[int]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The share of the work of all other known keys that each channel has."""
    known = keys.known.without(np.array(sorted(apart), np.int64).view(np.uint64))
    costs = Growth.QUADRATIC.costs(known.shares)
    loads = np.bincount(places.router.route(known.hashes), costs, places.router.channels).astype(np.float64)
    return loads / max(float(loads.sum()), 1e-300)
