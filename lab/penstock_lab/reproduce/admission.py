"""Figures 10 and 11 of [000]: redirections and nodes of the strategies of admission, on six workloads.

80 streams on gates of 1,000 rows/s, in periods of 10 s, on the simulated gates of `penstock_lab.simulate`;
every strategy sees the same rates and the same forecasts. The paper gives no rates, capacities or lengths, so
orders and shares are compared, not counts. "penstock" is our own strategy, with its two promises as checks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from penstock.control.admission import (
    NOWHERE,
    STRATEGIES,
    Admission,
    Costs,
    Expecting,
    ForecastIntervals,
    Outlook,
    Packing,
    Planner,
    Seen,
)
from penstock_lab.reports import Check, Difference, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.simulate import GateCosts, GateCourse, simulate_gates
from penstock_lab.workloads import RATE_WORKLOADS, Rates, rates_of

__all__ = ["GATES_OVER_OPTIMAL", "REDIRECTIONS", "Measured", "Spread", "compare", "forecasts", "planners"]

STREAMS = 80
WARM_UP = 60  # periods: a whole swing of the slowest workload, after which phases are known
OURS = "penstock"
SOURCE_10, SOURCE_11 = "[000] Fig. 10, §6.2", "[000] Fig. 11, §6.3"
PROMISE = "Penstock's own"
FEW = "two seeds of 150 periods say little about a mean"

Spread = Mapping[str, tuple[float, float]]
"""Mean and standard deviation over seeds, by measure."""
Measured = Mapping[tuple[str, str], Spread]
"""By strategy and workload."""
Foresee = Callable[[Rates], Sequence[Outlook]]
"""What is expected after each period."""


def planners() -> Mapping[str, Planner]:
    """Every strategy, ours last."""
    published: dict[str, Planner] = {name: Packing(each) for name, each in STRATEGIES.items()}
    return published | {OURS: ForecastIntervals()}


@dataclass(frozen=True)
class Size:
    """Seeds and periods of a run."""

    seeds: int
    periods: int


def compare(
    made: Sequence[Rates],
    strategies: Mapping[str, Planner],
    *,
    costs: GateCosts | None = None,
    foresee: Foresee | None = None,
) -> dict[str, Spread]:
    """Every strategy over several rates of one kind, all with the same expectations."""
    courses: dict[str, list[GateCourse]] = {name: [] for name in strategies}
    for rates in made:
        outlooks = (foresee or forecasts)(rates)
        for name, planner in strategies.items():
            courses[name].append(_course(rates, planner, outlooks, costs or GateCosts()))
    return {name: _spread(each) for name, each in courses.items()}


class _Recorded:
    """Expectations that were formed before: no placement changes a rate, so all strategies have the same."""

    def __init__(self, outlooks: Sequence[Outlook]) -> None:
        self.outlooks, self.seen = outlooks, 0

    def observe(self, _seen: Seen) -> None:
        """The next period."""
        self.seen += 1

    def outlook(self) -> Outlook:
        """That of the last period."""
        return self.outlooks[self.seen - 1]

    def outlook_of_new(self, count: int, declared: Mapping[str, Any], costs: Costs | None = None) -> Outlook:
        """That of streams that nobody has seen; here all are there from the beginning."""
        return Expecting().outlook_of_new(count, declared, costs)

    def rates_ahead(self, periods: int) -> dict[str, Any]:
        """Nobody asks for them here."""
        del periods
        return {}

    def to_json(self) -> dict[str, Any]:
        """The number of periods."""
        return {"seen": self.seen}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Goes on from there."""
        self.seen = int(value["seen"])


def forecasts(rates: Rates) -> list[Outlook]:
    """What the policy expects after each period."""
    expecting, found = Expecting(), []
    count = rates.rows.shape[1]
    streams = tuple(f"s{number:07d}" for number in range(count))
    nowhere, none = np.full(count, NOWHERE), np.empty(0)
    for period, rows in enumerate(rates.rows):
        seen = Seen(
            float(period), streams, (), nowhere, rows, none, none, np.empty(0, np.bool_), rates.declared
        )
        expecting.observe(seen)
        found.append(expecting.outlook())
    return found


