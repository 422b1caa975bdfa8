"""The live view: a panel that redraws itself on a terminal, plain lines anywhere else."""

import time
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from penstock.demo.panel import Scene, line, panel

__all__ = ["LineView", "PanelView", "View", "view"]


class View(Protocol):
    """Shows scene after scene, and leaves the terminal as it was."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """Show a scene in place of the one before it."""


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
    """A line every few seconds, if there is anything new, for logs and pipes."""

    def __init__(self, console: Console, every: float = 5.0) -> None:
        self._console = console
        self._every = every
        self._due = 0.0
        self._told = -1
        self._last: Scene | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        # The last scene is worth a line even when none is due.
        self._tell()

    def show(self, scene: Scene) -> None:
        """Print the scene if a line is due."""
        self._last = scene
        if time.monotonic() >= self._due:
            self._tell()

    def _tell(self) -> None:
        if self._last is None or self._last.tally.epoch == self._told:
            return
        self._console.print(line(self._last), highlight=False, markup=False, soft_wrap=True)
        self._due = time.monotonic() + self._every
        self._told = self._last.tally.epoch


def view(console: Console) -> View:
    """The panel on a terminal, else lines."""
    return PanelView(console) if console.is_terminal else LineView(console)
