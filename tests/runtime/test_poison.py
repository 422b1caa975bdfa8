"""Tuples for which a function of the user raises."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock as ps
from oracle import fetched
from penstock.connect import EpochId
from penstock.errors import BadMap, MachineFault, TooManyErrors

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def parsed(batch):
    return pa.record_batch([pc.cast(batch["text"], pa.int64())], ["n"])


def numbers(*epochs):
    rows = [[{"time": START, "text": text} for text in texts] for texts in epochs]
    stream = ps.stream("t", "time timestamp, text string", "time", source=ps.rows(rows))
    return stream.map(parsed, "n bigint")


def rejects(folder):
    """The reasons and records of what was set aside."""
    files = ps.delivered(folder)
    found = fetched(f"SELECT reason, record FROM read_parquet({files}) ORDER BY ALL") if files else []
    return [(reason, json.loads(record)) for reason, record in found]


def test_the_error_names_the_function_and_the_row(spark):
    """Defect 27: which of many rows a function failed for was not said."""
    run = numbers([*map(str, range(1000)), "seven", *map(str, range(500))]).start(ps.memory(), session=spark)
    with pytest.raises(
        BadMap, match=r"map\(parsed\) raised ArrowInvalid: .* for the row \{'time': .*'seven'\}"
    ):
        run.wait()


@pytest.mark.parametrize("on_error", ["fail", "set aside"])
def test_a_lack_of_memory_is_no_rows_fault(spark, tmp_path, on_error):
    """Defect: four good rows went to the rejects, and the run succeeded."""

    def full(batch):
        raise MemoryError(f"{batch.num_rows} rows")

    rows = ps.rows([[{"time": START, "text": str(place)} for place in range(4)]])
    stream = ps.stream("t", "time timestamp, text string", "time", source=rows)
    run = stream.map(full, "n bigint").start(
        ps.memory(), session=spark, checkpoint=tmp_path / "c", on_error=on_error
    )
    with pytest.raises(MachineFault, match=r"map\(full\) raised MemoryError: 4 rows; that is no row's fault"):
        run.wait()
    assert not list((tmp_path / "c").rglob("rejects/**/*.parquet"))


def test_a_row_is_shortened():
    call = numbers(["7"]).operator.call
    table = pa.table({"time": [START] * 3, "text": ["1", "x" * 1000, "2"]})
    with pytest.raises(BadMap) as raised:
        call(table)
    assert "for the row {'time'" in str(raised.value)
    assert "…; correct the function" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_rows_that_fail_only_together():
    def picky(batch):
        if batch.num_rows > 3:
            raise ValueError("too many\nrows")
        return batch.select(["text"])

    stream = ps.stream("t", "time timestamp, text string", "time")
    table = pa.table({"time": [START] * 6, "text": list("abcdef")})
    call = stream.map(picky, "text string").operator.call
    with pytest.raises(BadMap, match="ValueError: too many rows for 6 rows together"):
        call(table)
    # Set aside, such rows are given to the function in smaller batches, and none is refused.
    assert call(table, lambda *_: pytest.fail("no row fails alone"))["text"].to_pylist() == list("abcdef")


def test_a_poison_row_costs_few_calls():
    calls = []

    def counted(batch):
        calls.append(batch.num_rows)
        return parsed(batch)

    table = pa.table({"time": [START] * 4096, "text": [*map(str, range(4095)), "x"]})
    refused = []
    stream = ps.stream("t", "time timestamp, text string", "time")
    found = stream.map(counted, "n bigint").operator.call(table, lambda *each: refused.append(each))
    assert found["n"].to_pylist() == list(range(4095))
    assert len(refused) == 1
    assert len(calls) == 1 + 2 * 12


def test_poison_rows_are_set_aside_before_a_stage(spark, tmp_path):
    """Defect 27: a poison row fails for ever. Set aside, it goes to the rejects and the run goes on."""
    relation = numbers([*map(str, range(50)), "x", "y"], ["1", "z"], ["2"])
    counted = relation.group_by(odd="n % 2").window("1 minute").agg(rows=ps.count())
    sink = ps.memory()
    run = ps.outputs(counted, relation).start(
        sink, ps.memory(), checkpoint=tmp_path, session=spark, on_error="set aside"
    )
    run.wait()
    assert sum(row["rows"] for row in sink.table().to_pylist()) == 52
    found = rejects(tmp_path / "rejects")
    # The function is shared by both outputs: each row is refused once.
    assert [record["text"] for _, record in found] == ["x", "y", "z"]
    assert all(reason.startswith("map(parsed) raised ArrowInvalid: ") for reason, _ in found)
    assert found[0][1]["time"].startswith("2024-01-01T00:00:00")
    assert [each.rejected for each in run.progress][:3] == [2, 1, 0]
    assert [each.rows for each in run.progress][:3] == [52, 2, 1]
    assert "2 rows of stream 't' were set aside, since map(parsed) raised" in run.progress[0].warnings[0]
    assert not list((tmp_path / "between").iterdir())
    assert not list((tmp_path / "rejects" / "_staging").iterdir())


def test_poison_results_are_set_aside_after_a_stage(spark, tmp_path):
    """Defect 27: functions over results run in the channels of the stage."""

    def picky(batch):
        if 13 in batch["k"].to_pylist():
            raise KeyError("unlucky")
        return batch.select(["k", "rows"])

    rows = [{"time": START, "k": n % 20} for n in range(60)]
    stream = ps.stream("t", "time timestamp, k bigint", "time", source=ps.rows([rows]))
    counted = stream.group_by("k").window("1 minute").agg(rows=ps.count()).map(picky, "k bigint, rows bigint")
    sinks = ps.memory(), ps.memory()
    query = ps.outputs(counted, counted.where("rows > 0"))
    run = query.start(*sinks, checkpoint=tmp_path, session=spark, channels=3, on_error="set aside")
    run.wait()
    for sink in sinks:
        assert sorted(row["k"] for row in sink.table().to_pylist()) == [n for n in range(20) if n != 13]
    ((reason, record),) = rejects(tmp_path / "rejects" / "stage-0")
    assert reason == "map(picky) raised KeyError: 'unlucky'"
    assert (record["k"], record["rows"]) == (13, 3)
    # What came in is counted apart from results that were refused.
    assert (run.progress[-1].rejected, sum(each.rows for each in run.progress)) == (1, 60)


@pytest.mark.parametrize(("strategy", "stage"), [("subquery", 0), ("operator", 1)])
def test_poison_rows_of_a_keyed_function_are_set_aside(spark, tmp_path, strategy, stage):
    """Defect 27: a keyed function goes on from the state before the row, in later epochs too."""

    def total(key, time, row, state):
        before = state["n"] if state else 0
        return ps.Visit({"n": before + int(row["text"])}, results=[{"n": before + int(row["text"])}])

    epochs = [["1", "x", "2"], ["4", "y"], ["8"]]
    rows = [
        [{"time": START + dt.timedelta(minutes=m, seconds=n), "text": text} for n, text in enumerate(texts)]
        for m, texts in enumerate(epochs)
    ]
    stream = ps.stream("t", "time timestamp, text string", "time", source=ps.rows(rows))
    totals = (
        stream.select("time", "text", k="1").group_by("k").process(total, state="n bigint", result="n bigint")
    )
    sink = ps.memory()
    run = totals.start(
        sink, checkpoint=tmp_path, session=spark, channels=2, strategy=strategy, on_error="set aside"
    )
    run.wait()
    assert sorted(row["n"] for row in sink.table().to_pylist()) == [1, 3, 7, 15]
    found = rejects(tmp_path / "rejects" / f"stage-{stage}")
    assert [(record["k"], record["text"]) for _, record in found] == [(1, "x"), (1, "y")]
    assert "raised ValueError: invalid literal for int()" in found[0][0]


def test_poison_rows_of_a_function_that_is_a_stage_are_those_of_the_stage(spark, tmp_path):
    relation = numbers(["1", "x", "2"], ["y"], ["3"])
    sink = ps.memory()
    run = relation.start(
        sink, checkpoint=tmp_path, session=spark, channels=2, strategy="operator", on_error="set aside"
    )
    run.wait()
    assert sorted(row["n"] for row in sink.table().to_pylist()) == [1, 2, 3]
    assert not rejects(tmp_path / "rejects")
    found = rejects(tmp_path / "rejects" / "stage-0")
    assert [record["text"] for _, record in found] == ["x", "y"]
    assert [each.rejected for each in run.progress][:3] == [1, 1, 0]
    assert "1 rows of stage 0 were set aside, since map(parsed) raised" in run.progress[0].warnings[0]


def test_an_epoch_that_runs_again_sets_its_poison_rows_aside_once(spark, tmp_path):
    """Defect 27: refused rows are exactly once over a retry, like results."""
    away = [True]

    def broken(table, number):
        if number == EpochId(1).version and away:
            raise OSError("the sink is away")

    relation = numbers(["1", "x"], ["2", "y", "z"], ["3"])
    options = {"checkpoint": tmp_path / "state", "session": spark, "on_error": "set aside"}
    with pytest.raises(Exception, match="the sink is away"):
        relation.start(ps.each(broken), **options).wait()
    assert [record["text"] for _, record in rejects(tmp_path / "state" / "rejects")] == ["x"]
    away.clear()
    relation.start(ps.each(broken), **options).wait()
    assert [record["text"] for _, record in rejects(tmp_path / "state" / "rejects")] == ["x", "y", "z"]
    assert not list((tmp_path / "state" / "rejects" / "_staging").iterdir())


def test_too_many_poison_rows_fail_and_a_larger_limit_goes_on(spark, tmp_path):
    """Defect 27: the rows of an epoch that are set aside have a limit."""
    relation = numbers(["1", "a"], ["2", *"bcdefg"], ["3"])
    options = {"checkpoint": tmp_path, "session": spark, "on_error": "set aside"}
    with pytest.raises(TooManyErrors, match=r"most_errors=3 may be set aside, such as: map\(parsed\) raised"):
        relation.start(ps.memory(), most_errors=3, **options).wait()
    assert [record["text"] for _, record in rejects(tmp_path / "rejects")] == ["a"]
    relation.start(ps.memory(), most_errors=6, **options).wait()
    assert [record["text"] for _, record in rejects(tmp_path / "rejects")] == list("abcdefg")


def test_a_wrong_answer_is_no_row_s_fault(spark, tmp_path):
    relation = numbers(["1"]).map(lambda batch: batch.slice(1), "n bigint")
    with pytest.raises(BadMap, match="returned 0 rows for 1"):
        relation.start(ps.memory(), session=spark, checkpoint=tmp_path, on_error="set aside").wait()


def test_what_is_set_aside_is_compressed_as_asked(spark, tmp_path):
    """`late=ps.parquet(…, compression=…)` took no notice of its compression."""
    late = {"time": START - dt.timedelta(hours=1), "text": "1"}
    rows = [[{"time": START, "text": "x"}, {"time": None, "text": "y"}], [late]]
    stream = ps.stream("t", "time timestamp, text string", "time", source=ps.rows(rows))
    counted = stream.map(parsed, "n bigint").group_by("n").window("1 minute").agg(rows=ps.count())
    asides = {name: ps.parquet(tmp_path / name, compression="zstd") for name in ("late", "rejects")}
    counted.start(ps.memory(), session=spark, on_error="set aside", **asides).wait()
    files = [*ps.delivered(tmp_path / "late"), *ps.delivered(tmp_path / "rejects")]
    assert len(files) == 3
    assert {pq.ParquetFile(each).metadata.row_group(0).column(0).compression for each in files} == {"ZSTD"}
