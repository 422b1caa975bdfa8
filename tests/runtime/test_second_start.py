"""A second run where there may be one only, and runs that go back: on one checkpoint, and on one sink."""

import json
import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from oracle import fetched
from penstock.cli.app import app
from penstock.errors import (
    BadOption,
    BadSink,
    CheckpointInUse,
    DamagedCheckpoint,
    ForeignCheckpoint,
    LostCheckpoint,
    SinkError,
)
from runtime.test_run import readings


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def windows(epochs=4):
    rows = [[(10 * epoch + s, "ab"[s % 2], float(s)) for s in range(10)] for epoch in range(epochs)]
    return readings(*rows).group_by("k").window("20 seconds", slide="10 seconds").agg(n=ps.count())


def results(folder):
    return fetched(f"SELECT * FROM read_parquet({ps.delivered(folder)}) ORDER BY ALL")


def endless(spark):
    frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    stream = ps.stream("t", "timestamp timestamp, value bigint", "timestamp", source=ps.dataframe(frame))
    return stream.window("1 second").agg(n=ps.count())


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_second_start_is_refused_and_the_first_run_goes_on(tmp_path, spark):
    """Defect 1 and newcomer 8: the second start in a process ended the first run in silence."""
    run = endless(spark).start(ps.memory(), checkpoint=tmp_path, name="first")
    until(lambda: run.counts.rows)
    with pytest.raises(CheckpointInUse, match=r"in use by run 'first' of .* takeover=True"):
        endless(spark).start(ps.memory(), checkpoint=tmp_path)
    seen = run.counts.rows
    until(lambda: run.counts.rows > seen)
    second = endless(spark).start(ps.memory(), checkpoint=tmp_path, takeover=True)
    with pytest.raises(LostCheckpoint, match="was taken over by"):
        run.wait(120)
    second.stop()
    endless(spark).start(ps.memory(), checkpoint=tmp_path).stop()


