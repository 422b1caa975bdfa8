"""One live line on the terminal while a run goes on."""

import sys
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.runtime.progress import EpochProgress

__all__ = ["LiveLine", "line"]


class _Progressing(Protocol):
    @property
    def progress(self) -> list[EpochProgress]: ...


class LiveLine:
    """Shows the newest epoch of a run, ten times a second at most."""

    def __init__(self, run: _Progressing, *, shown: bool | None) -> None:
        self._run = run
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._shown:
            console = Console(stderr=True)
            self._live = Live(
                get_renderable=self._text, console=console, refresh_per_second=10, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _text(self) -> Text:
        epochs = self._run.progress[-1:]
        return line(epochs[0]) if epochs else Text("waiting for the first epoch …", style="dim")


def line(epoch: EpochProgress) -> Text:
    """An epoch in one line."""
    frontier = f"{epoch.frontier:%Y-%m-%d %H:%M:%S}" if epoch.frontier else "none yet"
    return Text(
        f"epoch {epoch.epoch}  {epoch.rows_per_second:,.0f} rows/s  {epoch.seconds:.2f} s  "
        f"frontier {frontier}  "
        f"state {epoch.state_rows:,} rows, {epoch.state_bytes / 1e6:,.1f} MB  results {epoch.results:,}  "
        f"late {epoch.late:,}  rejected {epoch.rejected:,}"
    )
