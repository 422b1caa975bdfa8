"""Time at its edges: tuples from the future, clocks that step, streams that fall silent."""

import datetime as dt
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from oracle import fetched
from penstock.errors import RunError

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def readings(*epochs, **options):
    rows = [[{"time": time, "k": k} for time, k in epoch] for epoch in epochs]
    return ps.stream("t", "time timestamp, k string", "time", source=ps.rows(rows), **options)


def counted(stream):
    return stream.group_by("k").window("10 seconds").agg(n=ps.count())


def wall(monkeypatch, *times):
    """A wall clock that shows these times, one for each epoch, and then the last again."""
    left = list(times)

    def shown():
        return (left.pop(0) if len(left) > 1 else left[0]).timestamp()

    monkeypatch.setattr("penstock.runtime.engine.time", SimpleNamespace(time=shown))


def rows_of(sink):
    return sorted((row["k"], row["n"]) for row in sink.table().to_pylist())


@pytest.mark.parametrize("steps", [counted, lambda stream: counted(stream.where("k <> 'x'"))])
def test_a_tuple_from_the_far_future_is_set_aside(steps, tmp_path):
    """Defect 21: one tuple from the year 2100 moved the frontier there for good."""
    far = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    stream = readings([(at(1), "a"), (far, "b")], [(at(2), "a")], [(at(20), "c")])
    sink = ps.memory()
    run = steps(stream).start(sink, checkpoint=tmp_path)
    run.wait()
    assert rows_of(sink) == [("a", 2), ("c", 1)]
    assert (run.counts.rows, run.counts.late, run.counts.rejected) == (4, 0, 1)
    ((reason, record),) = fetched(f"SELECT reason, record FROM '{tmp_path}/rejects/*.parquet'")
    assert reason.startswith("column time: 2100-01-01 00:00:00 is more than 1 hour ahead of the clock (20")
    assert '"k":"b"' in record


def test_the_limit_can_be_changed_and_turned_off(monkeypatch, tmp_path):
    wall(monkeypatch, START)
    for ahead, rejected in ((None, 0), ("10 seconds", 1), ("20 seconds", 0)):
        run = counted(readings([(at(15), "a")], ahead=ahead)).start(ps.memory())
        run.wait()
        assert run.counts.rejected == rejected


def test_a_replay_judges_by_the_clock_of_the_first_attempt(monkeypatch, tmp_path):
    """Defect 21: the plan holds the time, so a later attempt sets the same tuples aside."""
    told = []

    def deliver(table, number):
        told.append(table.num_rows)
        if len(told) == 1:
            raise OSError("no space left")

    stream = readings([(at(1), "a"), (at(90_000), "b")])
    wall(monkeypatch, START)
    with pytest.raises(RunError, match="no space left"):
        stream.start(ps.each(deliver), checkpoint=tmp_path).wait()
    wall(monkeypatch, at(200_000))
    run = stream.start(ps.each(deliver), checkpoint=tmp_path)
    run.wait()
    assert told == [1, 1]
    assert (run.counts.rows, run.counts.rejected) == (2, 1)


def test_a_step_of_the_clock_makes_no_stream_idle(monkeypatch):
    """Defect 22: `idle` was wall time between epochs."""
    wall(monkeypatch, *(at(3600 * hours) for hours in range(9)))
    stream = readings(
        [(at(0), "a"), (at(0), "b")],
        [(at(100), "a")],
        [(at(101), "a")],
        [(at(50), "b")],
        key="k",
        idle="1 minute",
    )
    sink = ps.memory()
    run = counted(stream).start(sink)
    run.wait()
    assert run.counts.late == 0
    assert rows_of(sink) == [("a", 1), ("a", 2), ("b", 1), ("b", 1)]


def test_silence_closes_the_last_window(tmp_path):
    """Defect 30: the last windows of a source that fell silent never closed. A replay has the same ticks."""
    (tmp_path / "in").mkdir()
    table = pa.table(
        {"time": [at(0.5)], "k": ["a"]}, pa.schema([("time", pa.timestamp("us", "UTC")), ("k", "string")])
    )
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    source = ps.files(tmp_path / "in", live=True)
    stream = ps.stream("t", "time timestamp, k string", "time", source=source, idle="1 second")
    query = stream.group_by("k").window("1 second").agg(n=ps.count())
    told = []

    def deliver(table, number):
        if table.num_rows:
            told.append((number, table.to_pylist()))
            if len(told) == 1:
                raise OSError("no space left")

    with pytest.raises(RunError, match="no space left"):
        query.start(ps.each(deliver), checkpoint=tmp_path / "state").wait(120)
    with query.start(ps.each(deliver), checkpoint=tmp_path / "state") as run:
        while run.running and len(told) < 2:
            run.wait(0.1)
        assert run.counts.rows == 1
    assert told[0] == told[1]
    assert told[0][1] == [{"k": "a", "n": 1, "window_start": at(0), "window_end": at(1)}]
