"""The figures of `penstock reproduce 002`: curves over load, shares of cost, instances per node."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from penstock_lab.simulate import Observed

__all__ = ["draw_comparisons", "draw_instances", "draw_loads", "draw_shares"]

_Curves = Mapping[str, Sequence[Observed]]

_COLOURS = ("#8a949b", "#d9a441", "#b5442e", "#1f5f8b", "#5f9e5a")


def draw_loads(curves: _Curves, title: str, paper: Iterable[float] = ()) -> Figure:
    """Tuples/s, CPU and queue over the load, with the published rates at saturation."""
    figure, axes = _draw(curves, lambda seen: seen.throughput)
    _tidy(axes, title, "load, tuples/s", "tuples/s")
    rates = list(paper)
    if rates:
        axes.plot(rates, rates, "o", markersize=9, markerfacecolor="none", color="#30383d", label="published")
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_comparisons(curves: _Curves, title: str) -> Figure:
    """Comparisons/s, CPU and queue over the load."""
    figure, axes = _draw(curves, lambda seen: seen.comparisons)
    _tidy(axes, title, "load, tuples/s", "comparisons/s")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _draw(curves: _Curves, done: Callable[[Observed], float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    throughput, cpu, queue = figure.subplots(1, 3)
    for colour, (name, seen) in zip(_COLOURS, curves.items(), strict=False):
        rates = [each.rate for each in seen]
        for axes, values in (
            (throughput, [done(each) for each in seen]),
            (cpu, [100 * each.cpu for each in seen]),
            (queue, [each.queue + 1 for each in seen]),
        ):
            axes.plot(rates, values, marker="o", markersize=3, color=colour, label=name)
    queue.set_yscale("log")
    _tidy(cpu, "CPU", "load, tuples/s", "% of all processors")
    _tidy(queue, "Queue", "load, tuples/s", "tuples a channel, plus one")
    for axes in (throughput, cpu):
        axes.set_ylim(bottom=0)
    throughput.yaxis.set_major_formatter(FuncFormatter(_short))
    for axes in (throughput, cpu, queue):
        axes.xaxis.set_major_formatter(FuncFormatter(_short))
    return figure, throughput


def draw_shares(shares: Mapping[str, Observed], title: str) -> Figure:
    """What processors spend their time on, as bars that add up to all of it."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(shares)
    parts = {
        "operators": [each.operators for each in shares.values()],
        "communication": [each.communication for each in shares.values()],
        "idle": [each.idle for each in shares.values()],
    }
    for colour, (name, values) in zip(("#1f5f8b", "#d9a441", "#dfe4e8"), parts.items(), strict=True):
        widths = [100 * value for value in values]
        axes.barh(list(shares), widths, left=left, color=colour, label=name)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.35))
    _tidy(axes, title, "% of all processors", "")
    axes.grid(visible=False)
    return figure


def draw_instances(curves: Mapping[int, Mapping[int, float]], title: str) -> Figure:
    """Throughput over nodes, a line for each number of instances a node."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for colour, (instances, rates) in zip(_COLOURS, curves.items(), strict=False):
        label = f"{instances} a node"
        axes.plot(list(rates), list(rates.values()), marker="o", markersize=3, color=colour, label=label)
    axes.set_xticks(list(curves[1]))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    _tidy(axes, title, "quad-core nodes", "tuples/s")
    return figure


def _short(value: float, _: object) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " K")):
        if abs(value) >= size:
            return f"{value / size:,.3g}{letter}"
    return f"{value:,.3g}"


def _tidy(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
