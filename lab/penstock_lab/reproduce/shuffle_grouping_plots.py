"""The figure of `penstock reproduce 001/osg`: completion over skew, makespan over epochs, a slow channel."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.routing import Costs

__all__ = ["draw_shuffle"]

_COLOURS = {
    "round robin": "#b5442e",
    "without synchronisation": "#d9a441",
    "shuffle grouping": "#1f5f8b",
    "shuffle grouping, with its start": "#9fc3dc",
    "shuffle grouping, fine sketch": "#5f9e5a",
    "full knowledge": "#6b757c",
    "greedy, full knowledge": "#6b757c",
    "longest first": "#6a4c93",
    "longest first, full knowledge": "#a58fc2",
}


def draw_shuffle(
    completions: Mapping[float, Mapping[str, float]],
    sizes: Mapping[int, Mapping[str, Costs]],
    slow: Mapping[str, Costs],
) -> Figure:
    """One figure with three panels; lower is better in each."""
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    skews, epochs, times = figure.subplots(1, 3)
    _lines(skews, completions)
    skews.set_xlabel("skew of values (Zipf)")
    skews.set_ylabel("ms, mean completion")
    _tidy(skews, "Completion, 5 channels 95 % busy")
    excess = {
        size: {name: 100 * float(each.mean() - 1) for name, each in ratios.items()}
        for size, ratios in sizes.items()
    }
    _lines(epochs, excess)
    epochs.set_xscale("log")
    epochs.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
    epochs.minorticks_off()
    epochs.set_yscale("symlog", linthresh=0.1)
    epochs.set_ylim(0, 400)  # room for the legend
    epochs.set_yticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
    epochs.set_xlabel("tuples in an epoch")
    epochs.set_ylabel("% above the least possible makespan")
    _tidy(epochs, "Makespan of an epoch, Zipf 1.5")
    for name, taken in slow.items():
        parts = np.array_split(taken, 64)
        shares = 100 * (np.arange(64) + 0.5) / 64
        times.plot(shares, [part.mean() for part in parts], color=_COLOURS[name], label=name)
    times.axvline(50, color="#c9ced2", linewidth=1)
    times.set_xlabel("% of the stream")
    times.set_ylabel("s, completion")
    times.set_ylim(bottom=0)
    _tidy(times, "Channel 0 slows to half at 50 %")
    return figure


def _lines(
    axes: Axes, curves: Mapping[float, Mapping[str, float]] | Mapping[int, Mapping[str, float]]
) -> None:
    places = list(curves)
    for name in next(iter(curves.values())):
        values = [means[name] for means in curves.values()]
        axes.plot(places, values, marker="o", markersize=4, color=_COLOURS[name], label=name)
    axes.set_ylim(bottom=0)


def _tidy(axes: Axes, title: str) -> None:
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