def test_a_start_that_fails_gives_the_checkpoint_back(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.parquet").touch()
    with pytest.raises(SinkError, match=r"such as mine\.parquet"):
        windows().start(ps.parquet(tmp_path / "out"), checkpoint=tmp_path / "state")
    windows(1).start(ps.memory(), checkpoint=tmp_path / "state").wait()


def test_a_folder_of_data_is_refused_before_anything_is_written(tmp_path):
    """Newcomer 8: a data folder was accepted as a checkpoint."""
    (tmp_path / "rides.csv").touch()
    with pytest.raises(ForeignCheckpoint, match=r"holds rides\.csv"):
        windows().start(ps.memory(), checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rides.csv"]


def test_a_second_checkpoint_on_a_parquet_folder_is_refused_or_shares_it(tmp_path):
    """Defect 3 and newcomer 1: simply running twice mixed the results of both runs."""
    windows(2).start(ps.parquet(tmp_path / "one")).wait()
    before = results(tmp_path / "one")
    with pytest.raises(SinkError, match="holds results of"):
        windows(2).start(ps.parquet(tmp_path / "one"))
    assert results(tmp_path / "one") == before
    for _ in range(2):
        windows(2).start(ps.parquet(tmp_path / "two", shared=True)).wait()
    assert results(tmp_path / "two") == sorted(before * 2)


def test_a_run_goes_back_to_a_kept_epoch(tmp_path):
    sink, state = ps.parquet(tmp_path / "out"), tmp_path / "state"
    windows().start(sink, checkpoint=state, keep_epochs=10).wait()
    before = results(tmp_path / "out")
    newest = max((state / "manifests").iterdir())
    newest.write_bytes(b"damaged")
    with pytest.raises(DamagedCheckpoint, match=r"from_epoch=…\) to one of 0, 1, 2, 3"):
        windows().start(sink, checkpoint=state)
    run = windows().start(sink, checkpoint=state, from_epoch=1, keep_epochs=10)
    run.wait()
    assert [each.epoch for each in run.progress] == [2, 3, 3]  # and the drain
    assert results(tmp_path / "out") == before
    assert run.counts.rows == 40
    with pytest.raises(BadSink, match=r"from_epoch: each\(print\) cannot take back"):
        windows().start(ps.each(print), checkpoint=state, from_epoch=1)
    with pytest.raises(BadOption, match="give one of them"):
        windows().start(sink, checkpoint=state, from_epoch=1, takeover=True)


def test_a_run_goes_on_without_the_metadata_that_spark_never_synced(tmp_path, spark):
    """Defect 13: after a loss of power Spark refuses its own offsets."""
    state, found = tmp_path / "state", []
    put(tmp_path / "in", "a", 1)
    query = counted(spark, tmp_path / "in")
    query.start(ps.each(lambda table, _: found.extend(table["n"].to_pylist())), checkpoint=state).wait()
    metadata = state / "rows" / "spark" / "metadata"
    metadata.write_bytes(b"")
    put(tmp_path / "in", "b", 5000)
    query.start(ps.each(lambda table, _: found.extend(table["n"].to_pylist())), checkpoint=state).wait()
    assert json.loads(metadata.read_text())["id"]
    assert found == [10, 10]


def put(folder, name, second):
    """A file of ten tuples from this second on, which is also its own time."""
    folder.mkdir(exist_ok=True)
    times = pa.array(range(second, second + 10), pa.timestamp("s", tz="UTC"))
    pq.write_table(pa.table({"time": times}), folder / f"{name}.parquet")
    os.utime(folder / f"{name}.parquet", (second, second))


def counted(spark, folder, kind="dataframe"):
    """The tuples of an hour, read by a streaming query of Spark's or by workers, a file an epoch."""
    frame = spark.readStream.schema("time timestamp").option("maxFilesPerTrigger", 1).parquet(str(folder))
    read = ps.dataframe(frame, bounded=True) if kind == "dataframe" else ps.files(folder, files_per_epoch=1)
    return ps.stream("t", "time timestamp", "time", source=read).window("1 hour").agg(n=ps.count())


@pytest.mark.parametrize("kind", ["files", "dataframe"])
def test_a_source_goes_back_with_its_run_and_reads_what_came_since(tmp_path, spark, kind):
    sink, state = ps.parquet(tmp_path / "out"), tmp_path / "state"
    for name, second in (("a", 1), ("b", 5000), ("c", 10_000)):
        put(tmp_path / "in", name, second)
    query = counted(spark, tmp_path / "in", kind)
    query.start(sink, checkpoint=state, keep_epochs=10).wait()
    put(tmp_path / "in", "d", 15_000)
    run = query.start(sink, checkpoint=state, from_epoch=0, keep_epochs=10)
    run.wait()
    assert [(each.epoch, each.rows) for each in run.progress] == [(1, 10), (2, 10), (3, 10), (3, 0)]
    assert [row[-1] for row in results(tmp_path / "out")] == [10, 10, 10, 10]
    assert (run.counts.rows, run.counts.late) == (40, 0)


def test_rows_are_kept_in_order_whatever_the_times_of_their_files(tmp_path):
    sink, state = ps.memory(), tmp_path / "state"
    windows(1).start(sink, checkpoint=state).wait()
    os.utime(state / "rows" / "00000000.arrow")
    shutil.rmtree(state / "manifests")
    shutil.rmtree(state / "plans")
    run = windows(3).start(sink, checkpoint=state)
    run.wait()
    assert (run.counts.late, run.counts.rows) == (0, 30)


class Broken:
    """Fails at the second call, once."""

    def __init__(self):
        self.calls = 0

    def __call__(self, _table, _number):
        self.calls += 1
        if self.calls == 2:
            raise OSError("too large")


def test_an_epoch_is_abandoned_and_its_rows_come_again(tmp_path):
    """Defect 12: a planned epoch that can never finish."""
    sink, broken = ps.memory(), ps.each(Broken())
    query = ps.outputs(windows(), windows().where("n > 0"))
    with pytest.raises(Exception, match="too large"):
        query.start(sink, broken, checkpoint=tmp_path).wait()
    planned = max((tmp_path / "plans").iterdir()).name
    done = CliRunner().invoke(app, ["state", str(tmp_path), "--abandon"], catch_exceptions=False)
    assert done.exit_code == 0
    assert f"epoch {int(planned[:12])} is abandoned" in done.output
    assert not (tmp_path / "plans" / planned).exists()
    run = query.start(sink, broken, checkpoint=tmp_path)
    run.wait()
    assert run.counts.rows == 40
    assert sum(sink.table()["n"].to_pylist()) == 80


def test_offsets_that_are_not_those_of_the_plan_are_refused(tmp_path, spark):
    """Defect 13: after a loss of power Spark may plan an epoch again with other rows."""
    for name, second in (("a", 1), ("b", 5000), ("c", 10_000)):
        put(tmp_path / "in", name, second)
    query, state = counted(spark, tmp_path / "in"), tmp_path / "state"
    query = ps.outputs(query, query.where("n > 0"))
    with pytest.raises(Exception, match="too large"):
        query.start(ps.memory(), ps.each(Broken()), checkpoint=state).wait()
    newest = max((state / "rows/spark/sources/0").glob("[0-9]*"))
    newest.write_text(newest.read_text().replace("parquet", "other"))
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    with pytest.raises(DamagedCheckpoint, match=r"has other offsets of batch \d than its epoch"):
        query.start(ps.memory(), ps.each(print), checkpoint=state).wait()
