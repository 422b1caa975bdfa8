"""What a user sees of a run: sinks, late tuples and rejects, restarts, errors, stopping."""

import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from oracle import fetched
from penstock.errors import (
    BadSource,
    DamagedCheckpoint,
    ForeignCheckpoint,
    MissingSegment,
    SinkError,
    WrongType,
)

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def readings(*epochs, delay="0 seconds", **options):
    """A stream of (second, key, value) tuples, one list per epoch."""
    rows = [
        [{"time": at(s) if s is not None else None, "k": k, "v": v} for s, k, v in epoch] for epoch in epochs
    ]
    return ps.stream("t", "time timestamp, k string, v double", "time", delay, ps.rows(rows), **options)


def collected(query, **options):
    sink = ps.memory()
    query.start(sink, **options).wait()
    return sink.table().to_pylist()


def test_late_tuples_and_rejects_are_kept_and_counted(tmp_path):
    stream = readings([(1, "a", 1.0), (30, "a", 2.0)], [(2, "b", 3.0), (None, "c", 4.0), (31, "a", 5.0)])
    run = stream.group_by("k").window("10 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path)
    run.wait()
    assert (run.counts.rows, run.counts.late, run.counts.rejected) == (5, 1, 1)
    late = fetched(f"SELECT k, v FROM '{tmp_path}/late/*.parquet'")
    assert late == [("b", 3.0)]
    reason, record = fetched(f"SELECT reason, record FROM '{tmp_path}/rejects/*.parquet'")[0]
    assert reason == "column time is null; expected timestamp"
    assert json.loads(record) == {"k": "c", "v": 4.0}


def test_a_flag_in_parentheses_filters_where_spark_evaluates_it():
    """Spark takes `FROM t WHERE (flag)` for a table with the alias WHERE."""
    flags = readings([(1, "a", 1.0), (2, "b", 4.0), (3, "c", None)]).select("k", "v", flag="sin(v) > 0")
    assert collected(flags.where("(flag)").select("k", x="sin(v) > 0")) == [{"k": "a", "x": True}]
    assert [row["k"] for row in collected(flags.split("flag", "v < 9")[1].select("k", x="sin(v)"))] == ["b"]


def test_names_that_need_quotes_in_structs_and_in_first_rows():
    """Spark writes the types of such structs without the quotes."""
    columns = "time timestamp, `a key` string, `a pair` struct<`an x`:int,y:string>"
    rows = [[{"time": at(1), "a key": "k", "a pair": {"an x": 1, "y": "b"}}]]
    stream = ps.stream("t", columns, "time", "0 seconds", ps.rows(rows))
    (joined,) = collected(stream.join(stream, "a key", within="1 second"))
    assert joined["a pair"] == joined["a pair_right"] == {"an x": 1, "y": "b"}
    (first,) = collected(stream.window("10 seconds").top(1, by="`a key`"))
    assert (first["a key"], first["a pair"]) == ("k", {"an x": 1, "y": "b"})


def test_malformed_records_of_a_csv_file_are_rejected_with_their_text(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.csv").write_text("2024-01-01T00:00:01Z,a,1.5\n2024-01-01T00:00:02Z,a,oops\n")
    stream = ps.stream("t", "time timestamp, k string, v double", "time", source=ps.files(source, "csv"))
    run = stream.window("1 minute").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path / "state")
    run.wait()
    assert run.counts.rejected == 1
    (record,) = fetched(f"SELECT record FROM '{tmp_path}/state/rejects/*.parquet'")[0]
    assert "oops" in record


def test_the_slowest_stream_holds_the_frontier_until_it_is_idle(tmp_path):
    fast, slow = [(s, "fast", 1.0) for s in (0, 50)], [(0, "slow", 1.0)]
    stream = readings(fast + slow, key="k")
    run = stream.window("10 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path)
    run.wait()
    assert run.progress[0].frontier == at(0)


def test_a_restart_goes_on_from_the_checkpoint(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    stream = ps.stream("t", "time timestamp, n bigint", "time", source=ps.files(source, live=True))
    query = stream.window("10 seconds").agg(total=ps.sum("n"))
    found = []
    for number in range(3):
        table = pa.table(
            {
                "time": pa.array([at(number * 10 + s) for s in range(10)], pa.timestamp("us", "UTC")),
                "n": range(10),
            }
        )
        pa.parquet.write_table(table, source / f"{number}.parquet")
        sink = ps.memory()
        run = query.start(sink, checkpoint=tmp_path / "state")
        deadline = time.monotonic() + 120
        while run.counts.rows < (number + 1) * 10 and time.monotonic() < deadline:
            time.sleep(0.05)
        run.stop()
        found += sink.table().to_pylist()
    assert [row["total"] for row in found] == [45, 45]


def test_a_key_that_cannot_be_null_goes_together_with_what_segments_hold():
    # Spark says so of new rows and not of segments: the panes of 0 s come from one, of 5 s from the other.
    stream = readings([(0, None, 1.0), (1, "a", 2.0)], [(5, "a", 3.0)], [(30, "b", 4.0)])
    keyed = stream.group_by(key="coalesce(k, 'none')").window("10 seconds", slide="5 seconds")
    found = collected(keyed.agg(total=ps.sum("v")))
    whole = {row["key"]: row["total"] for row in found if row["window_start"] == START}
    assert whole == {"none": 1.0, "a": 5.0}


def test_a_checkpoint_of_another_query_is_refused(tmp_path):
    stream = readings([(1, "a", 1.0)])
    stream.window("10 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path).wait()
    with pytest.raises(ForeignCheckpoint, match="belongs to another query"):
        stream.window("20 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path)


def test_a_checkpoint_of_a_stream_with_other_columns_is_refused_with_the_difference(tmp_path):
    """Defect: the error showed two queries of one text."""
    first, second = (
        ps.stream("s", f"time timestamp, k string{more}", "time", source=ps.rows([]))
        for more in ("", ", z int")
    )
    first.window("10 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path).wait()
    with pytest.raises(
        ForeignCheckpoint, match=r"(?s)Stream s was declared as\n.*`k` string; .* `z` int; event"
    ):
        second.window("10 seconds").agg(n=ps.count()).start(ps.memory(), checkpoint=tmp_path)


def test_a_table_in_memory_has_columns_before_the_first_result():
    sink = ps.memory()
    stream = ps.stream("s", "time timestamp, k string", "time", source=ps.rows([]))
    stream.group_by("k").window("10 seconds").agg(n=ps.count()).start(sink).wait()
    assert sink.table().schema.names == ["window_start", "window_end", "k", "n"]
    assert sink.table().num_rows == 0


def test_a_truncated_manifest_is_named(tmp_path):
    query = readings([(1, "a", 1.0)]).window("10 seconds").agg(n=ps.count())
    query.start(ps.memory(), checkpoint=tmp_path).wait()
    newest = max((tmp_path / "manifests").iterdir())
    newest.write_bytes(newest.read_bytes()[:-20])
    with pytest.raises(DamagedCheckpoint, match=newest.name):
        query.start(ps.memory(), checkpoint=tmp_path)


def test_a_missing_segment_is_named_by_the_run(tmp_path):
    query = readings([(1, "a", 1.0)]).window("10 seconds").agg(n=ps.count())
    query.start(ps.memory(), checkpoint=tmp_path).wait()
    drained = max((tmp_path / "manifests").iterdir())
    drained.unlink()
    for segment in (tmp_path / "segments").iterdir():
        segment.unlink()
    with pytest.raises(MissingSegment, match="manifest names segment"):
        query.start(ps.memory(), checkpoint=tmp_path).wait()


@pytest.mark.parametrize("kind", ["files", "dataframe"])
def test_a_checkpoint_without_what_its_source_keeps_is_an_error_and_not_a_silent_loss(tmp_path, spark, kind):
    rows = pa.table({"time": pa.array([1, 2], pa.timestamp("s", tz="UTC")), "k": ["a", "b"]})
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    frame = spark.readStream.schema("time timestamp, k string").parquet(str(tmp_path / "in"))
    sources = {"files": ps.files(tmp_path / "in"), "dataframe": ps.dataframe(frame, bounded=True)}
    stream = ps.stream("t", "time timestamp, k string", "time", source=sources[kind])
    query = stream.window("10 seconds").agg(n=ps.count())
    query.start(ps.memory(), checkpoint=tmp_path / "state").wait()
    shutil.rmtree(tmp_path / "state" / "rows")
    with pytest.raises(DamagedCheckpoint, match=r"is missing.*; restore the whole checkpoint"):
        query.start(ps.memory(), checkpoint=tmp_path / "state").wait()


def test_parquet_files_can_be_read_by_others(tmp_path):
    query = readings([(1, "a", 1.0), (12, "b", 2.0)]).group_by("k").window("10 seconds").agg(n=ps.count())
    query.start(ps.parquet(tmp_path / "out"), checkpoint=tmp_path / "state").wait()
    rows = fetched(f"SELECT k, n FROM '{tmp_path}/out/*.parquet' ORDER BY k")
    assert rows == [("a", 1), ("b", 1)]


def test_delta_has_one_transaction_per_epoch_and_none_twice(tmp_path):
    stream = readings([(1, "a", 1.0), (12, "a", 1.0)], [(25, "a", 1.0)])
    query = stream.group_by("k").window("10 seconds").agg(n=ps.count())
    query.start(ps.delta(tmp_path / "table", app="test"), checkpoint=tmp_path / "state").wait()
    table = deltalake.DeltaTable(str(tmp_path / "table"))
    assert table.transaction_version("test") == 3
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [1, 1, 1]
    # A checkpoint that has forgotten its epochs would take its next results for delivered.
    for part in ("manifests", "plans", "segments"):
        shutil.rmtree(tmp_path / "state" / part)
    with pytest.raises(SinkError, match="up to epoch 1, but this run begins with epoch 0"):
        query.start(ps.delta(tmp_path / "table", app="test"), checkpoint=tmp_path / "state")


def test_two_checkpoints_of_one_query_both_deliver_to_a_delta_table(tmp_path):
    """Defect 2: under the query's name, the second checkpoint found its epochs delivered and lost them."""
    query = readings([(1, "a", 1.0), (12, "a", 1.0)], [(25, "a", 1.0)]).window("10 seconds").agg(n=ps.count())
    for checkpoint in ("one", "two"):
        run = query.start(ps.delta(tmp_path / "table"), checkpoint=tmp_path / checkpoint)
        run.wait()
        assert run.counts.results == 3
    assert deltalake.DeltaTable(str(tmp_path / "table")).to_pyarrow_table().num_rows == 6


def test_a_delta_table_of_other_columns_is_refused(tmp_path):
    deltalake.write_deltalake(str(tmp_path), pa.table({"x": [1]}))
    with pytest.raises(SinkError, match="use another table"):
        readings([(1, "a", 1.0)]).window("1 minute").agg(n=ps.count()).start(ps.delta(tmp_path))


def test_each_gets_a_table_and_a_number_that_grows():
    seen = []
    query = readings([(1, "a", 1.0), (30, "a", 1.0)]).window("10 seconds").agg(n=ps.count())
    query.start(ps.each(lambda table, epoch: seen.append((table.num_rows, epoch)))).wait()
    assert seen == [(1, 0), (1, 1)]  # the drain is a delivery of its own


def test_console_prints_a_table(capsys):
    readings([(1, "a", 1.0)]).window("10 seconds").agg(n=ps.count()).start(ps.console()).wait()
    assert "window_start" in capsys.readouterr().out


def test_sketches_are_within_their_error(tmp_path):
    rng = np.random.default_rng(7)
    values = rng.normal(100, 15, 20_000)
    users, words = rng.integers(0, 5000, 20_000), rng.zipf(1.3, 20_000) % 1000
    table = pa.table(
        {
            "time": pa.array([at(s) for s in rng.uniform(0, 40, 20_000)], pa.timestamp("us", "UTC")),
            "user": users,
            "word": pa.array([f"w{w}" for w in words]),
            "v": values,
        }
    )
    stream = ps.stream(
        "t", table.schema, "time", "1 minute", ps.rows([table.slice(0, 12_000), table.slice(12_000)])
    )
    (row,) = [
        each
        for each in collected(
            stream.window("1 minute", slide="20 seconds").agg(
                users=ps.approx_count_distinct("user"),
                all_users=ps.count_distinct("user"),
                p90=ps.quantile("v", 0.9),
                words=ps.top_k("word", 3),
                n=ps.count(),
            )
        )
        if each["n"] == 20_000
    ][:1]
    exact = len(set(users.tolist()))
    assert row["all_users"] == exact
    assert abs(row["users"] - exact) <= 4 * 1.04 / 2**6 * exact
    rank = (values <= row["p90"]).mean()
    assert abs(rank - 0.9) <= 0.0133 * 2
    common = [f"w{w}" for w in np.bincount(words).argsort()[::-1][:3]]
    assert [each["item"] for each in row["words"]] == common


class Span(ps.ArrowAggregate):
    """Largest minus smallest, to try a user-defined state."""

    state = {"lo": "double", "hi": "double"}  # noqa: RUF012
    result = "double"

    def accumulate(self, groups, n, *columns):
        lo, hi = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(lo, groups, columns[0].to_numpy())
        np.maximum.at(hi, groups, columns[0].to_numpy())
        return pa.RecordBatch.from_arrays([pa.array(lo), pa.array(hi)], names=["lo", "hi"])

    def merge(self, left, right):
        lo = np.minimum(left["lo"].to_numpy(), right["lo"].to_numpy())
        hi = np.maximum(left["hi"].to_numpy(), right["hi"].to_numpy())
        return pa.RecordBatch.from_arrays([pa.array(lo), pa.array(hi)], names=["lo", "hi"])

    def finish(self, state):
        return pa.compute.subtract(state["hi"], state["lo"])


SPREAD = ps.sql_aggregate(
    partial={"lo": "min(x)", "hi": "max(x)"}, merge={"lo": "min", "hi": "max"}, finish="hi - lo"
)


@pytest.mark.parametrize(
    "beside", [{}, {"users": ps.approx_count_distinct("v")}], ids=["raw rows", "with a sketch"]
)
def test_both_forms_of_user_defined_aggregates(beside):
    epochs = (
        [(s, "ab"[s % 2], float(s * s % 17)) for s in range(20)],
        [(s, "a", float(s)) for s in range(20, 30)],
    )
    stream = readings(*epochs, delay="30 seconds")
    grouped = stream.group_by("k").window("10 seconds", slide="5 seconds")
    arrow = collected(grouped.agg(span=Span("v"), low=ps.min("v"), high=ps.max("v"), **beside))
    assert arrow
    assert all(row["span"] == row["high"] - row["low"] for row in arrow)
    spelled = collected(grouped.agg(span=SPREAD("v"), low=ps.min("v"), high=ps.max("v")))
    assert sorted(row["span"] for row in spelled) == sorted(row["span"] for row in arrow)


def test_sql_with_having_and_an_expression_over_aggregates():
    stream = readings([(s, "ab"[s % 2], float(s)) for s in range(10)])
    rows = collected(
        ps.sql(
            """SELECT k, max(v) - min(v) AS spread FROM t [RANGE 10 SECONDS]
               GROUP BY k HAVING count(*) > 4 AND max(v) > 8""",
            stream,
        )
    )
    assert [(row["k"], row["spread"]) for row in rows] == [("b", 8.0)]


def test_a_sum_that_overflows_is_an_error_of_the_run(tmp_path):
    rows = [[{"time": at(1), "n": 2**63 - 1}, {"time": at(11), "n": 2**63 - 1}]]
    stream = ps.stream("t", "time timestamp, n bigint", "time", source=ps.rows(rows))
    run = stream.window("20 seconds", slide="10 seconds").agg(total=ps.sum("n")).start(ps.memory())
    with pytest.raises(ps.errors.AggregateOverflow, match="cast the column"):
        run.wait()


def test_a_source_that_does_not_exist_is_named():
    stream = ps.stream("t", "time timestamp", "time", source=ps.files("no/such/folder"))
    with pytest.raises(BadSource, match="no/such/folder"):
        stream.window("1 minute").agg(n=ps.count()).start(ps.memory())


def test_a_dataframe_of_other_types_is_refused(spark):
    frame = spark.readStream.format("rate").load()
    stream = ps.stream("t", "timestamp timestamp, value string", "timestamp", source=ps.dataframe(frame))
    with pytest.raises(WrongType, match="declared string"):
        stream.window("1 minute").agg(n=ps.count()).start(ps.memory())


def test_a_dataframe_may_keep_state_of_its_own(tmp_path, spark):
    for number, value in enumerate([1, 1, 2, 1]):
        rows = pa.table({"time": pa.array([at(number)], pa.timestamp("us", tz="UTC")), "value": [value]})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", 2)
    arriving = session.readStream.schema("time timestamp, value bigint").option("maxFilesPerTrigger", 1)
    frame = arriving.parquet(str(tmp_path)).dropDuplicates(["value"])
    stream = ps.stream("t", "time timestamp, value bigint", "time", source=ps.dataframe(frame, bounded=True))
    sink = ps.memory()
    query = stream.window("1 minute").agg(n=ps.count(), total=ps.sum("value"))
    query.start(sink, session=session).wait()
    assert sink.table().select(["n", "total"]).to_pylist() == [{"n": 2, "total": 3}]


def test_an_error_of_the_sink_reaches_the_user():
    def fail(table, epoch):
        raise ValueError("the disk of the user is full")

    run = readings([(1, "a", 1.0)]).window("10 seconds").agg(n=ps.count()).start(ps.each(fail))
    with pytest.raises(ps.errors.RunError, match="the disk of the user is full"):
        run.wait()


def test_stop_leaves_a_checkpoint_to_go_on_from(tmp_path, spark):
    frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    stream = ps.stream("t", "timestamp timestamp, value bigint", "timestamp", source=ps.dataframe(frame))
    query = stream.window("1 second").agg(n=ps.count())
    run = query.start(ps.memory(), checkpoint=tmp_path)
    deadline = time.monotonic() + 120
    while not run.counts.rows and time.monotonic() < deadline:
        time.sleep(0.05)
    run.stop()
    assert not run.running
    assert not list((tmp_path / "results").iterdir())
    assert [thread for thread in threading.enumerate() if thread.name == "penstock-run"] == []


def test_sigterm_finishes_the_epoch(tmp_path):
    script = f"""
import penstock as ps
from sessions import quick_session
frame = quick_session().readStream.format("rate").option("rowsPerSecond", 100).load()
stream = ps.stream("t", "timestamp timestamp, value bigint", "timestamp", source=ps.dataframe(frame))
query = stream.window("1 second").agg(n=ps.count())
query.start(ps.parquet("{tmp_path}/out"), checkpoint="{tmp_path}/state").wait()
print("clean")
"""
    command = [sys.executable, "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        manifests = Path(tmp_path, "state", "manifests")
        deadline = time.monotonic() + 120
        while not (manifests.exists() and list(manifests.glob("0*.json"))) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert out.decode().strip() == "clean"
    assert process.returncode == 0
