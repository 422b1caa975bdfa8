"""Batch engines, which know the whole input: what the rows cost without epochs, state and commits.

Each runs one query over parquet files into a snappy parquet file. A window is written as Spark's `window()`
evaluates it, with a copy of a row for each of its windows. A run has a process of its own, since the one that
measures holds a JVM: one query over a few files first, then the one that counts. This module loads neither
Spark nor Penstock, so that they do not count as memory of these engines. Polars is used where there is one.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import duckdb

from penstock_lab.bench.cost import Cost, cost_here

__all__ = [
    "cost_alone",
    "duckdb_filter",
    "duckdb_join",
    "duckdb_windows",
    "has_polars",
    "polars_filter",
    "polars_windows",
    "run_alone",
]

_SECOND_US = 1_000_000


def cost_alone(warm_up: Callable[[], None], work: Callable[[], None]) -> Cost:
    """What some work takes in a fresh process, after other work that does not count."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_second, warm_up, work).result()


def run_alone(work: Callable[[], None]) -> None:
    """Do some work in a fresh process, so that this one keeps none of its memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(work).result()


def _second(warm_up: Callable[[], None], work: Callable[[], None]) -> Cost:
    warm_up()
    return cost_here(work)


def duckdb_filter(source: Path, output: Path, condition: str, scaled: str) -> Callable[[], None]:
    """Rows that fulfil a condition, with a computed column."""
    return _duckdb(output, f"SELECT time, key, {scaled} AS scaled FROM {_files(source)} WHERE {condition}")


def duckdb_windows(source: Path, output: Path, size_s: int, slide_s: int) -> Callable[[], None]:
    """Count, mean and maximum for each window and key."""
    slide = slide_s * _SECOND_US
    query = f"""
        SELECT make_timestamptz(start) AS window_start,
               make_timestamptz(start + {size_s * _SECOND_US}) AS window_end,
               key, count(*) AS reports, avg(value) AS mean, max(value) AS top
        FROM (
            SELECT (epoch_us(time) // {slide} - copy) * {slide} AS start, key, value
            FROM {_files(source)}, range({_copies(size_s, slide_s)}) AS copies(copy)
        )
        GROUP BY start, key
    """
    return _duckdb(output, query)


def duckdb_join(  # noqa: PLR0913, PLR0917 -- a join in full
    north: Path, south: Path, output: Path, how: Literal["inner", "left"], within_s: int, metres: str
) -> Callable[[], None]:
    """Pairs of calls of one phone within a time, and their distance, an expression over `l` and `r`."""
    query = f"""
        SELECT least(l.time, r.time) AS time, l.caller, l.time AS sent_north, r.time AS sent_south,
               {metres} AS metres
        FROM {_files(north)} AS l {how} JOIN {_files(south)} AS r
        ON l.caller = r.caller AND abs(epoch_us(l.time) - epoch_us(r.time)) <= {within_s * _SECOND_US}
    """
    return _duckdb(output, query)


def _duckdb(output: Path, query: str) -> Callable[[], None]:
    return partial(_run_duckdb, output, query)


def _run_duckdb(output: Path, query: str) -> None:
    output.mkdir(parents=True)
    with duckdb.connect() as database:
        database.execute("SET preserve_insertion_order = false")
        target = output / "all.parquet"
        database.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION snappy)")


def has_polars() -> bool:
    """Whether Polars is installed."""
    return find_spec("polars") is not None


def polars_filter(source: Path, output: Path, condition: str, scaled: str) -> Callable[[], None]:
    """As `duckdb_filter`."""
    return partial(_run_polars_filter, source, output, condition, scaled)


def _run_polars_filter(source: Path, output: Path, condition: str, scaled: str) -> None:
    pl = _polars()
    rows = pl.scan_parquet(source / "*.parquet").filter(pl.sql_expr(condition))
    _sink(rows.select("time", "key", pl.sql_expr(scaled).alias("scaled")), output)


def polars_windows(source: Path, output: Path, size_s: int, slide_s: int) -> Callable[[], None]:
    """As `duckdb_windows`; its own `group_by_dynamic` sorts first and took twice as long at 60 s by 10 s."""
    return partial(_run_polars_windows, source, output, size_s, slide_s)


def _run_polars_windows(source: Path, output: Path, size_s: int, slide_s: int) -> None:
    pl = _polars()
    copies = pl.LazyFrame({"copy": range(_copies(size_s, slide_s))})
    start = pl.col("time").dt.truncate(f"{slide_s}s") - pl.duration(seconds=pl.col("copy") * slide_s)
    value = pl.col("value")
    windows = (
        pl.scan_parquet(source / "*.parquet")
        .join(copies, how="cross")
        .group_by(start.alias("window_start"), "key")
        .agg(reports=pl.len(), mean=value.mean(), top=value.max())
        .with_columns(window_end=pl.col("window_start") + pl.duration(seconds=size_s))
    )
    _sink(windows, output)


def _sink(result: Any, output: Path) -> None:
    output.mkdir(parents=True)
    result.sink_parquet(output / "all.parquet", compression="snappy")


def _polars() -> Any:
    return import_module("polars")


def _copies(size_s: int, slide_s: int) -> int:
    """Windows that a row is in."""
    assert size_s % slide_s == 0, "a row would not be in the same number of windows at every moment"
    return size_s // slide_s


def _files(folder: Path) -> str:
    return f"read_parquet('{folder}/*.parquet')"
