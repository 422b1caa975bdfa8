"""Figure 13 of [000]: keys that move, and merge work, as channels come and go ([000] §6.4.3).

The load goes from 4 channels to 32 and back; the number of channels changes at every optimisation. Plain
hashing is the hash modulo N. A key counts as relocated if any of its tuples would now go elsewhere: a hot
key as soon as one of its sub-keys moves or is new. The merge work of a window result is the number of
channels that hold a part of its key ([000] §5.3), the window being 100 panes as in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.routing import Ring, SubKeys, split_hot_keys
from penstock_lab.algorithms import UniformHash
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.skewed_keys import SkewedKeys

__all__ = ["RELOCATION"]

KEYS = SkewedKeys(16_384, 1.0)
HOT = 200
MOST = 32
PERIODS = 60
PANES = 10  # from one optimisation to the next
WINDOW = 100  # panes
SOURCE = "[000] Fig. 13, §6.4.3"


@dataclass(frozen=True)
class Plain:
    """The hash modulo N, in the shape of a split by sequence."""

    channels: int

    def route(self, hashes: NDArray[np.uint64], _: NDArray[np.int64]) -> NDArray[np.int32]:
        """The channel of every tuple."""
        return UniformHash(self.channels).route(hashes)


@dataclass(frozen=True)
class Course:
    """What one algorithm did: the part of keys relocated at each change, and parts per result by pane."""

    relocated: NDArray[np.float64]
    of_windows: NDArray[np.float64]
    of_panes: NDArray[np.float64]


def channel_counts(rng: np.random.Generator) -> list[int]:
    """Channels in every period: a trend from 4 to 32 and back, never the same number twice in a row."""
    trend = 4 + 28 * np.sin(np.linspace(0, np.pi, PERIODS)) ** 2
    counts: list[int] = []
    for wanted in np.clip(np.rint(trend + rng.uniform(-1, 1, PERIODS)), 3, MOST).astype(int).tolist():
        again = bool(counts) and wanted == counts[-1]
        counts.append(wanted - 1 if again and wanted == MOST else wanted + again)
    return counts


def sub_keys(channels: int) -> SubKeys:
    """The ring with the hottest keys split."""
    return split_hot_keys(KEYS.hashes[:HOT], KEYS.frequencies[:HOT], Ring(channels))


def relocated(before: Plain | SubKeys, after: Plain | SubKeys) -> float:
    """The part of all keys with a tuple that would go elsewhere."""
    first = np.zeros(KEYS.count, np.int64)
    moved = before.route(KEYS.hashes, first) != after.route(KEYS.hashes, first)
    if isinstance(before, SubKeys) and isinstance(after, SubKeys):
        for place in range(HOT):
            moved[place] = not _same(before, after, place)
    return float(moved.mean())


def course(routers: Sequence[Plain | SubKeys], tuples: int, seed: int) -> Course:
    """Send panes of tuples through the routers; the change comes in the middle of a pane."""
    rng = np.random.default_rng(seed)
    last_seen = np.full((KEYS.count, MOST), -WINDOW)
    of_windows, of_panes = [], []
    for pane in range(len(routers) * PANES - PANES // 2):
        keys, sequence = KEYS.draw(tuples, rng), np.arange(tuples)
        half = tuples // 2 if pane % PANES == PANES // 2 else tuples
        period = (pane + PANES // 2) // PANES
        for part, at in ((slice(half), max(0, period - (half < tuples))), (slice(half, None), period)):
            routes = routers[at].route(KEYS.hashes[keys[part]], sequence[part])
            last_seen[keys[part], routes] = pane
        of_panes.append(_parts_per_key(last_seen == pane))
        of_windows.append(_parts_per_key(last_seen > pane - WINDOW))
    moved = np.array([relocated(before, after) for before, after in pairwise(routers)])
    return Course(moved, np.array(of_windows), np.array(of_panes))


def run(*, quick: bool, seed: int) -> Outcome:
    """Both algorithms over the same changes and tuples."""
    counts = channel_counts(np.random.default_rng(seed))
    tuples = 5_000 if quick else 50_000
    say(f"{len(counts) - 1} changes of the number of channels, {tuples:,} tuples a pane")
    plain = course([Plain(count) for count in counts], tuples, seed)
    ring = course([sub_keys(count) for count in counts], tuples, seed)
    rows = [*_rows("plain hashing", plain), *_rows("sub-keys on the ring", ring)]
    return Outcome(tuple(rows), _checks(plain, ring), {"000-fig-13": _draw(counts, plain, ring)})


def _same(before: SubKeys, after: SubKeys, key: int) -> bool:
    """Whether a hot key has as many sub-keys as before, and all of them in their channels."""
    return np.array_equal(_places(before, key), _places(after, key))


def _places(router: SubKeys, key: int) -> NDArray[np.int32]:
    parts = int(router.parts[key])
    return router.route(np.repeat(KEYS.hashes[key], parts), np.arange(parts))


def _parts_per_key(held: NDArray[np.bool_]) -> float:
    channels = held.sum(axis=1)
    return float(channels.sum() / np.count_nonzero(channels))


def _rows(algorithm: str, course: Course) -> list[Row]:
    plain = algorithm == "plain hashing"
    measures = (
        ("keys relocated at a change, average", course.relocated, "almost all" if plain else "far fewer", ""),
        ("parts merged for a window result", course.of_windows[WINDOW:], None if plain else "fewer", ""),
        ("parts merged for a pane result", course.of_panes[WINDOW:], None, "the price of splitting hot keys"),
    )
    setting = f"{KEYS.count:,} keys, Zipf {KEYS.skew:g}, 4 to 32 channels"
    return [
        row("13", algorithm, setting, measure, round(float(values.mean()), 4), paper, note)
        for measure, values, paper, note in measures
    ]


def _checks(plain: Course, ring: Course) -> tuple[Check, ...]:
    moved, fewer = float(plain.relocated.mean()), float(ring.relocated.mean())
    merged = float(ring.of_windows[WINDOW:].mean() / plain.of_windows[WINDOW:].mean())
    always = float((ring.relocated / plain.relocated).max())
    return (
        Check("000/13 plain hashing: keys relocated (almost all)", round(moved, 4), SOURCE, floor=0.85),
        Check(
            "000/13 relocated, sub-keys to plain (far fewer)", round(fewer / moved, 4), SOURCE, ceiling=0.5
        ),
        Check("000/13 relocated, sub-keys to plain, worst change", round(always, 4), SOURCE, ceiling=1.0),
        Check("000/13 merge work of windows, sub-keys to plain", round(merged, 4), SOURCE, ceiling=1.0),
    )


def _draw(counts: Sequence[int], plain: Course, ring: Course) -> Figure:
    figure = Figure(figsize=(9, 6), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=[2, 2, 1])
    for course, name, colour in (
        (plain, "hash modulo N", "#c0562f"),
        (ring, "sub-keys on the ring", "#1f5f8b"),
    ):
        changes = np.arange(1, len(counts)) - 0.5
        top.plot(changes, 100 * course.relocated, marker=".", color=colour, label=name, linewidth=1)
        periods = np.arange(len(course.of_windows)) / PANES
        middle.plot(periods, course.of_windows, color=colour, linewidth=1.2, label=name)
    top.set(ylabel="keys relocated, %", ylim=(0, 105))
    top.legend(loc="center right", frameon=False, fontsize=8)
    middle.set(ylabel="parts merged\nfor a window result", ylim=(0, None))
    bottom.step(np.arange(len(counts)) - 0.5, counts, where="post", color="#6b757c")
    bottom.set(xlabel="optimisation", ylabel="channels", ylim=(0, None))
    for axes in (top, middle, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


RELOCATION = Experiment("000/13", "keys relocated as channels come and go", run)
