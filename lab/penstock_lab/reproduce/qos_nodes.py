"""Figure 14 of [000]: a latency bound of 5 s while the load goes from 4 machines to 32 and back.

DRF-M and ARD size the processing layer by Eq. 1a of §3.2: DRF-M from forecasts, ARD from means of the past;
a static cluster has 32. Rates, times of a start and of a change are ours: the load rises and falls within
five minutes, fluctuates by 4 %, and is asked for every 5 s; a machine starts in 10 s, a change stops all
for 1 s.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.control.scaling import Autoscale, Incremental, Qos, Scaler, ScalingLimits, Static, TargetLatency
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.simulate.pool import PoolCosts, PoolCourse, least_node_seconds, simulate_pool

__all__ = ["QOS_NODES", "trend_load"]

Floats = NDArray[np.float64]

BOUND = 5.0
COSTS = PoolCosts(tick=5, startup=10, pause=1, units=4)
LOW, HIGH, REST = 4.0, 32.0, 3.0
OURS = "penstock"
SOURCE = "[000] Fig. 14, §6.5"
PROMISE = "Penstock's own"

POLICIES: Mapping[str, Callable[[], Scaler]] = {
    "static 32": lambda: Static(units=int(HIGH)),
    "ARD": lambda: Qos(_limits(), bound=BOUND, expect="mean"),
    "DRF-M": lambda: Qos(_limits(), bound=BOUND, lead=3),
    "incremental": lambda: Incremental(_limits()),
    "AutoScale+": lambda: Autoscale(_limits(), preset="paper"),
    # Nodes are alike and costs are known, so less of a node is kept in reserve than by default.
    OURS: lambda: TargetLatency(_limits(), bound=BOUND, usable=0.95),
}


def _limits() -> ScalingLimits:
    return ScalingLimits(most=64)


def trend_load(rng: np.random.Generator) -> Floats:
    """1,200 seconds in node seconds: 4 nodes, up to 32 in five minutes, there for five, and down to 3.

    >>> load = trend_load(np.random.default_rng(1))
    >>> len(load), bool(load[500:700].mean() > 28)
    (1200, True)
    """
    seconds = np.arange(1200)
    trend = np.interp(seconds, [0, 150, 450, 750, 1050, 1200], [LOW, LOW, HIGH, HIGH, REST, REST])
    shift, drift = np.empty(len(seconds)), 0.0
    for second, step in enumerate(rng.normal(0.0, 0.01, len(seconds)).tolist()):
        drift = 0.97 * drift + step
        shift[second] = drift
    # The trend is what saturates that many machines at most; fluctuations stay below it in the mean.
    rate = np.clip(trend * (0.94 + shift), 0.0, HIGH)
    return rng.poisson(rate * 1_000) / 1_000


def run(*, quick: bool, seed: int) -> Outcome:
    """Every policy on the same loads."""
    loads = [trend_load(np.random.default_rng([seed, number])) for number in range(2 if quick else 10)]
    least = [least_node_seconds(load, BOUND, COSTS.tick) for load in loads]
    courses: dict[str, list[PoolCourse]] = {}
    for name, made in POLICIES.items():
        courses[name] = [simulate_pool(load, made(), COSTS) for load in loads]
        say(name)
    over = {
        name: float(np.mean([each.node_seconds / few for each, few in zip(runs, least, strict=True)]))
        for name, runs in courses.items()
    }
    return Outcome(tuple(_rows(courses, over)), tuple(_checks(courses, over)), {"000-fig-14": _draw(courses)})


def _rows(courses: Mapping[str, Sequence[PoolCourse]], over: Mapping[str, float]) -> list[Row]:
    notes = {
        "static 32": "lowest latency, 32 where 3 would do",
        "DRF-M": "below ARD, short violations at the peak",
        "ARD": "higher, with lengthy peaks",
    }
    rows = []
    for name, runs in courses.items():
        for measure, value in (
            ("results within 5 s, %", 100 * _mean(runs, lambda each: each.within(BOUND))),
            ("mean latency, ms", 1_000 * _mean(runs, _latency)),
            ("highest latency, s", max(float(each.waits.max()) for each in runs)),
            ("node hours", _mean(runs, lambda each: each.node_seconds / 3_600)),
            ("node hours over the clairvoyant least", over[name]),
            ("changes", _mean(runs, lambda each: float(each.changes))),
        ):
            paper = notes.get(name) if measure == "mean latency, ms" else None
            rows.append(row("14", name, "4 to 32 machines", measure, round(value, 3), paper, ""))
    return rows


def _mean(runs: Sequence[PoolCourse], value: Callable[[PoolCourse], float]) -> float:
    return float(np.mean([value(each) for each in runs]))


def _latency(course: PoolCourse) -> float:
    return float(course.waits @ course.work / course.work.sum())


def _checks(courses: Mapping[str, Sequence[PoolCourse]], over: Mapping[str, float]) -> list[Check]:
    latency = {name: _mean(runs, _latency) for name, runs in courses.items()}
    least = 100 * min(each.within(BOUND) for each in courses[OURS])
    return [
        Check(
            "000/14 latency of DRF-M over that of ARD", latency["DRF-M"] / latency["ARD"], SOURCE, ceiling=1.0
        ),
        Check(
            "000/14 latency of the static cluster over that of DRF-M",
            latency["static 32"] / latency["DRF-M"],
            SOURCE,
            ceiling=1.0,
        ),
        Check(
            "000/14 node hours of the static cluster over DRF-M",
            over["static 32"] / over["DRF-M"],
            SOURCE,
            floor=1.3,
        ),
        Check(
            "000/14 DRF-M: results within 5 s, %",
            100 * _mean(courses["DRF-M"], lambda each: each.within(BOUND)),
            SOURCE,
            floor=99.0,
        ),
        Check("000/14 ours: results within 5 s, %, worst run", round(least, 2), PROMISE, floor=99.0),
        Check(
            "000/14 ours: node hours over the clairvoyant least", round(over[OURS], 3), PROMISE, ceiling=1.15
        ),
    ]


_COLOURS = {
    "static 32": "#b0b7bc",
    "ARD": "#6aa84f",
    "DRF-M": "#8e5ba6",
    "incremental": "#c98b2b",
    "AutoScale+": "#3d78b4",
    OURS: "#c0392b",
}


def _draw(courses: Mapping[str, Sequence[PoolCourse]]) -> Figure:
    """Nodes and latency of the first load over time."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    nodes, latency = figure.subplots(1, 2)
    work = courses[OURS][0].work
    nodes.plot(np.convolve(work, np.ones(5) / 5, "valid"), color="#6b757c", linewidth=0.8, label="load")
    for name, runs in courses.items():
        first, wide = runs[0], 2.0 if name == OURS else 1.2
        times = np.arange(1, len(first.units) + 1) * COSTS.tick
        nodes.step(times, first.units, where="pre", color=_COLOURS[name], linewidth=wide, label=name)
        latency.plot(first.waits, color=_COLOURS[name], linewidth=wide)
    latency.axhline(BOUND, color="#6b757c", linestyle=":", linewidth=1)
    for axes, title, label in ((nodes, "Nodes", "nodes"), (latency, "Latency; dotted: the bound", "s")):
        axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
        axes.set_xlabel("s")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    handles, labels = nodes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    return figure


QOS_NODES = Experiment("000/14", "a latency bound while the load goes from 4 to 32 machines", run)
