"""What the demo produces: its folder, the results of the traffic query in it, and the totals of the run."""

import heapq
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from penstock.errors import BadSink
from penstock.runtime.progress import EpochProgress

__all__ = [
    "Area",
    "DemoFolder",
    "Tally",
    "busiest",
    "fresh_folder",
    "history",
    "last_hour",
    "newest_files",
    "result_files",
]

MARKER = ".penstock-demo"
LAST_HOUR = """
SELECT window_end, area, reports, mean, top, jam FROM results
WHERE window_end = (SELECT max(window_end) FROM results) ORDER BY reports DESC, area
"""
BUSIEST = "SELECT area FROM results GROUP BY area ORDER BY sum(reports) DESC, area LIMIT ?"
HISTORY = "SELECT window_end, area, reports, mean, top, jam FROM results WHERE area = ? ORDER BY window_end"


@dataclass(frozen=True)
class DemoFolder:
    """Where the demo keeps its feed, its checkpoint, its results and its chart."""

    path: Path

    @property
    def feed(self) -> Path:
        """The folder that the city writes its reports to."""
        return self.path / "feed"

    @property
    def checkpoint(self) -> Path:
        """The folder of the run's state."""
        return self.path / "state"

    @property
    def results(self) -> Path:
        """The folder of the Parquet results."""
        return self.path / "results"

    @property
    def late(self) -> Path:
        """The folder of the late tuples."""
        return self.path / "late"

    @property
    def rejects(self) -> Path:
        """The folder of the malformed tuples."""
        return self.path / "rejects"

    @property
    def chart(self) -> Path:
        """The file of the chart."""
        return self.path / "traffic.png"


def fresh_folder(path: Path) -> DemoFolder:
    """An empty folder for the demo; it deletes only what an earlier demo wrote, known by a marker file."""
    if path.exists() and not path.is_dir():
        raise BadSink(f"{path} is a file; give --output a folder that is new or from an earlier demo.")
    if path.exists() and any(path.iterdir()):
        if not (path / MARKER).is_file():
            raise BadSink(
                f"{path} holds files that the demo did not write, and the demo empties its folder; "
                "give --output a folder that is new or from an earlier demo."
            )
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)
    (path / MARKER).touch()
    return DemoFolder(path)


@dataclass(frozen=True)
class Area:
    """One tile of the city in the hour that ends at `end`; speeds are in km/h."""

    end: datetime
    area: str
    reports: int
    mean: float
    top: float
    jam: bool


def result_files(folder: Path) -> list[Path]:
    """The files in a folder of results; names that begin with _ or a dot are still being written."""
    found = folder.rglob("*.parquet")
    return sorted(
        path for path in found if not any(part[0] in "_." for part in path.relative_to(folder).parts)
    )


def newest_files(folder: Path, count: int) -> list[Path]:
    """The files written last, which hold the latest windows."""
    return heapq.nlargest(count, result_files(folder), key=lambda path: path.stat().st_mtime_ns)


def last_hour(files: Sequence[Path]) -> list[Area]:
    """Every area in the last window that the files hold, the busiest first."""
    return [Area(*row) for row in _rows(files, LAST_HOUR)]


def busiest(files: Sequence[Path], limit: int) -> list[str]:
    """The areas with the most reports over all windows."""
    return [area for (area,) in _rows(files, BUSIEST, limit)]


def history(files: Sequence[Path], area: str) -> list[Area]:
    """One area, window after window."""
    return [Area(*row) for row in _rows(files, HISTORY, area)]


def _rows(files: Sequence[Path], sql: str, *values: object) -> list[tuple[Any, ...]]:
    if not files:
        return []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.read_parquet([str(file) for file in files]).create_view("results")
        return connection.execute(sql, values).fetchall()


@dataclass
class Tally:
    """Totals over all epochs of a run, which itself remembers only the latest; rates cover time in epochs."""

    epoch: int = -1
    rows: int = 0
    results: int = 0
    late: int = 0
    rejected: int = 0
    seconds: float = 0.0
    frontier: datetime | None = None

    @property
    def rows_per_second(self) -> float:
        """Mean rate over all epochs."""
        return self.rows / self.seconds if self.seconds else 0.0

    def take(self, progress: Iterable[EpochProgress]) -> list[EpochProgress]:
        """Add the epochs that have not been counted yet, and return them."""
        fresh = [each for each in progress if each.epoch > self.epoch]
        for each in fresh:
            self.epoch = each.epoch
            self.rows += each.rows
            self.results += each.results
            self.late += each.late
            self.rejected += each.rejected
            self.seconds += each.seconds
            self.frontier = each.frontier or self.frontier
        return fresh
