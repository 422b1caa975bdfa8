"""The live view of a run: a panel that redraws itself on a terminal, plain lines anywhere else."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock.demo.results import Area, Tally
from penstock.runtime.progress import EpochProgress

__all__ = ["LineView", "PanelView", "Scene", "View", "line", "panel", "view"]

COLOURS = ("blue", "yellow", "green", "magenta", "cyan", "red")
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 64
RECENT = 8
NONE = "-"


@dataclass(frozen=True)
class Scene:
    """One moment of a run: the totals, the latest epochs, the city's clock and its busiest areas."""

    tally: Tally
    epochs: Sequence[EpochProgress]
    city_time: datetime
    areas: Sequence[Area] = field(default=())

    @property
    def rows_per_second(self) -> float:
        """The rate over the latest epochs."""
        recent = self.epochs[-RECENT:]
        seconds = sum(each.seconds for each in recent)
        return sum(each.rows for each in recent) / seconds if seconds else 0.0

    @property
    def behind(self) -> str:
        """How far the frontier is behind the city, in city time."""
        if self.tally.frontier is None:
            return NONE
        seconds = max((self.city_time - self.tally.frontier).total_seconds(), 0.0)
        return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def line(scene: Scene) -> str:
    """The scene in one line, for logs and pipes."""
    tally = scene.tally
    clock = "--:--" if tally.frontier is None else f"{tally.frontier:%H:%M}"
    return (
        f"city {clock}  epoch {max(tally.epoch, 0):>3}  {tally.rows:>10,} rows  "
        f"{scene.rows_per_second:>8,.0f} rows/s  {tally.results:>8,} results  "
        f"frontier {scene.behind} behind  {tally.late:,} late  {tally.rejected:,} rejected"
    )


def panel(scene: Scene) -> Panel:
    """The scene as one panel."""
    parts: list[RenderableType] = [_figures(scene)]
    if scene.epochs:
        parts += [Text(), _phases(scene.epochs[-1])]
    if scene.areas:
        parts += [Text(), _areas(scene.areas)]
    title = "[bold]Penstock[/] · a city's traffic, 60 minutes by 1 minute, live"
    return Panel(Group(*parts), title=title, title_align="left", border_style="blue", padding=(1, 2))


def _figures(scene: Scene) -> Table:
    tally, frontier = scene.tally, scene.tally.frontier
    latest = scene.epochs[-1] if scene.epochs else None
    grid = Table.grid(padding=(0, 3))
    for _ in range(3):
        grid.add_column(style="dim")
        grid.add_column(justify="right", style="bold")
    clock = NONE if frontier is None else f"{frontier:%H:%M:%S}"
    state = f"{latest.state_rows:,} rows" if latest else NONE
    stored = f"{latest.state_bytes / 1e6:.1f} MB" if latest else NONE
    epoch = f"{latest.epoch} ({latest.seconds:.2f} s)" if latest else NONE
    grid.add_row("city clock (frontier)", clock, "rows/s", f"{scene.rows_per_second:,.0f}", "epoch", epoch)
    grid.add_row("frontier behind city", scene.behind, "rows in", f"{tally.rows:,}", "state", state)
    grid.add_row("late", f"{tally.late:,}", "results out", f"{tally.results:,}", "", stored)
    grid.add_row("rejected", f"{tally.rejected:,}", "", _sparkline(scene.epochs), "", "")
    return grid


def _sparkline(epochs: Sequence[EpochProgress]) -> str:
    rates = [each.rows_per_second for each in epochs[-14:]]
    top = max(rates, default=0.0) or 1.0
    return "".join(BARS[round(rate / top * (len(BARS) - 1))] for rate in rates)


def _phases(epoch: EpochProgress) -> Text:
    """A bar of the epoch's time, with one colour for each phase, and its legend."""
    bar, legend = Text(), Text()
    for place, (phase, cells) in enumerate(_cells(epoch.phases).items()):
        if not cells:
            continue
        colour = COLOURS[place % len(COLOURS)]
        bar.append("█" * cells, style=colour)
        legend.append("■ ", style=colour)
        legend.append(f"{phase} {epoch.phases[phase]:.2f} s   ")
    return bar.append("\n").append_text(legend)


def _cells(phases: Mapping[str, float]) -> dict[str, int]:
    """Cells of the bar for each phase; rounding running sums keeps the bar's whole length."""
    whole = sum(phases.values()) or 1.0
    cells, before, drawn = {}, 0.0, 0
    for phase, seconds in phases.items():
        before += seconds
        cells[phase] = round(before / whole * WIDTH) - drawn
        drawn += cells[phase]
    return cells


def _areas(areas: Sequence[Area]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left")
    table.add_column(f"busiest areas, hour to {areas[0].end:%H:%M}")
    for heading in ("reports", "mean km/h", "top km/h"):
        table.add_column(heading, justify="right")
    table.add_column("")
    most = max(each.reports for each in areas)
    for each in areas:
        bar = Text("━" * round(24 * each.reports / most), style="blue")
        name = Text(each.area, style="bold red" if each.jam else "").append(
            "  queue ends here" if each.jam else ""
        )
        table.add_row(name, f"{each.reports:,}", f"{each.mean:.1f}", f"{each.top:.1f}", bar)
    return table


class View(Protocol):
    """Shows scene after scene, and leaves the terminal as it was."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """Show a scene in place of the previous one."""


class PanelView:
    """A panel on a terminal."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._live.stop()

    def show(self, scene: Scene) -> None:
        """Redraw the panel."""
        self._live.update(panel(scene))


class LineView:
    """A line every few seconds if there is anything new, for logs and pipes."""

    def __init__(self, console: Console, every: float = 5.0) -> None:
        self._console = console
        self._every = every
        self._due = 0.0
        self._shown_epoch = -1
        self._last: Scene | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        # The last scene always gets a line.
        self._print()

    def show(self, scene: Scene) -> None:
        """Print the scene if a line is due."""
        self._last = scene
        if time.monotonic() >= self._due:
            self._print()

    def _print(self) -> None:
        if self._last is None or self._last.tally.epoch == self._shown_epoch:
            return
        self._console.print(line(self._last), highlight=False, markup=False, soft_wrap=True)
        self._due = time.monotonic() + self._every
        self._shown_epoch = self._last.tally.epoch


def view(console: Console) -> View:
    """A panel on a terminal, else lines."""
    return PanelView(console) if console.is_terminal else LineView(console)
