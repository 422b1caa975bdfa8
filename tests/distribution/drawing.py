"""Any layout and any request, at random, for each kind of distribution."""

from dataclasses import replace

import numpy as np

from penstock.control.rescale import Rescale
from penstock.distribution import Anywhere, ByKey, ByWindow, Forming, OnGrid, OnGrids
from penstock.distribution.distribution import Change, Settings
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.routing import (
    LLL,
    PARTITIONINGS,
    Frequencies,
    Goal,
    Grid,
    Growth,
    HashPair,
    Spread,
    is_judged,
    next_router,
    shaped_grid,
    step_toward,
)

MOST_CHANNELS = 5
SETTINGS = Settings({"rows": LLL, "combined": LLL})


def no_sample(_port):
    """Nothing is known of the keys that come."""
    return iter(())


def any_layout(rng, distribution, before, files, keys, channels=None):
    """Any layout that may follow another one; these are hashes of keys."""
    channels = channels or int(rng.integers(1, MOST_CHANNELS + 1))
    if not isinstance(distribution, ByKey | OnGrids):
        return replace(before, channels=channels)
    frequencies = Frequencies(keys, np.full(len(keys), 0.1))
    router = files.find(before.router, HashPair)
    after = next_router(
        str(rng.choice(list(PARTITIONINGS))), router, frequencies, channels, Goal(domain=1000)
    )
    if rng.random() < 0.5:
        share = float(rng.uniform(0.05, 0.6))
        after = step_toward(router, after, frequencies, growth=Growth.LINEAR, share=share, domain=1000)
    name, grids = files.store(after), None
    if isinstance(distribution, OnGrids) and distribution.copied != "neither" and rng.random() < 0.7:
        grids = any_spread(rng, distribution.copied, after.channels, keys)
    return replace(before, channels=after.channels, router=name, target=name, grids=grids)


def any_spread(rng, copied, channels, keys):
    """These keys of a join on grids of any size in any channels."""
    sizes, columns, targets = [], [], []
    for _ in keys:
        size = int(rng.integers(1, channels + 1))
        grid = shaped_grid(copied, size)
        if is_judged(copied) and size > 1:
            # Any number of left cells, also where plans would have no grid.
            grid = Grid(size, int(rng.integers(1, size)))
        sizes.append(grid.channels)
        columns.append(grid.columns)
        targets += rng.permutation(channels)[: grid.channels].tolist()
    return Spread(tuple(keys.view(np.int64).tolist()), tuple(sizes), tuple(columns), tuple(targets))


def any_sub_keys(rng, keys):
    """These keys in any number of parts."""
    split = [SplitKey(each, 0.1, int(rng.integers(1, 9))) for each in keys.view(np.int64).tolist()]
    return SubKeyPlan(tuple(split)) if split else None


def any_forming(rng, distribution, keys):
    """Any way to form partials in other channels."""
    keyed = bool(distribution.keys(0))
    named = [each for each in Forming.known.values() if each.dealing and each.keyed == keyed]
    chosen = str(rng.choice([each.dealing for each in named] + (["sub-keys"] if keyed else [])))
    if chosen == "sub-keys":
        return any_sub_keys(rng, keys)
    (kind,) = (each for each in named if each.dealing == chosen)
    found = kind.planned(2, None)
    return replace(found, run=int(rng.integers(1, 4))) if hasattr(found, "run") else found


def any_requests(rng, steering, stage, keys, channels, *, single=False):
    """Any requests that the stage of a steering may get."""
    distribution, found = steering.distribution, []
    if not single and rng.random() < 0.5:
        found.append(_any_rescale(rng, steering, stage, keys, channels))
    if "batch" in steering.choices() and rng.random() < 0.5:
        found.append(Change(stage, "batch", int(rng.integers(1, 6)), "any"))
    if isinstance(distribution, Anywhere) and rng.random() < 0.5:
        found.append(Change(stage, "grouping", str(rng.choice(distribution.groupings)), "any"))
    if "sub-keys" in steering.choices() and rng.random() < 0.5:
        found.append(Change(stage, "sub-keys", any_sub_keys(rng, keys), "any"))
    return found


def _any_rescale(rng, steering, stage, keys, channels):
    distribution = steering.distribution
    if not isinstance(distribution, ByKey | OnGrids):
        return Rescale(stage, channels)
    spread = None
    copied = "neither" if steering.settings.hosted else getattr(distribution, "copied", "neither")
    if copied != "neither" and rng.random() < 0.5:
        spread = any_spread(rng, copied, channels, keys)
    return Rescale(stage, channels, str(rng.choice(list(PARTITIONINGS))), spread=spread)


def mergeable(distribution):
    """Whether partials of its rows may be formed in any channel."""
    return isinstance(distribution, ByKey | ByWindow | OnGrid) and distribution.mergeable
