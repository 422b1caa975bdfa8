"""Figures 12 to 17 of [001]: losses, latency, units and lag of the scaling policies on three topologies.

The paper draws its figures and states some in words; those are compared. Orders that its text gives are
checks. "penstock" is our own policy, with its promises as checks.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock_lab.reports import Check, Difference, say
from penstock_lab.reproduce.elastic_runs import BOUND, COSTS, POLICIES, Case, Measured, measure
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row

__all__ = ["ELASTIC_SCALING"]

OURS, PAPER = "penstock", "AutoScale+"
PROMISE = "Penstock's own"
TOPOLOGY_TITLES = {
    "insensitive": "costs that do not depend on values",
    "sensitive": "costs by value, Zipf 1.5",
    "complex": "two branches, costs by value",
}

Results = Mapping[str, Measured]

_PUBLISHED: Mapping[tuple[int, str], str] = {
    (12, "incremental"): "29 %",
    (12, PAPER): "7 %",
    (13, "incremental"): "19 %",
    (13, "learning"): "13 %",
    (13, PAPER): "18 %",
    (14, PAPER): "similar to the others",
    (15, PAPER): "4.8 %",
    (15, "incremental"): "most of the three",
    (16, PAPER): "least of the three, at most 10 %",
    (17, PAPER): "least of the three, at most 10 %",
}


def _run(case: Case, *, quick: bool, seed: int) -> Outcome:
    say(f"{case.topology}, {case.stream}")
    found = measure(case, POLICIES, seed, 1 if quick else 10)
    for name, each in found.items():
        say(f"{name}: {each.late:.1f} % late, {each.units:.1f} units")
    checks = [*_published_checks(case, found), *_promises(case, found)]
    if quick:
        checks = [_unjudged(each) for each in checks]
    figure = _draw(case, found)
    return Outcome(tuple(_rows(case, found)), tuple(checks), {f"001-fig-{case.figure}": figure})


def _unjudged(check: Check) -> Check:
    return Check(
        check.name,
        check.value,
        check.source,
        check.floor,
        check.ceiling,
        "a single stream says little",
        check.differs,
    )


def _rows(case: Case, found: Results) -> list[Row]:
    setting = f"{case.topology}, {case.stream}"
    rows = []
    for name, each in found.items():
        published = _PUBLISHED.get((case.figure, name))
        note = f"standard deviation {each.spread:.1f}"
        for measure_, value, paper in (
            ("late tuples, %", each.late, published),
            ("mean latency, s", each.latency, None),
            ("mean latency at the peak, s", each.peak, None),
            ("units", each.units, None),
            ("lag, s", each.lag, None),
            ("changes", each.changes, None),
        ):
            figure = f"{case.figure}"
            rows.append(row(figure, name, setting, measure_, round(value, 2), paper, note if paper else ""))
    return rows


def _published_checks(case: Case, found: Results) -> list[Check]:
    """The orders that the text of the paper gives, as differences that must not be positive."""
    source = f"[001] Fig. {case.figure}"
    three = ("incremental", "learning", PAPER)

    def below(words: str, value: float, differs: Difference | None = None) -> Check:
        return Check(f"001/{case.figure} {words}", round(value, 2), source, ceiling=0.0, differs=differs)

    late = {name: found[name].late for name in three}
    units = {name: found[name].units for name in three}
    latency = {name: found[name].latency for name in three}
    lavish = Difference(
        "with Table 2 a pool gets 1 / 0.3 times the units that it needs, and keeps them: the "
        "interval is void",
        0.0,
        30.0,
    )
    eager = Difference(
        "our learning policy is trained until it keeps up with every rate of the stream, and a rise "
        "of two minutes is "
        "slower than its mean of one",
        0.0,
        10.0,
    )
    if case.figure == 12:
        return [
            below("AutoScale+ loses less than incremental", late[PAPER] - late["incremental"]),
            below("AutoScale+ has the least latency", latency[PAPER] - min(latency.values())),
            below(
                "incremental takes more units than learning", units["learning"] - units["incremental"], eager
            ),
            below(
                "incremental takes more units than AutoScale+", units[PAPER] - units["incremental"], lavish
            ),
        ]
    if case.figure == 13:
        waiting = Difference(
            "a minute's mean hides a peak of 10 to 20 s, and AutoScale+ acts at the end of each "
            "minute: which of the "
            "two comes first depends on where the peak falls",
            0.0,
            30.0,
        )
        return [
            below("learning loses less than AutoScale+", late["learning"] - late[PAPER], waiting),
            below("AutoScale+ loses less than incremental", late[PAPER] - late["incremental"]),
        ]
    if case.figure == 14:
        peak, lag = ({name: getattr(found[name], each) for name in three} for each in ("peak", "lag"))
        return [
            below("AutoScale+ has the least latency at the peak", peak[PAPER] - min(peak.values())),
            below("AutoScale+ has the least lag, within 1 s", lag[PAPER] - min(lag.values()) - 1),
        ]
    if case.figure == 15:
        return [
            below("incremental loses most", max(late.values()) - late["incremental"]),
            below(
                "incremental takes the most units",
                max(units.values()) - units["incremental"],
                Difference("it never gets as far: a peak is over after one or two steps", 0.0, 30.0),
            ),
        ]
    least = [
        below("AutoScale+ loses least", late[PAPER] - min(late.values()), eager),
        below(
            "AutoScale+ has the least latency",
            latency[PAPER] - min(latency.values()),
            Difference("learning keeps up with the same streams that it was trained on", 0.0, 10.0),
        ),
    ]
    if case.figure == 16:
        least.append(below("AutoScale+ takes the most units", max(units.values()) - units[PAPER]))
    at_most = Check(f"001/{case.figure} AutoScale+: late, %", round(late[PAPER], 2), source, ceiling=10.0)
    return [*least, at_most]


def _promises(case: Case, found: Results) -> list[Check]:
    ours = found[OURS]
    if case.stream == "progressive":
        return [Check(f"001/{case.figure} ours: late, %", round(ours.late, 3), PROMISE, ceiling=1.0)]
    best = min(each.late for name, each in found.items() if name != OURS)
    return [
        Check(
            f"001/{case.figure} ours: late above half of the best other, points",
            round(ours.late - best / 2, 3),
            PROMISE,
            ceiling=0.0,
        ),
        Check(
            f"001/{case.figure} ours: units over those of AutoScale+",
            round(ours.units / found[PAPER].units, 3),
            PROMISE,
            ceiling=1.0,
        ),
    ]


_COLOURS = {
    "static": "#b0b7bc",
    "incremental": "#c98b2b",
    "learning": "#6aa84f",
    PAPER: "#3d78b4",
    "autoscale, ours": "#8fb8de",
    "qos": "#8e5ba6",
    OURS: "#c0392b",
}


def _draw(case: Case, found: Results) -> Figure:
    """Units, latency and late tuples of the first stream, over time."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    units, latency, late = figure.subplots(1, 3)
    for name, each in found.items():
        if name == "static":
            continue
        course, colour = each.first, _COLOURS[name]
        total = np.sum(list(course.units.values()), axis=0)
        wide = 2.0 if name == OURS else 1.2
        units.step(course.times, total, where="pre", color=colour, label=name, linewidth=wide)
        order = np.argsort(course.done, kind="stable")
        done, seconds = course.done[order], course.latency[order]
        ticks = (done // COSTS.tick).astype(np.int64)
        counts = np.maximum(np.bincount(ticks), 1)
        means = np.bincount(ticks, seconds) / counts
        latency.plot(np.arange(len(means)) * COSTS.tick, means, color=colour, linewidth=wide)
        share = 100 * np.cumsum(seconds > BOUND) / len(done)
        late.plot(done[::200], share[::200], color=colour, linewidth=wide)
    latency.axhline(BOUND, color="#6b757c", linestyle=":", linewidth=1)
    latency.set_yscale("symlog", linthresh=1)
    for axes, title, label in (
        (units, "Units of all operators", "units"),
        (latency, "Latency of tuples as they are done", "s, mean of 10 s"),
        (late, "Tuples later than 30 s", "% of all, cumulated"),
    ):
        _tidy(axes, title, label)
    figure.suptitle(f"{TOPOLOGY_TITLES[case.topology]}, {case.stream} stream", x=0.01, ha="left", fontsize=10)
    handles, labels = units.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    return figure


def _tidy(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.set_xlabel("s")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)


def _experiment(case: Case) -> Experiment:
    def run(*, quick: bool, seed: int) -> Outcome:
        return _run(case, quick=quick, seed=seed)

    return Experiment(f"001/{case.figure}", f"scaling policies, {case.topology}, {case.stream}", run)


CASES: Sequence[Case] = (
    Case(12, "insensitive", "progressive"),
    Case(13, "insensitive", "erratic"),
    Case(14, "sensitive", "progressive"),
    Case(15, "sensitive", "erratic"),
    Case(16, "complex", "progressive"),
    Case(17, "complex", "erratic"),
)

ELASTIC_SCALING: tuple[Experiment, ...] = tuple(_experiment(each) for each in CASES)
