"""Frequencies change while the number of channels stays: the loop of [003] §4.5 without a new channel.

The paper measures growth, where each step may move the share of a new channel. A run that nobody rescales has
only this: a hot set that is exchanged for another, seen through a lossy counter over the last tuples. Every
epoch takes in tuples, and then each constructor gets what the counter holds and the router it made before.
The load is that of all keys by their true frequencies, so neither a key that the counter misses nor one that
it still remembers is forgiven.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from penstock.routing import (
    LLL,
    Costs,
    Frequencies,
    Goal,
    Hashes,
    HashPair,
    counter_threshold,
    first_router,
    loads,
)
from penstock.routing.threshold import allowance
from penstock.sketches import SlidingCounting
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.partitioning_growth import CONSTRUCTORS
from penstock_lab.reproduce.partitioning_plots import lines
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.skewed_keys import SkewedKeys

__all__ = ["FREQUENCY_CHANGE", "Course", "Epoch", "Trace", "counted_epochs", "follow"]

Next = Callable[[HashPair, Frequencies, int, Goal], HashPair]

_TUPLES = 16_384
# The counter's error, as a part of the threshold from which keys must be counted ([003] §4.1.2).
_ERROR = 0.1


@dataclass(frozen=True)
class Course:
    """The same keys all the time on `channels` channels; each of `changes` times other keys become hot.

    The counter covers the last `window` epochs, and up to half as many before them.
    """

    keys: SkewedKeys
    channels: int
    window: int
    changes: int
    seed: int

    @property
    def forgotten(self) -> int:
        """The epochs from a change on, after which the counter has nothing from before, with four to act."""
        return self.window * 3 // 2 + 4

    @property
    def epochs(self) -> int:
        """The epochs from one change to the next."""
        return self.forgotten + 6

    @property
    def goal(self) -> Goal:
        """Even load of linear resources, the paper's tolerance and scaler."""
        return Goal(LLL, domain=self.keys.count)

    @property
    def best(self) -> float:
        """The least that the busiest channel can have over the mean: more than 1 if one key has more."""
        return max(1.0, float(self.keys.frequencies[0]) * self.channels)

    def epoch_shares(self) -> Iterator[Costs]:
        """The true frequency of each key in each epoch; the first part has the order of the ranks."""
        rng = np.random.default_rng(self.seed)
        shares = self.keys.frequencies
        for part in range(self.changes + 1):
            if part:
                shares = self.keys.frequencies[rng.permutation(self.keys.count)]
            for _ in range(self.epochs):
                yield shares


@dataclass(frozen=True)
class Trace:
    """For each epoch the busiest channel over the mean after its call, and the state that the call moved."""

    course: Course
    busiest: NDArray[np.float64]
    moved: NDArray[np.float64]

    def after(self, change: int) -> NDArray[np.float64]:
        """The busiest channel over the mean in the epochs from this change on; 0 is the start."""
        start = change * self.course.epochs
        return self.busiest[start : start + self.course.epochs]

    @property
    def settled(self) -> float:
        """The busiest over the mean at the end of a part, the worst of all parts."""
        return float(self.busiest[self.course.epochs - 1 :: self.course.epochs].max())

    @property
    def soon(self) -> float:
        """The same once the counter has forgotten what was before a change, the worst of all changes."""
        changes = range(1, self.course.changes + 1)
        return max(float(self.after(change)[self.course.forgotten - 1]) for change in changes)


@dataclass(frozen=True)
class Epoch:
    """The true frequency of each key, and what the counter knows of them at the end of the epoch."""

    shares: Costs
    known: Frequencies


def counted_epochs(course: Course) -> list[Epoch]:
    """All epochs of a course, through one counter; constructors see the same."""
    hashes, rng = course.keys.hashes, np.random.default_rng(course.seed + 1)
    threshold = counter_threshold(course.goal, course.channels)
    counter = SlidingCounting(_ERROR * threshold, course.window * _TUPLES)
    epochs = []
    for shares in course.epoch_shares():
        counter.update(_drawn(hashes, shares, rng))
        found = counter.items()
        epochs.append(Epoch(shares, Frequencies(found.hashes, found.frequencies)))
    return epochs


