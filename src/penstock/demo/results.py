"""What the traffic query delivered, read from its Parquet files with DuckDB."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

__all__ = ["Area", "busiest", "history", "last_hour", "newest_files", "result_files"]

LAST_HOUR = """
SELECT window_end, area, reports, mean, top, jam FROM results
WHERE window_end = (SELECT max(window_end) FROM results) ORDER BY reports DESC, area
"""
BUSIEST = "SELECT area FROM results GROUP BY area ORDER BY sum(reports) DESC, area LIMIT ?"
HISTORY = "SELECT window_end, area, reports, mean, top, jam FROM results WHERE area = ? ORDER BY window_end"


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
