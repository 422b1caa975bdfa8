"""The demo from start to end: feed the reports of a city, run the traffic query, show the results."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console

import penstock as ps
from penstock.demo.city import City
from penstock.demo.feed import CityFeed
from penstock.demo.panel import Scene, View, view
from penstock.demo.results import (
    Area,
    DemoFolder,
    Tally,
    fresh_folder,
    last_hour,
    newest_files,
    result_files,
)
from penstock.demo.summary import conclude
from penstock.demo.traffic import traffic
from penstock.extras import extra

__all__ = ["OUTPUT", "run_demo"]

OUTPUT = Path("demo-output")
MINUTES = 240
SECONDS = 40.0
VEHICLES = 12_000
TICK = 0.25
AREAS_EVERY = 2.0
SHOWN_AREAS = 8
# More than the files of one epoch, so that the last window is complete.
NEWEST = 16


def run_demo(
    output: Path = OUTPUT,
    *,
    minutes: int = MINUTES,
    seed: int = 7,
    forever: bool = False,
    console: Console | None = None,
) -> None:
    """Run the demo for the given minutes of city time but at most 40 seconds, or `forever` until Ctrl-C."""
    # At the start, so that nobody waits for a minute to learn that the chart cannot be drawn.
    with extra("demo", "matplotlib", "the chart of penstock demo"):
        from penstock.demo.chart import draw  # noqa: PLC0415 -- an extra of the package

    console = console or Console()
    folder = fresh_folder(output)
    city = City(seed, VEHICLES)
    # An endless feed deletes old files; a feed that ends keeps all of them.
    feed = (
        CityFeed(city, folder.feed) if forever else CityFeed(city, folder.feed, minutes=minutes, keep=minutes)
    )
    console.print("Starting Spark. The city wakes at 06:00; a minute there takes 0.15 seconds here.")
    folder.feed.mkdir()
    run = traffic(folder.feed).start(
        sink=ps.parquet(folder.results),
        checkpoint=folder.checkpoint,
        late=ps.parquet(folder.late),
        rejects=ps.parquet(folder.rejects),
        name="traffic",
    )
    watch = DemoWatch(run, feed, folder, seconds=math.inf if forever else SECONDS)
    try:
        feed.start()
        with _plain_interrupt(), view(console) as shown:
            watch.until_done(shown)
    except KeyboardInterrupt:
        console.print("Stopping.")
    finally:
        feed.stop()
        run.stop()
    watch.tally.take(run.progress)
    files = result_files(folder.results)
    areas = last_hour(files)
    if areas:
        draw(files, folder.chart)
    conclude(console, watch.tally, areas, folder)


@contextmanager
def _plain_interrupt() -> Iterator[None]:
    """Ctrl-C only raises KeyboardInterrupt; the handler of PySpark would fail the running epoch."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class DemoWatch:
    """Shows the run a few times a second until the feed has ended and the frontier has reached its end.

    If the machine is too slow for the whole feed, the feed ends after `seconds`.
    """

    def __init__(self, run: ps.Run, feed: CityFeed, folder: DemoFolder, seconds: float) -> None:
        self.tally = Tally()
        self._run = run
        self._feed = feed
        self._folder = folder
        self._end = time.monotonic() + seconds
        self._areas: list[Area] = []
        self._areas_due = 0.0

    def until_done(self, shown: View) -> None:
        """Show scene after scene; raises what the run or the feed failed with."""
        while not self._done():
            self._look(shown)
            time.sleep(TICK)
        self._areas_due = 0.0
        self._look(shown)

    def _look(self, shown: View) -> None:
        if not self._run.running:
            self._run.wait()
        self.tally.take(self._run.progress)
        self._feed.release(self._minutes_read())
        shown.show(Scene(self.tally, self._run.progress, self._city_time(), self._busiest()))

    def _done(self) -> bool:
        if time.monotonic() >= self._end:
            self._feed.stop()
        # The last file holds the last minute, and the frontier is 5 seconds behind the newest report.
        return self._feed.finished and self._minutes_read() >= self._feed.written - 1

    def _minutes_read(self) -> int:
        if self.tally.frontier is None:
            return 0
        return (self.tally.frontier - self._feed.city.start) // timedelta(minutes=1)

    def _city_time(self) -> datetime:
        return self._feed.city.start + timedelta(minutes=self._feed.written)

    def _busiest(self) -> list[Area]:
        """The busiest areas, read only every two seconds because it costs a tenth of a second."""
        if time.monotonic() >= self._areas_due:
            self._areas = last_hour(newest_files(self._folder.results, NEWEST))[:SHOWN_AREAS]
            self._areas_due = time.monotonic() + AREAS_EVERY
        return self._areas
