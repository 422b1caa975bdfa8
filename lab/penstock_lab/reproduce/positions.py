"""Figure 2 of [000]: position reports over tiles of a city and over the hours, from a trace that is given."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock_lab.reports import Check
from penstock_lab.reproduce.experiment import Data, Experiment, Outcome
from penstock_lab.reproduce.rows import row
from penstock_lab.workloads import read_positions

__all__ = ["POSITIONS", "zipf_exponent"]

EDGES = (100, 1000)  # metres
SOURCE = "[000] Fig. 2, §1.1"

Counts = NDArray[np.int64]


def zipf_exponent(counts: Counts) -> tuple[float, float]:
    """The slope of log count over log rank, counted down, and how much of the variance the line explains.

    Ranks are taken at equal steps of their logarithm, else the many rare tiles would decide alone.

    >>> slope, explained = zipf_exponent(np.array([1000, 500, 333, 250, 200, 167, 143, 125, 111, 100]))
    >>> round(slope, 2), round(explained, 2)
    (1.0, 1.0)
    """
    ranked = np.sort(counts)[::-1]
    places = np.unique(np.geomspace(1, len(ranked), 40).astype(np.int64))
    x, y = np.log(places), np.log(ranked[places - 1])
    slope, start = np.polyfit(x, y, 1)
    rest = y - (start + slope * x)
    return -float(slope), 1 - float(rest.var() / y.var())


def run_on(data: Data, *, quick: bool, seed: int) -> Outcome:  # noqa: ARG001 -- the protocol's
    """Both halves of the figure."""
    assert data.trace is not None
    positions = read_positions(data.trace)
    counts = {edge: np.bincount(positions.tiles(edge)).astype(np.int64) for edge in EDGES}
    hours = np.bincount(positions.seconds // 3600).astype(np.int64)
    rows, checks = [], []
    for edge, each in counts.items():
        slope, explained = zipf_exponent(each)
        setting = f"tiles of {edge} m"
        ranked = np.sort(each)[::-1]
        share = float(ranked[: max(1, len(each) // 10)].sum() / each.sum())
        figures = {
            "tiles": len(each),
            "part of the reports in a tenth of the tiles": round(share, 3),
            "exponent of count over rank": round(slope, 3),
            "variance that the line explains": round(explained, 3),
        }
        rows += [row("2a", "trace", setting, name, value, None, "") for name, value in figures.items()]
        checks.append(
            Check(f"000/2a a tenth of the {edge} m tiles: reports", round(share, 3), SOURCE, floor=0.3)
        )
    seen = hours[hours > 0]
    ratio = float(seen.max() / np.median(seen))
    rows += [
        row("2b", "trace", "hours with reports", "busiest over median", round(ratio, 3), None, ""),
        row(
            "2b",
            "trace",
            "hours with reports",
            "busiest over least",
            round(seen.max() / seen.min(), 1),
            None,
            "",
        ),
        row("2b", "trace", "all", "hours without a report", int(np.count_nonzero(hours == 0)), None, ""),
    ]
    checks.append(Check("000/2b busiest hour over the median hour", round(ratio, 3), SOURCE, floor=2.0))
    return Outcome(tuple(rows), tuple(checks), {"000-fig-2": _draw(counts, hours)})


def _draw(counts: dict[int, Counts], hours: Counts) -> Figure:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (edge, each), colour in zip(counts.items(), ("#1f5f8b", "#c0562f"), strict=True):
        ranked = np.sort(each)[::-1]
        left.plot(np.arange(1, len(ranked) + 1), ranked, color=colour, label=f"tiles of {edge:,} m")
    left.set(xscale="log", yscale="log", xlabel="tile, by rank", ylabel="reports")
    left.set_title("a: reports over space", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8)
    right.bar(np.arange(len(hours)) + 0.5, hours, 0.9, color="#5a8bab")
    right.set(xlabel="hours since midnight of the first day, UTC", ylabel="reports an hour")
    right.set_xticks(range(0, len(hours) + 1, 6))
    right.set_title("b: reports over time", loc="left", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


POSITIONS = Experiment("000/2", "position reports over tiles and hours", run_on=run_on, needs="--trace")
