"""Figure 12 of [000]: load over 16 channels with plain and with rate-aware panes ([000] §6.4.1).

A new rate is drawn each second and jumps to five times itself with a probability of 0.1. The load of a
channel is the tuples that it received in the last round of panes. The paper gives neither the length of its
panes nor the span of its load, so three lengths around the second in which the rate changes are run, and
their average is compared with the averages of the paper.

Rate-aware panes need the size of a pane before its first tuple is sent. A run of Penstock does not have it:
its tasks deal rows out in runs as they come, each as long as a mean pane of the epoch before. That is
measured beside the two.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.routing import PaneHistory, PlainPanes, split_panes
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.load_ratio import rolling_ratio
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.workloads import bursty_rate

__all__ = ["RATE_AWARE_PANES"]

CHANNELS = 16
LENGTHS = (0.5, 1.0, 2.0)
WARM_UP = 100  # seconds
SHOWN = 300  # seconds in the figure
EPOCH = 16  # seconds
TASKS = 2
SOURCE = "[000] Fig. 12, §6.4.1"


@dataclass(frozen=True)
class Load:
    """One run: the ratio after every pane, and how many sub-panes a pane had on average."""

    ratio: NDArray[np.float64]
    sub_panes: float


def pane_sizes(rate: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Tuples in every pane of a length that is a whole number or a whole part of a second."""
    if length < 1:
        return np.repeat(rate * length, round(1 / length))
    seconds = int(length)
    sizes: NDArray[np.float64] = rate[: len(rate) // seconds * seconds].reshape(-1, seconds).sum(axis=1)
    return sizes


def plain(sizes: NDArray[np.float64]) -> Load:
    """Whole panes, in turn."""
    given = np.zeros((len(sizes), CHANNELS))
    panes = np.arange(len(sizes))
    given[panes, PlainPanes(CHANNELS).route(panes)] = sizes
    return _load(given)


def rate_aware(sizes: NDArray[np.float64]) -> Load:
    """Panes cut by the recent mean and deviation."""
    return _load(split_panes(PaneHistory.start(CHANNELS), sizes)[0])


def dealt_out(sizes: NDArray[np.float64], length: float) -> Load:
    """Rows in runs, by their positions in the tasks of an epoch, as `run_column` of a run deals them out."""
    panes = max(CHANNELS, round(EPOCH / length))
    mean, rows = sizes[:panes].mean(), sizes[:panes].sum()
    given = []
    for first in range(0, len(sizes), panes):
        epoch = sizes[first : first + panes]
        run = max(1, int(min(mean / TASKS, rows / (16 * CHANNELS * TASKS))))
        ends = np.cumsum(epoch // TASKS)
        for_task = _in_runs(ends, run) - _in_runs(ends - epoch // TASKS, run)
        given.append(sum(np.roll(for_task, task, axis=1) for task in range(TASKS)))
        mean, rows = epoch.mean(), epoch.sum()
    return _load(np.vstack(given))


def _in_runs(positions: NDArray[np.float64], run: int) -> NDArray[np.float64]:
    """How many rows before each position go to each channel."""
    rounds, rest = np.divmod(positions, run * CHANNELS)
    begun = np.clip(rest[:, None] - run * np.arange(CHANNELS), 0, run)
    whole: NDArray[np.float64] = rounds[:, None] * run + begun
    return whole


def run(*, quick: bool, seed: int) -> Outcome:
    """Each way over the same rates, in panes of three lengths."""
    seconds = 3_000 if quick else 20_000
    rate = bursty_rate(np.random.default_rng(seed), seconds)
    loads: dict[float, tuple[Load, Load]] = {}
    dealt: dict[float, Load] = {}
    for length in LENGTHS:
        say(f"panes of {length:g} s over {seconds:,} s")
        sizes = pane_sizes(rate, length)
        loads[length] = plain(sizes), rate_aware(sizes)
        dealt[length] = dealt_out(sizes, length)
    rows = [each for length, both in loads.items() for each in _rows(length, *both)]
    rows += [_dealt_row(length, load) for length, load in dealt.items()]
    even = float(np.mean([_settled(load, length).mean() for length, load in dealt.items()]))
    live = Check("000/12 rows in runs as they come, average ratio", round(even, 4), SOURCE, ceiling=0.07)
    figure = _draw(rate[:SHOWN], *loads[1.0])
    return Outcome(tuple(rows), (*_checks(loads), live), {"000-fig-12": figure})


def _load(given: NDArray[np.float64]) -> Load:
    return Load(rolling_ratio(given, CHANNELS), float(np.count_nonzero(given, axis=1).mean()))


def _settled(load: Load, length: float) -> NDArray[np.float64]:
    """The ratios after the warm-up."""
    return load.ratio[int(WARM_UP / length) - CHANNELS + 1 :]


def _rows(length: float, even: Load, aware: Load) -> list[Row]:
    setting = f"panes of {length:g} s"
    unsaid = "length of a pane and span of the load are not in the paper"
    rows: list[Row] = []
    for name, load, average, highest in (("plain", even, 0.60, 1.0), ("rate-aware", aware, 0.07, None)):
        settled = _settled(load, length)
        for measure, ours, paper, note in (
            ("average ratio", settled.mean(), average, unsaid),
            ("99th percentile of the ratio", np.quantile(settled, 0.99), highest, ""),
            ("sub-panes a pane", load.sub_panes, None, ""),
        ):
            rows.append(row("12", name, setting, measure, round(float(ours), 4), paper, note))
    return rows


def _dealt_row(length: float, load: Load) -> Row:
    ratio = round(float(_settled(load, length).mean()), 4)
    return row(
        "12", "rows in runs", f"panes of {length:g} s", "average ratio", ratio, 0.07, "without knowing sizes"
    )


def _checks(loads: dict[float, tuple[Load, Load]]) -> tuple[Check, ...]:
    averages = np.array([[_settled(load, length).mean() for load in both] for length, both in loads.items()])
    even, aware = (round(float(each), 4) for each in averages.mean(axis=0))
    return (
        Check("000/12 rate-aware panes, average ratio after the warm-up", aware, SOURCE, ceiling=0.07),
        Check("000/12 plain panes, average ratio (about 60 %), not below", even, SOURCE, floor=0.5),
        Check("000/12 plain panes, average ratio (about 60 %), not above", even, SOURCE, ceiling=0.7),
    )


def _draw(rate: NDArray[np.float64], even: Load, aware: Load) -> Figure:
    figure = Figure(figsize=(9, 5), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    seconds = np.arange(CHANNELS, len(rate) + 1)
    for load, name, colour in ((even, "plain panes", "#c0562f"), (aware, "rate-aware panes", "#1f5f8b")):
        top.plot(seconds, 100 * load.ratio[: len(seconds)], color=colour, label=name, linewidth=1.2)
    for height, name in ((60, "paper, plain: 60 %"), (7, "paper, rate-aware: 7 %")):
        top.axhline(height, color="#6b757c", linestyle=":", linewidth=1)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
        top.text(len(rate), height + 2, name, ha="right", color="#6b757c", fontsize=8, bbox=box)
    top.set(ylabel="load-balancing ratio, %", ylim=(0, None), xlim=(0, len(rate)))
    top.set_title(f"Load of {CHANNELS} channels over one round of panes of 1 s", loc="left", fontsize=10)
    top.legend(loc="upper center", ncols=2, frameon=False, fontsize=8, bbox_to_anchor=(0.75, 1.12))
    bottom.fill_between(np.arange(len(rate)), rate / 1000, step="post", color="#6b757c", alpha=0.6)
    bottom.set(xlabel="time, s", ylabel="thousand tuples/s", ylim=(0, None))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


RATE_AWARE_PANES = Experiment("000/12", "rate-aware panes under bursts", run)
