"""The cases of `penstock bench skew`: what runs, over which keys, and what control has to show there."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import penstock as ps
from penstock_lab.bench.even_channels import busiest_over_mean, ideal_saving, part_saved
from penstock_lab.bench.hot_sets import HotSets, write_epochs
from penstock_lab.bench.on_and_off import Pair, Ran, cpu_ratio, wall_ratio
from penstock_lab.bench.paired import Interval, mean_of
from penstock_lab.bench.skew_queries import (
    SIDES,
    Digests,
    Rows,
    Sums,
    Waits,
    left_outer_join,
    tumbling_windows,
)
from penstock_lab.reports import Check

__all__ = ["CHANNELS", "REAL", "SETTLED", "Case", "cases", "real_keys", "saved_of_ideal", "settled"]

CHANNELS = 8
"""Channels and task slots of every case, whatever the number of cores."""

SETTLED = 10
"""Epochs after an exchange of the hot set by which the channels have to be even again."""

REAL = "real-keys"
"""The case whose keys come from a file."""

MOST, MOST_UPPER = 1.02, 1.04
LEAST_SAVED, MOST_WAITING = 0.6, 0.8
MOST_UNEVEN = 1.10
# Rows sent over rows read with control on at commit 1ce18f9: the more of two runs with seed 7.
COPIES = {1.0: 1.161, 1.2: 1.436}
_SMALL = "a few small epochs; the bounds are for the full size"

Judge = Callable[["Case", Sequence[Pair]], list[Check]]


@dataclass(frozen=True)
class Case:
    """A query over keys, run in so many pairs for each of so many seeds.

    `keys` is None for keys from a file. `unjudged` says why no bound is applied.
    """

    name: str
    query: Callable[[Rows], ps.Relation]
    keys: HotSets | None
    judge: Judge
    pairs: int = 6
    seeds: int = 1
    streams: tuple[str, ...] = ("rows",)
    channels: int = CHANNELS
    unjudged: str = ""

    def write(self, folder: Path, seed: int, given: Iterable[NDArray[np.int64]] = ()) -> tuple[int, ...]:
        """The files of all streams; the rows of the most frequent key in each epoch of the first.

        `given` are the keys of each epoch if the case has none of its own.
        """
        hottest = [
            write_epochs(folder / name, given if self.keys is None else self.keys.drawn(seed, side), seed)
            for side, name in enumerate(self.streams)
        ]
        return hottest[0]

    def checks(self, pairs: Sequence[Pair]) -> list[Check]:
        """What is promised of the case, and that control changes no result."""
        same = Check(
            f"{self.name}: pairs with the same results on and off, of all",
            sum(each.same for each in pairs) / len(pairs),
            "control changes no result",
            floor=1,
        )
        return [*(replace(each, unjudged=self.unjudged) for each in self.judge(self, pairs)), same]


def cases(*, quick: bool = False) -> tuple[Case, ...]:
    """All cases, in the order in which they run; `quick`: the same in a few seconds each."""
    full = (
        Case("uniform", Digests(), HotSets(rows=30_000, epochs=36), no_gain),
        Case("windows-1.0", tumbling_windows, HotSets(rows=150_000, epochs=20, sets=4, zipf=1.0), no_gain),
        Case("windows-1.2", tumbling_windows, HotSets(rows=150_000, epochs=20, sets=4, zipf=1.2), no_gain),
        Case("cheap", Sums(), HotSets(rows=20_000, epochs=20, sets=4, zipf=1.0), no_gain),
        # The hottest of 4,000 keys has 0.9 of a fair share: whole keys can be even, and by chance never are.
        Case(
            "waiting",
            Waits(row_s=100e-6),
            HotSets(rows=15_000, epochs=14, sets=4, zipf=1.0, keys=4000),
            saving,
            pairs=2,
            seeds=5,
        ),
        _join(1.0),
        _join(1.2),
        Case(REAL, Digests(rounds=6), None, no_more_wall_or_cpu),
    )
    return tuple(map(_quick, full)) if quick else full


def _join(zipf: float) -> Case:
    keys = HotSets(rows=100_000, epochs=13, sets=3, zipf=zipf)
    return Case(f"outer-join-{zipf}", left_outer_join, keys, even_join, streams=SIDES)


def _quick(case: Case) -> Case:
    keys = case.keys
    if keys is not None:
        keys = replace(keys, rows=1500, epochs=SETTLED + 1, sets=min(keys.sets, 2))
    return replace(case, keys=keys, pairs=2, seeds=1, unjudged=_SMALL)


def real_keys(path: Path, *, quick: bool = False) -> Iterator[NDArray[np.int64]]:
    """The keys of a file, a whole number a line, in the order of their arrival, epoch by epoch."""
    rows, most = (1500, 18_000) if quick else (150_000, None)
    given = np.loadtxt(path, dtype=np.int64, max_rows=most)
    return (given[start : start + rows] for start in range(0, len(given), rows))


# What control has to show.


def no_gain(case: Case, pairs: Sequence[Pair]) -> list[Check]:
    """Where nothing is to gain, control costs next to nothing, and so certainly that chance is no excuse."""
    found = no_more_wall_or_cpu(case, pairs)
    for what, ratio in (("wall", wall_ratio(pairs)), ("CPU", cpu_ratio(pairs))):
        found.append(
            Check(
                f"{case.name}: {what} time on over off, upper end of the 95 % interval",
                round(ratio.high, 4),
                "control costs nothing where nothing is to gain",
                ceiling=MOST_UPPER,
            )
        )
    return found


def no_more_wall_or_cpu(case: Case, pairs: Sequence[Pair]) -> list[Check]:
    """Control takes no longer and no more processor time."""
    return [
        Check(
            f"{case.name}: {what} time on over off",
            round(ratio.mean, 4),
            "control costs nothing where nothing is to gain",
            ceiling=MOST,
        )
        for what, ratio in (("wall", wall_ratio(pairs)), ("CPU", cpu_ratio(pairs)))
    ]


def saving(case: Case, pairs: Sequence[Pair]) -> list[Check]:
    """Most of what even channels would save is saved."""
    saved = saved_of_ideal(case, pairs)
    return [
        Check(
            f"{case.name}: saved of what even channels would save, wall time, mean of all pairs",
            None if saved is None else round(saved.mean, 3),
            "what adapts pays",
            floor=LEAST_SAVED,
        ),
        Check(
            f"{case.name}: wall time on over off",
            round(wall_ratio(pairs).mean, 4),
            "what adapts pays",
            ceiling=MOST_WAITING,
        ),
    ]


def saved_of_ideal(case: Case, pairs: Sequence[Pair]) -> Interval | None:
    """What control saved of the time that busiest channels waited longer than even ones would have.

    None if the function does not wait: what channels that share cores could save is not known.
    """
    if not isinstance(case.query, Waits):
        return None
    row_s = case.query.row_s
    return mean_of(
        [
            part_saved(
                each.off.cost.wall_s, each.on.cost.wall_s, ideal_saving(each.off.rows, each.hottest, row_s)
            )
            for each in pairs
        ]
    )


def even_join(case: Case, pairs: Sequence[Pair]) -> list[Check]:
    """Channels are even soon after each exchange, without more copies of rows than before."""
    assert case.keys is not None
    each = np.array([settled(case, pair.on) for pair in pairs]).mean(axis=0)
    return [
        Check(
            f"{case.name}: busiest over mean by cost {SETTLED} epochs after an exchange, "
            "the worst hot set, mean of all runs",
            round(float(each.max()), 3),
            "promised for a run that nobody touches",
            ceiling=MOST_UNEVEN,
        ),
        Check(
            f"{case.name}: rows sent over rows, mean of all runs",
            round(mean_of([pair.on.copies for pair in pairs]).mean, 3),
            "no more copies than before",
            ceiling=COPIES[case.keys.zipf],
        ),
    ]


def settled(case: Case, ran: Ran) -> list[float]:
    """For each hot set, busiest over mean from the epoch on by which the channels must be even.

    By processor time, since channels may share cores; by the clock for a function that waits.
    """
    keys, costs = case.keys, ran.seconds if isinstance(case.query, Waits) else ran.cpu
    if keys is None or keys.epochs <= SETTLED:
        return []
    return [
        busiest_over_mean(costs[start + SETTLED : start + keys.epochs])
        for start in range(0, keys.epochs * keys.sets, keys.epochs)
    ]