def _course(rates: Rates, planner: Planner, outlooks: Sequence[Outlook], costs: GateCosts) -> GateCourse:
    policy = Admission(planner, _Recorded(outlooks), capacity=costs.capacity)
    course = simulate_gates(policy, rates.rows, costs, np.random.default_rng(0), declared=rates.declared)
    return course.after(min(WARM_UP, len(rates.rows) // 3))


def _spread(courses: Sequence[GateCourse]) -> Spread:
    measures = {
        "redirections a period": [each.redirections.mean() for each in courses],
        "rows buffered a period": [each.buffered.mean() for each in courses],
        "seconds of redirection a period": [each.delay.mean() for each in courses],
        "gates": [each.gates.mean() for each in courses],
        "gates over optimal, %": [100 * each.overhead for each in courses],
        "rows that wait over 5 s, %": [100 * each.over.mean() for each in courses],
    }
    return {name: (float(np.mean(values)), float(np.std(values))) for name, values in measures.items()}


@cache
def measured(size: Size, seed: int) -> Measured:
    """All strategies on all workloads; both figures share it."""
    found: dict[tuple[str, str], Spread] = {}
    for workload in RATE_WORKLOADS:
        made = [
            rates_of(workload, np.random.default_rng([seed, number]), size.periods, streams=STREAMS)
            for number in range(size.seeds)
        ]
        for name, spread in compare(made, planners()).items():
            found[name, workload] = spread
            redirections, over = (
                spread[key][0] for key in ("redirections a period", "gates over optimal, %")
            )
            say(f"{workload} {name}: {redirections:.2f} redirections a period, {over:+.1f} % gates")
    return found


def _size(*, quick: bool) -> Size:
    return Size(2, 150) if quick else Size(10, 300)


def _rows(figure: str, found: Measured, measures: Sequence[str], paper: Mapping[str, str]) -> tuple[Row, ...]:
    return tuple(
        row(
            figure,
            name,
            workload,
            measure,
            round(spread[measure][0], 3),
            paper.get(name),
            f"± {spread[measure][1]:.2f}",
        )
        for (name, workload), spread in found.items()
        for measure in measures
    )


def _value(found: Measured, name: str, workload: str, measure: str) -> float:
    return found[name, workload][measure][0]


def run_redirections(*, quick: bool, seed: int) -> Outcome:
    """Figure 10: redirections, buffered rows and delay."""
    found = measured(_size(quick=quick), seed)
    moves = {
        (name, workload): spread["redirections a period"][0] for (name, workload), spread in found.items()
    }
    measures = (
        "redirections a period",
        "rows buffered a period",
        "seconds of redirection a period",
        "rows that wait over 5 s, %",
    )
    paper = {"PAR": "most of 80", "DRF": "far below ARI and ARD", "DRF-M": "lowest"}
    rows = _rows("10", found, measures, paper)
    checks = _redirection_checks(found, moves, FEW if quick else "")
    return Outcome(rows, checks, {"000-fig-10": _draw_10(found)})


def _redirection_checks(
    found: Measured, moves: Mapping[tuple[str, str], float], few: str
) -> tuple[Check, ...]:
    mean = {name: float(np.mean([moves[name, each] for each in RATE_WORKLOADS])) for name in planners()}
    swinging = [each for each in RATE_WORKLOADS if each != "constw"]
    gains = ("psfcw", "sfvar", "bursty")
    delay = {
        name: float(
            np.mean([_value(found, name, each, "seconds of redirection a period") for each in swinging])
        )
        for name in planners()
    }
    steps = moves["DRF", "tfvar"] / moves["DRF", "sfvar"]
    checks = [
        Check(
            "000/10 PAR: part of 80 streams moved a period, least workload",
            round(min(moves["PAR", each] for each in RATE_WORKLOADS) / STREAMS, 3),
            SOURCE_10,
            floor=0.5,
            differs=Difference(
                "conjecture: where rates hardly change, the largest streams come first every period and keep "
                "their gates",
                0.35,
                0.5,
            ),
        ),
        Check("000/10 ARI over ARD, mean", round(mean["ARI"] / mean["ARD"], 3), SOURCE_10, floor=1.0),
        Check(
            "000/10 ARI only slightly worse than ARD",
            round(mean["ARI"] / mean["ARD"], 3),
            SOURCE_10,
            ceiling=1.5,
            differs=Difference(
                "tested in part: a gate of ours holds many streams, and several small ones leave "
                "where one large "
                "one would do; with gates of two or three streams the ratio falls, to 1.7 in 000/reasons",
                1.5,
                6.0,
            ),
        ),
        Check(
            "000/10 DRF far below ARD: DRF over ARD, mean",
            round(mean["DRF"] / mean["ARD"], 3),
            SOURCE_10,
            ceiling=0.7,
            differs=Difference(
                "conjecture: DRF picks by the rise and not by the size, and so moves several "
                "streams where ARD "
                "moves the largest; tested: forecasts are not the cause, true ones make it 1.5 "
                "in 000/reasons",
                0.7,
                1.5,
            ),
        ),
        Check(
            "000/10 DRF gains more with a trend: DRF on tfvar over sfvar",
            round(steps, 3),
            SOURCE_10,
            ceiling=1.0,
            differs=Difference(
                "tested: Holt's forecasts turn too late at the ends of our trends; with true "
                "forecasts the ratio "
                "is 0.7 in 000/reasons",
                1.0,
                1.6,
            ),
        ),
    ]
    for workload in gains:
        ratio = moves["DRF-M", workload] / moves["DRF", workload]
        checks.append(
            Check(
                f"000/10 DRF-M gains on DRF, {workload}",
                round(ratio, 3),
                SOURCE_10,
                ceiling=1.0,
                differs=Difference(
                    "conjecture: DRF-M charges what is declared for the horizon and packs more "
                    "tightly than DRF; "
                    "tested: to know the next switch does not help, it makes 1.1 in 000/reasons",
                    1.0,
                    1.35,
                )
                if workload == "bursty"
                else None,
            )
        )
    others = min(mean[each] for each in ("PAR", "ARI", "ARD", "DRF"))
    checks.append(
        Check(
            "000/10 DRF-M lowest of the five, mean",
            round(mean["DRF-M"] / others, 3),
            SOURCE_10,
            ceiling=1.0,
            differs=Difference(
                "conjecture: ARD sends the largest stream away, which relieves a gate for "
                "longest where the total "
                "swings, and has more gates; tested: metadata that know the future do not change it, 1.1 in "
                "000/reasons",
                1.0,
                1.2,
            ),
        )
    )
    checks.append(
        Check(
            "000/10c DRF-M's delay over ARI's",
            round(delay["DRF-M"] / delay["ARI"], 3),
            SOURCE_10,
            ceiling=1.0,
        )
    )
    for workload in RATE_WORKLOADS:
        # Where DRF-M moves nothing, ours must not either.
        ratio = (moves[OURS, workload] + 1e-3) / (moves["DRF-M", workload] + 1e-3)
        checks.append(
            Check(
                f"000/10 ours: redirections over DRF-M's, {workload}",
                round(ratio, 3),
                PROMISE,
                ceiling=1.0,
                unjudged=few,
            )
        )
    return tuple(checks)


def run_gates(*, quick: bool, seed: int) -> Outcome:
    """Figure 11: gates over the wasted-space bound."""
    found = measured(_size(quick=quick), seed)
    paper = {"PAR": "close to optimal", "DRF": "about +15 % on trends", "DRF-M": "about +15 %"}
    rows = _rows("11", found, ("gates", "gates over optimal, %"), paper)
    over = {
        name: [_value(found, name, each, "gates over optimal, %") for each in RATE_WORKLOADS]
        for name in planners()
    }
    trends = np.mean([_value(found, "DRF", each, "gates over optimal, %") for each in ("ptfcw", "tfvar")])
    mean = {name: float(np.mean(each)) for name, each in over.items()}
    closer = [
        _value(found, "DRF-M", each, "gates over optimal, %")
        - _value(found, "DRF", each, "gates over optimal, %")
        for each in ("psfcw", "sfvar", "bursty")
    ]
    checks = [
        Check("000/11 PAR: gates over optimal, %", round(mean["PAR"], 2), SOURCE_11, ceiling=5.0),
        Check(
            "000/11 DRF on trends (about 15 %), not above", round(float(trends), 2), SOURCE_11, ceiling=20.0
        ),
        Check("000/11 DRF on trends (about 15 %), not below", round(float(trends), 2), SOURCE_11, floor=10.0),
        Check("000/11 DRF-M (about 15 %), not above", round(mean["DRF-M"], 2), SOURCE_11, ceiling=20.0),
        Check("000/11 DRF-M (about 15 %), not below", round(mean["DRF-M"], 2), SOURCE_11, floor=10.0),
        Check(
            "000/11 DRF-M closer than DRF on psfcw, sfvar, bursty, worst",
            round(max(closer), 2),
            SOURCE_11,
            ceiling=0.0,
        ),
        Check(
            "000/11 ours: gates over optimal, mean of workloads, %",
            round(mean[OURS], 2),
            PROMISE,
            ceiling=5.0,
            unjudged=FEW if quick else "",
        ),
    ]
    return Outcome(rows, tuple(checks), {"000-fig-11": _draw_11(found)})


_COLOURS = {
    "PAR": "#9a9a9a",
    "ARI": "#c98b2b",
    "ARD": "#6aa84f",
    "DRF": "#3d78b4",
    "DRF-M": "#8e5ba6",
    OURS: "#c0392b",
}


def _bars(axes: object, found: Measured, names: Sequence[str], measure: str, label: str) -> None:
    width = 0.8 / len(names)
    for at, name in enumerate(names):
        means, spreads = zip(*(found[name, each][measure] for each in RATE_WORKLOADS), strict=True)
        left = [place + (at + 0.5) * width - 0.4 for place in range(len(RATE_WORKLOADS))]
        axes.bar(left, means, width, yerr=spreads, label=name, color=_COLOURS[name], error_kw={"lw": 0.8})  # type: ignore[attr-defined]
    axes.set_xticks(range(len(RATE_WORKLOADS)), list(RATE_WORKLOADS))  # type: ignore[attr-defined]
    axes.set_ylabel(label)  # type: ignore[attr-defined]
    axes.spines[["top", "right"]].set_visible(False)  # type: ignore[attr-defined]


def _draw_10(found: Measured) -> Figure:
    figure = Figure(figsize=(10, 7), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    names = list(planners())
    _bars(top, found, names, "redirections a period", "redirections a period (log)")
    top.set_yscale("symlog", linthresh=0.1)
    top.set_ylim(bottom=0)
    _bars(middle, found, names, "rows buffered a period", "rows buffered (log)")
    middle.set_yscale("symlog", linthresh=10)
    middle.set_ylim(bottom=0)
    _bars(
        bottom,
        found,
        [each for each in names if each not in ("PAR", "ARD")],
        "seconds of redirection a period",
        "delay, s a period",
    )
    top.set_title("80 streams on gates of 1,000 rows/s: what redirections cost", loc="left", fontsize=10)
    handles, labels = top.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    return figure


def _draw_11(found: Measured) -> Figure:
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    _bars(axes, found, list(planners()), "gates over optimal, %", "gates over the optimal number, %")
    axes.set_ylim(bottom=0)
    axes.axhline(15, color="#6b757c", linestyle=":", linewidth=1)
    axes.axhline(5, color="#c0392b", linestyle=":", linewidth=1)
    axes.set_title(
        "Gates over the wasted-space bound; dotted: the paper's DRF-M, our promise", loc="left", fontsize=10
    )
    figure.legend(loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return figure


REDIRECTIONS = Experiment("000/10", "redirections of the strategies of admission", run_redirections)
GATES_OVER_OPTIMAL = Experiment(
    "000/11", "gates of the strategies of admission against the optimal number", run_gates
)
