"""A chart of the traffic results: the busiest areas over time, and the city at the end as a map."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from penstock.demo.results import Area, busiest, history, last_hour
from penstock.demo.traffic import TILE, tile_middle

__all__ = ["draw"]

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
JAM, INK, PAPER = "#D3003F", "#333333", "#FAFAF7"


def draw(files: Sequence[Path], target: Path) -> None:
    """Draw the chart of result files with at least one window, as a PNG."""
    figure = Figure(figsize=(13, 6.8), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.15), wspace=0.04)
    reports = figure.add_subplot(grid[0, 0])
    speed = figure.add_subplot(grid[1, 0], sharex=reports)
    _series(reports, speed, [history(files, area) for area in busiest(files, len(COLOURS))])
    _map(figure.add_subplot(grid[:, 1]), last_hour(files))
    FigureCanvasAgg(figure).print_png(target)


def _series(reports: Axes, speed: Axes, areas: list[list[Area]]) -> None:
    for colour, windows in zip(COLOURS, areas, strict=False):
        time = np.array([each.end.replace(tzinfo=None) for each in windows], "datetime64[s]")
        name = windows[0].area
        reports.plot(time, [each.reports for each in windows], color=colour, label=name, linewidth=1.8)
        speed.plot(time, [each.mean for each in windows], color=colour, linewidth=1.8)
    _entitle(reports, "Reports in the last hour, five busiest areas")
    _entitle(speed, "Mean speed in the last hour, km/h")
    reports.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    reports.set_ylim(bottom=0)
    speed.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    speed.set_xlabel("city time (end of the window, UTC)", color=INK)
    for axes in (reports, speed):
        _plain(axes)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    reports.legend(title="area", frameon=False, fontsize=8, title_fontsize=8)


def _map(axes: Axes, areas: list[Area]) -> None:
    lon, lat = np.array([tile_middle(each.area) for each in areas]).T
    mean = [each.mean for each in areas]
    size = [6 + 34 * min(math.sqrt(each.reports / 400), 1.5) for each in areas]
    dots = axes.scatter(lon, lat, s=size, c=mean, cmap="viridis", marker="s", vmin=15, vmax=85)
    jam = np.array([each.jam for each in areas], bool)
    axes.scatter(lon[jam], lat[jam], s=110, c="none", edgecolors=JAM, linewidths=1.8, label="end of a queue")
    axes.legend(loc="lower right", frameon=False)
    bar = axes.figure.colorbar(dots, ax=axes, location="bottom", shrink=0.6, aspect=40, pad=0.01)
    bar.set_label("mean speed, km/h", color=INK)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
    _entitle(
        axes, f"Mean speed per {TILE} m tile in the hour to {areas[0].end:%H:%M}, larger with more reports"
    )
    _plain(axes)
    _geography(axes, float(lat.mean()))


def _geography(axes: Axes, latitude: float) -> None:
    axes.set_facecolor(PAPER)
    # A degree of longitude is shorter than one of latitude by the cosine of the latitude.
    axes.set_aspect(1 / math.cos(math.radians(latitude)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.05))
    axes.xaxis.set_major_formatter("{x:.2f}° E")
    axes.yaxis.set_major_formatter("{x:.2f}° N")


def _entitle(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#BBBBBB")
    axes.tick_params(colors=INK, labelsize=8)