def follow(course: Course, epochs: Sequence[Epoch], first: HashPair, construct: Next | None) -> Trace:
    """The load of every epoch with one constructor, or with a router that never changes."""
    hashes, router = course.keys.hashes, first
    busiest, moved = [], []
    for epoch in epochs:
        before = router.route(hashes)
        if construct is not None:
            router = construct(router, epoch.known, course.channels, course.goal)
        after = router.route(hashes)
        load = loads(after, epoch.shares, course.channels)
        busiest.append(float(load.max() / load.mean()))
        moved.append(float(epoch.shares[before != after].sum()))
    return Trace(course, np.array(busiest), np.array(moved))


def _drawn(hashes: Hashes, shares: Costs, rng: np.random.Generator) -> Hashes:
    places = np.searchsorted(np.cumsum(shares), rng.random(_TUPLES))
    return hashes[np.minimum(places, len(hashes) - 1)]


def _run(*, quick: bool, seed: int) -> Outcome:
    rows: list[Row] = []
    checks: list[Check] = []
    figures = {}
    for window, skew in product((4,) if quick else (4, 16), (1.0, 1.2)):
        course = Course(SkewedKeys(100_000, skew), 8, window, changes=3, seed=seed)
        seen = counted_epochs(course)
        traces = {name: _trace(course, seen, name) for name in ("uniform", "consistent", *CONSTRUCTORS)}
        for name, trace in traces.items():
            rows += _rows(name, trace)
        checks += _checks(course, traces)
        panels = {"busiest channel over the mean": {n: t.busiest.tolist() for n, t in traces.items()}}
        title = f"Hot keys exchanged, N = 8, z = {skew}, counter of {window} epochs"
        figures[f"003-change-z{skew}-w{window}"] = lines(title, ("epoch", range(len(seen))), panels)
    return Outcome(tuple(rows), tuple(checks), figures)


def _trace(course: Course, epochs: Sequence[Epoch], name: str) -> Trace:
    say(f"  frequencies change, {course.channels} channels, skew {course.keys.skew}: {name}")
    first = "uniform" if name in {"uniform", "balanced"} else "consistent"
    return follow(course, epochs, first_router(first, course.channels), CONSTRUCTORS.get(name))


def _rows(name: str, trace: Trace) -> list[Row]:
    course = trace.course
    setting = f"z = {course.keys.skew}, N = {course.channels}, counter of {course.window} epochs"
    note = f"at best {course.best:.2f}" if course.best > 1 else ""
    return [
        row("change", name, setting, f"busiest over mean, {course.forgotten} epochs after a change",
            trace.soon, None, note),
        row("change", name, setting, "busiest over mean before the next change",
            trace.settled, None, note),
        row("change", name, setting, "busiest over mean, all epochs", fmean(trace.busiest), None, ""),
        row("change", name, setting, "state moved for each change, in shares of a channel",
            float(trace.moved.sum()) * course.channels / (course.changes + 1), None, ""),
        row("change", name, setting, "epochs with a move", int((trace.moved > 0).sum()), None,
            f"of {len(trace.moved)}"),
    ]  # fmt: skip


def _checks(course: Course, traces: Mapping[str, Trace]) -> list[Check]:
    place = f"z = {course.keys.skew}, counter of {course.window} epochs"
    # Within its tolerance, alpha = 1.2, a constructor need not act (Eq. 15); one key may have more than that.
    even = 1 + allowance(course.goal.resources.tolerances[0], course.channels)
    bound = even if course.best == 1 else 1.05 * course.best
    plain = min(traces[name].soon for name in ("uniform", "consistent"))
    source = f"hot keys exchanged at constant N; worst of {course.changes} changes"
    return [
        Check(f"{place}: busiest over mean, balanced, {course.forgotten} epochs after a change",
              traces["balanced"].soon, f"beyond [003]: {source}", ceiling=bound),
        *(
            Check(f"{place}: the same over that of the better plain hash, {name}",
                  traces[name].soon / plain, f"[003] §4.5: {source}", ceiling=1)
            for name in CONSTRUCTORS
        ),
    ]  # fmt: skip


FREQUENCY_CHANGE = Experiment("003/change", "hot keys exchanged at a constant number of channels", _run)
