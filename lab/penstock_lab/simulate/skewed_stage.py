"""A stage on paper whose keys are skewed and change: gives the observations that a run would give.

Keys have the given shares; an exchange gives them to other keys. Tuples of channels are random counts,
seconds have noise, state follows the tuples of the last epochs. A rescale takes effect with the next epoch
and moves the state of the keys whose channel changes. The same seed gives the same observations.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.control.observation import ChannelLoad, KnownKeys, Moved, Observation, StageChannels
from penstock.control.rescale import Rescale
from penstock.distribution.distribution import COUNTING, Change
from penstock.distribution.frequent_keys import rounded
from penstock.routing import (
    Copied,
    Growth,
    HashPair,
    Resources,
    Spread,
    cell_parts,
    first_router,
    router_name,
)

if TYPE_CHECKING:
    from penstock.distribution import SubKeyPlan

__all__ = ["SkewedStage"]

Floats = NDArray[np.float64]


@dataclass
class SkewedStage:
    """A keyed stage; `counted` is the number of epochs over which frequent keys are known.

    `letters` are the growths of state, computation and communication; with `pairs`, that part of the seconds
    follows the square of a key's frequency, and the rest its rows, copies included. `noise` is the relative
    deviation of a channel's seconds in an epoch, `overhead` the part of the seconds that no key causes. With
    fewer `cores` than slots, channels share them. `slow` are channels on a slow node. With `counts`, a policy
    decides whether keys are counted.
    """

    seed: int
    shares: Floats
    channels: int = 8
    slots: int = 8
    letters: str = "LLL"
    partitioning: str = "balanced"
    tuples: int = 1_000_000
    seconds: float = 2.0
    noise: float = 0.05
    overhead: float = 0.0
    state: float = 20e6
    tracked: int = 512
    counted: int = 4
    splits: bool = False
    pairs: float | None = None
    cores: float | None = None
    slow: tuple[int, ...] = ()
    counts: bool | None = None
    copied: Copied = "neither"
    seconds_a_byte: float = 1e-8
    seconds_a_move: float = 0.2
    epoch: int = field(default=0, init=False)
    moves: list[Moved] = field(default_factory=list, init=False)
    routers: dict[str, HashPair] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._hashes = self._random.integers(0, 2**64, len(self.shares), np.uint64)
        self._shares = self.shares
        self._recent: deque[Floats] = deque([self._shares], maxlen=self.counted)
        self._held = self._shares
        self._router = first_router(self.partitioning, self.channels)
        self._name = self._store(self._router)
        self._sub_keys: SubKeyPlan | None = None
        self._wanted: Rescale | None = None
        self._spread = Spread()
        self._routes = self._router.route(self._hashes)
        self._resources = Resources.of(self.letters)
        self._last = KnownKeys()

    def exchange(self) -> None:
        """Give every share to another key; counters begin again, as those of a run do."""
        self._recent.clear()
        self._shares = self._shares[self._random.permutation(len(self.shares))]

    def find(self, name: str) -> HashPair:
        """The router of this name."""
        return self.routers[name]

    def follow(self, decisions: Sequence[Rescale | Change]) -> None:
        """Carry out decisions with the next epoch."""
        for each in decisions:
            if isinstance(each, Change) and each.setting == COUNTING:
                self.counts = each.value
            elif isinstance(each, Change):
                self._sub_keys = each.value
            else:
                self._wanted = each

    @property
    def busiest(self) -> float:
        """The true cost of the busiest channel over the mean, without noise."""
        loads = self._work()
        return float(loads.max() / loads.mean())

    @property
    def least_busiest(self) -> float:
        """The least that `busiest` can be, while keys are whole if they have to."""
        if self.copied != "neither":
            return 1.0
        costs = self._resources.computation.costs(self._shares)
        return max(1.0, float(costs.max() * self.channels / costs.sum()))

    def next(self) -> Observation:
        """The next epoch."""
        moved = self._move()
        self._recent.append(self._shares)
        self._held = 0.8 * self._held + 0.2 * self._shares
        work, tuples = self._work(), self._loads(Growth.LINEAR)
        counts = self._random.poisson(self.tuples * tuples)
        noise = np.exp(self.noise * self._random.standard_normal(self.channels))
        even = self.overhead / self.channels
        seconds = self.seconds * (even + (1 - self.overhead) * work) * noise
        slowness = np.where(np.isin(np.arange(self.channels), self.slow), 3.0, 1.0)
        held = self._gridded(self._resources.state.costs(self._held))
        state = self.state * held / held.sum()
        keys = np.bincount(self._routes, minlength=self.channels)
        loads = tuple(
            ChannelLoad(
                place,
                int(counts[place]),
                float(seconds[place] * slowness[place]),
                int(keys[place]),
                int(keys[place]),
                int(state[place]),
                rows=int(counts[place]),
                cpu_seconds=float(seconds[place]),
                node=("slow" if place in self.slow else "fast") if self.slow else "",
            )
            for place in range(self.channels)
        )
        stage = StageChannels(
            stage=0,
            name="simulated",
            partitioning=self.partitioning,
            target=self.channels,
            channels=loads,
            imbalance=(1.0, 1.0, 1.0),
            tolerated=self._resources.tolerances,
            tracked=(),
            router=self._name,
            resources=self._resources,
            known=self._counted(),
            counts=self.counts,
            domain=len(self.shares),
            sub_keys=self._sub_keys,
            splits=self.splits,
            spread=self._spread,
            copied=self.copied,
            moved=moved,
        )
        now = 10.0 * self.epoch
        seen = Observation(
            self.epoch,
            (stage,),
            *(now, now, now + 5, now + 6),
            slots=self.slots,
            cores=self.slots if self.cores is None else self.cores,
            rows=int(counts.sum()),
        )
        self.epoch += 1
        return seen

    def _counted(self) -> KnownKeys:
        """What is known of keys, which stays as it is while none are counted."""
        if self.counts is not False:
            self._last = self._known()
        return self._last

    def _known(self) -> KnownKeys:
        """The most frequent keys of the last epochs, with the errors of counting."""
        shares = sum(self._recent, np.zeros(len(self.shares))) / len(self._recent)
        top = np.argpartition(-shares, min(self.tracked, len(shares) - 1))[: self.tracked]
        counted = self.counted * min(self.tuples, 16_384)
        found = self._random.poisson(shares[top] * counted) / counted
        order = np.argsort(-found, kind="stable")
        order = order[found[order] > 0]
        hashes = self._hashes[top[order]].view(np.int64)
        known = rounded(found[order])
        if self.copied == "neither":
            return KnownKeys(tuple(hashes.tolist()), known)
        return KnownKeys(tuple(hashes.tolist()), known, (known, known), (self.tuples / 2, self.tuples / 2))

    def _work(self) -> Floats:
        """The work of each channel, of all work without copies."""
        if self.pairs is None:
            return self._loads(self._resources.computation)
        return (1 - self.pairs) * self._loads(Growth.LINEAR) + self.pairs * self._loads(Growth.QUADRATIC)

    def _loads(self, growth: Growth) -> Floats:
        """The load of each channel, of all load without copies."""
        costs = growth.costs(self._shares)
        costs = costs / costs.sum()
        if self._sub_keys is None:
            return self._gridded(costs, copies=growth is Growth.LINEAR)
        split = self._sub_keys.router(self.channels)
        routes = split.route(self._hashes, self._random.integers(0, 2**31, len(self.shares)))
        hot = np.isin(self._hashes, split.keys)
        loads = _summed(routes[~hot], costs[~hot], self.channels)
        for key, parts in zip(split.keys, split.parts, strict=True):
            share = costs[self._hashes == key].sum() / parts
            every = split.route(np.full(parts, key, np.uint64), np.arange(parts))
            loads += np.bincount(every, minlength=self.channels) * share
        return loads

    def _gridded(self, costs: Floats, *, copies: bool = False) -> Floats:
        """The sums of these costs by channel; with `copies` a key on a grid costs each copy of its rows."""
        whole = costs.copy()
        added = np.zeros(self.channels)
        for key, (columns, cells) in self._spread.grids.items():
            place = int(np.flatnonzero(self._hashes.view(np.int64) == key)[0])
            parts = cell_parts(self.copied, len(cells), columns)
            of_cell = [(left + right) / 2 if copies else pairs for left, right, pairs in parts]
            added[list(cells)] += costs[place] * np.array(of_cell)
            whole[place] = 0.0
        return added + _summed(self._routes, whole, self.channels)

    def _move(self) -> Moved | None:
        wanted, self._wanted = self._wanted, None
        if wanted is None or wanted.router is None:
            return None
        routes = wanted.router.route(self._hashes)
        costs = self._resources.state.costs(self._held)
        size = int(self.state * costs[routes != self._routes].sum() / costs.sum())
        before, self.channels = self.channels, wanted.channels
        self._routes, self._router = routes, wanted.router
        self._name = self._store(wanted.router)
        if wanted.spread is not None:
            changed = dict(wanted.spread.grids.items() ^ self._spread.grids.items())
            share = costs[np.isin(self._hashes.view(np.int64), list(changed))].sum() / costs.sum()
            size += int(self.state * share)
            self._spread = wanted.spread
        seconds = self.seconds_a_move + size * self.seconds_a_byte
        moved = Moved(0, before, self.channels, rows=1, bytes=size, seconds=seconds)
        self.moves.append(moved)
        return moved

    def _store(self, router: HashPair) -> str:
        name = router_name(router.to_bytes())
        self.routers[name] = router
        return name


def _summed(routes: NDArray[np.int32], costs: Floats, channels: int) -> Floats:
    loads: Floats = np.bincount(routes, costs, channels).astype(np.float64)
    return loads
