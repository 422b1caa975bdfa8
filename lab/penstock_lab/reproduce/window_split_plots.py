"""The figures of `penstock reproduce 004/split`: cost of the split, and throughput over nodes."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

__all__ = ["draw_scale_out", "draw_split"]

Curves = Mapping[str, Mapping[int, float]]

_COLOURS = {
    "panes": "#1f5f8b",
    "windows": "#b5442e",
    "batches of 2": "#d9a441",
    "batches of 5": "#a3a847",
    "batches of 10": "#5f9e5a",
    "batches of 33": "#3f8f86",
    "batches of 50": "#4a7fb0",
    "windows, one delivery a channel": "#6a4c93",
}
_PAPER_WINDOWS = {1: 5_000.0, 2: 800.0, 3: 1_200.0, 4: 1_600.0}


def draw_split(curves: Curves) -> Figure:
    """Throughput of the split over size/slide, and the cost of a tuple, which is linear in it."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    rate, cost = figure.subplots(1, 2)
    for name, rates in curves.items():
        overlaps, values = list(rates), list(rates.values())
        rate.plot(overlaps, [each / 1e6 for each in values], marker="o", label=name, color=_COLOURS[name])
        cost.plot(overlaps, [1e9 / each for each in values], marker="o", label=name, color=_COLOURS[name])
        cost.annotate(
            name, (overlaps[-1], 1e9 / values[-1]), xytext=(6, -3), textcoords="offset points", size=8
        )
    for axes in (rate, cost):
        axes.set_xlabel("size / slide")
        axes.set_ylim(bottom=0)
    cost.set_xlim(right=125)
    rate.set_ylabel("million tuples/s, one core")
    cost.set_ylabel("ns a tuple")
    rate.legend(frameon=False, fontsize=8)
    _tidy(rate, "Split throughput ([004] Fig. 6)")
    _tidy(cost, "Cost of the split: linear in the overlap, flat for panes")
    return figure


def draw_scale_out(curves: Curves) -> Figure:
    """Throughput over nodes: panes near linear, windows falling with the second node, batches between."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panes, others = figure.subplots(1, 2)
    for name, rates in curves.items():
        axes = panes if name == "panes" else others
        dashes = "--" if "delivery" in name else "-"
        axes.plot(
            list(rates),
            list(rates.values()),
            dashes,
            marker="o",
            markersize=4,
            label=name,
            color=_COLOURS[name],
        )
    nodes = list(curves["panes"])
    panes.plot(nodes, [32_000 * each for each in nodes], ":", color="#6b757c", label="paper: 32 K t/s a node")
    others.plot(
        list(_PAPER_WINDOWS), list(_PAPER_WINDOWS.values()), "o", markersize=9, markerfacecolor="none",
        color=_COLOURS["windows"], label="paper: windows",
    )  # fmt: skip
    for axes in (panes, others):
        axes.set_xlabel("nodes")
        axes.set_xticks(nodes)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("thousand tuples/s")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:,.0f}"))
        axes.legend(frameon=False, fontsize=8)
    _tidy(panes, "Panes ([004] Fig. 7a)")
    _tidy(others, "Windows and batches, size/slide = 100 (Figure 7b)")
    return figure


def _tidy(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
