"""Line charts of the partitioning experiments: one panel a measure, one line an algorithm."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

__all__ = ["bars", "lines"]

_COLOURS = {
    "uniform": "#9a9a9a",
    "consistent": "#c98b2b",
    "scan": "#6aa84f",
    "redist": "#3d78b4",
    "readj": "#8e5ba6",
    "readjust": "#c9a3dc",
    "balanced": "#c0392b",
}

Series = Mapping[str, Sequence[float]]


def lines(
    title: str,
    axis: tuple[str, Sequence[float]],
    panels: Mapping[str, Series],
    *,
    log: tuple[str, ...] = (),
    limit: float | None = 1.0,
) -> Figure:
    """A figure with a panel for each measure over one axis; `log` names the panels, or "x", in log scale."""
    figure = Figure(figsize=(4.6 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title)
    label, points = axis
    for place, (measure, series) in enumerate(panels.items(), start=1):
        panel = figure.add_subplot(1, len(panels), place)
        for name, values in series.items():
            wide = 2.2 if name == "balanced" else 1.4
            panel.plot(
                points, values, marker="o", markersize=3, lw=wide, label=name, color=_COLOURS.get(name)
            )
        if limit is not None:
            panel.axhline(limit, color="black", lw=0.6)
        if "x" in log:
            panel.set_xscale("log")
        if measure in log:
            panel.set_yscale("log")
        panel.set_xlabel(label)
        panel.set_title(measure, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        if place == 1:
            panel.legend(fontsize=8, frameon=False)
    return figure


def bars(
    title: str, groups: Sequence[str], panels: Mapping[str, Series], *, log: tuple[str, ...] = ()
) -> Figure:
    """A figure with a panel for each measure: a group of bars for each setting, a bar for each algorithm."""
    figure = Figure(figsize=(4.6 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title)
    for place, (measure, series) in enumerate(panels.items(), start=1):
        panel = figure.add_subplot(1, len(panels), place)
        width = 0.8 / len(series)
        for at, (name, values) in enumerate(series.items()):
            left = [group + (at + 0.5) * width - 0.4 for group in range(len(groups))]
            panel.bar(left, values, width, label=name, color=_COLOURS.get(name))
        panel.axhline(1.0, color="black", lw=0.6)
        panel.set_xticks(range(len(groups)), groups)
        if measure in log:
            panel.set_yscale("log")
        panel.set_title(measure, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        if place == 1:
            # Below the panels, where no bar can lie behind it.
            figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=len(series))
    return figure
