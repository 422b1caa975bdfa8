"""Batch engines against a plain loop over the rows; Polars too, where it is installed."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock_lab.bench import batch_engines
from penstock_lab.bench.data import DataSet

ENGINES = ["duckdb", *(["polars"] if batch_engines.has_polars() else [])]
DATA = DataSet(rows=600, seconds=30, keys=5, seed=3, rows_per_file=250)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return DATA.write(tmp_path_factory.mktemp("batch"))


def rows(table):
    """Times as microseconds."""
    stamps = [
        name for name, kind in zip(table.column_names, table.schema.types, strict=True) if is_time(kind)
    ]
    for name in stamps:
        micros = pc.cast(table[name], pa.int64())
        table = table.set_column(table.column_names.index(name), name, micros)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def is_time(kind):
    return pa.types.is_timestamp(kind)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_filter_gives_the_rows_of_a_loop(engine, source, tmp_path):
    make = getattr(batch_engines, f"{engine}_filter")
    make(source, tmp_path / "out", "value < 64", "value * 1.5 + 1")()
    expected = [(time, key, value * 1.5 + 1) for time, key, value in rows(DATA.table()) if value < 64]
    assert len(expected) > 200
    assert rows(pq.read_table(tmp_path / "out")) == sorted(expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "slide"), [(6, 6), (6, 2)])
def test_windows_are_those_of_a_loop(engine, size, slide, source, tmp_path):
    make = getattr(batch_engines, f"{engine}_windows")
    make(source, tmp_path / "out", size, slide)()
    found = defaultdict(list)
    for time, key, value in rows(DATA.table()):
        last = time // (slide * 1_000_000) * slide * 1_000_000
        for copy in range(size // slide):
            start = last - copy * slide * 1_000_000
            found[start, start + size * 1_000_000, key].append(value)
    expected = {place: (len(each), sum(each) / len(each), max(each)) for place, each in found.items()}
    columns = ["window_start", "window_end", "key", "reports", "mean", "top"]
    got = {row[:3]: row[3:] for row in rows(pq.read_table(tmp_path / "out").select(columns))}
    assert got.keys() == expected.keys()
    for place, (count, mean, top) in expected.items():
        assert got[place] == (count, pytest.approx(mean, abs=1e-9), top)


def test_work_is_measured_in_a_process_of_its_own(source, tmp_path):
    warm = batch_engines.duckdb_filter(source, tmp_path / "warm", "value < 64", "value")
    work = batch_engines.duckdb_filter(source, tmp_path / "out", "value < 64", "value")
    cost = batch_engines.cost_alone(warm, work)
    assert (tmp_path / "warm" / "all.parquet").exists()
    assert pq.read_table(tmp_path / "out").num_rows > 200
    assert cost.wall_s > 0
    assert cost.cpu_s > 0
