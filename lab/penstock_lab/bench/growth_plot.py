"""The figure of `penstock bench growth`: throughput over overlap and keys, epoch time over epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

BLUE = "#1f5f8b"
GREY = "#6b757c"


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch took and left behind."""

    epoch: int
    seconds: float
    state_rows: int
    state_bytes: int


def draw(
    path: Path, overlaps: Mapping[int, float], keys: Mapping[int, float], records: Sequence[EpochRecord]
) -> None:
    """Write one figure with three panels; throughputs are rows/s by size/slide and by number of keys."""
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["overlap", "keys", "time"], ["overlap", "keys", "state"]]
    )
    _throughput(panels["overlap"], overlaps, "Overlap", "size / slide (slide 1 s)")
    _throughput(panels["keys"], keys, "Keys", "distinct keys (60 s by 10 s)")
    _epochs(panels["time"], panels["state"], records)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _throughput(axes: Axes, rates: Mapping[int, float], title: str, label: str) -> None:
    axes.plot(list(rates), list(rates.values()), color=BLUE, marker="o", linewidth=2)
    axes.set_xscale("log")
    axes.set_xticks(list(rates), [f"{at:,}" for at in rates])
    axes.minorticks_off()
    axes.set_ylim(0, 1.25 * max(rates.values(), default=1.0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:,.0f}"))
    for at, rate in rates.items():
        axes.annotate(
            f"{rate / 1000:,.0f}", (at, rate), xytext=(0, 8), textcoords="offset points", ha="center", size=9
        )
    axes.set_ylabel("thousand rows/s")
    axes.set_xlabel(label)
    _tidy(axes, title)


def _epochs(above: Axes, below: Axes, records: Sequence[EpochRecord]) -> None:
    numbers = [record.epoch for record in records]
    above.plot(numbers, [record.seconds for record in records], color=BLUE, linewidth=1.2)
    above.set_ylim(bottom=0)
    above.set_ylabel("seconds")
    above.tick_params(labelbottom=False)
    _tidy(above, "Time")
    below.plot(numbers, [record.state_rows / 1000 for record in records], color=GREY, linewidth=1.5)
    below.set_ylim(bottom=0)
    below.set_ylabel("thousand\nstate rows")
    below.set_xlabel("epoch (30 s by 1 s, 5,000 rows each)")
    _tidy(below, "")


def _tidy(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
