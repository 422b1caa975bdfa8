"""A run that fails says why in one sentence: where, the cause, and what to do."""

import datetime as dt
import logging
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import AggregateOverflow, BadMap, BadValue, MachineFault, RunError
from penstock.runtime.spark.failures import Failing, translated

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
BIG = 2**63 - 1
SCHEMA = "time timestamp, k string, n bigint, d double"


def tuples(count=2, n=BIG):
    rows = [
        {"time": START + dt.timedelta(minutes=each), "k": "seven", "n": n, "d": 0.0} for each in range(count)
    ]
    return ps.stream("t", SCHEMA, "time", source=ps.rows([rows]))


def failure(query, spark, error=RunError):
    """The error of a run, which is one line without Java, plans or stack traces."""
    with pytest.raises(error) as found:
        query.start(ps.memory(), session=spark).wait(live=False)
    assert_a_sentence(found.value)
    return str(found.value)


def assert_a_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 900
    for word in ("\tat ", "org.apache.", "SQLSTATE", "== SQL", "Traceback", "awaitResult", "stage failure"):
        assert word not in text
    assert error.__cause__ is not None


LEAVE_OUT = "; leave such tuples out with where() before it, or use a function that gives null for them"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("n + n", "Out of Range Error: Overflow in addition of INT64"),
        ("n / d", "Invalid Input Error: division by zero"),
    ],
)
def test_an_expression_without_a_value(spark, expression, told):
    text = failure(tuples().select("time", x=expression), spark, BadValue)
    assert text.startswith(f"epoch 0, stream t: select(time, x): {told}")
    assert text.endswith(LEAVE_OUT)


@pytest.mark.parametrize(
    ("expression", "told", "advice"),
    [
        ("cast(k as int)", "CAST(`k` AS INT): [CAST_INVALID_INPUT] The value 'seven'", LEAVE_OUT),
        ("split(k, ',')[3]", "[INVALID_ARRAY_INDEX] The index 3 is out of bounds", LEAVE_OUT),
        ("raise_error('no ' || k)", "[USER_RAISED_EXCEPTION] no seven", "; correct the cause, then start"),
    ],
)
def test_an_expression_of_spark_that_raises(spark, expression, told, advice):
    text = failure(tuples().select("time", x=expression), spark)
    assert text.startswith("epoch 0, stream t: ")
    assert told in text
    assert advice in text.split(told)[1]


def test_an_expression_before_a_window(spark):
    query = tuples().group_by("k").window("1 hour").agg(x=ps.sum("n * 2"))
    text = failure(query, spark, BadValue)
    assert text.startswith("epoch 0, stream t: `k`; `n` * 2: Out of Range Error: Overflow in multiplication")
    assert text.endswith(LEAVE_OUT)


def test_a_sum_too_large_for_its_type(spark):
    """Where a task combines what it reads, or by the merge of panes in a channel."""
    rows = [{"time": START, "k": "a", "n": BIG, "d": 0.0}] * 3
    stream = ps.stream("t", SCHEMA, "time", source=ps.rows([rows]))
    told = "a sum does not fit its result type int64; cast the column to a wider decimal or to double"
    combined = stream.group_by("k").window("1 hour").agg(x=ps.sum("n"))
    assert failure(combined, spark, AggregateOverflow) == f"epoch 0, stream t: {told}"
    merged = tuples().group_by("k").window("1 hour", "1 minute").agg(x=ps.sum("n"))
    text = failure(merged, spark, AggregateOverflow)
    assert text.startswith("epoch 0, stage 0 (group_by(k)")
    assert text.endswith(told)


def refuses(batch):
    raise ValueError("no\nsuch thing")


def dies(batch):
    os._exit(3)


def starves(batch):
    raise MemoryError(f"{batch.num_rows} rows")


PLACES = {
    "stream t": lambda call: tuples().map(call, "x bigint"),
    "stream t: map(": lambda call: (
        tuples().map(call, "k string, x bigint").group_by("k").window("1 hour").agg(n=ps.count())
    ),
    "stage 0 (": lambda call: tuples().group_by("k").window("1 hour").agg(n=ps.count()).map(call, "x bigint"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_function_that_raises(spark, place):
    """Before an output, before an exchange, and in a channel."""
    text = failure(PLACES[place](refuses), spark, BadMap)
    assert text.startswith(f"epoch 0, {place}")
    assert "map(refuses) raised ValueError: no such thing for the row {'" in text
    assert 'or set them aside with start(on_error="set aside")' in text


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_that_dies(spark, place):
    text = failure(PLACES[place](dies), spark)
    assert text.startswith(f"epoch 0, {place.removesuffix(': map(')}")
    # Spark notices it in one of two ways.
    assert "Python worker exited unexpectedly" in text or "EOFException" in text
    assert "often for want of memory: give Spark more memory" in text


@pytest.mark.parametrize("place", PLACES)
def test_a_lack_of_memory(spark, place):
    text = failure(PLACES[place](starves), spark, MachineFault)
    assert text.startswith(f"epoch 0, {place}")
    assert re.search(r"map\(starves\) raised MemoryError: \d rows; that is no row's fault", text)


def test_an_expression_behind_a_window(spark):
    query = tuples().group_by("k").window("1 hour").agg(x=ps.max("n")).select("k", y="x * 2")
    text = failure(query, spark, BadValue)
    assert text.startswith("epoch 0, stage 0 (group_by(k)")
    assert "Overflow in multiplication" in text
    assert text.endswith(LEAVE_OUT)


def test_an_expression_of_spark_behind_a_window(spark):
    query = tuples().group_by("k").window("1 hour").agg(x=ps.max("n")).select("k", y="cast(k as int)")
    text = failure(query, spark)
    assert text.startswith("epoch 0")
    assert "CAST(`k` AS INT): [CAST_INVALID_INPUT]" in text


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"time": pa.array([START] * 3, pa.timestamp("us", "UTC")), "n": [1, 2, 3]})
    for name in ("a", "b"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


def test_a_damaged_file(spark, folder):
    damaged = folder / "b.parquet"
    damaged.write_bytes(damaged.read_bytes()[:300])
    stream = ps.stream("t", "time timestamp, n bigint", "time", source=ps.files(folder))
    text = failure(stream.select("time", "n"), spark)
    assert "[FAILED_READ_FILE" in text
    assert "b.parquet" in text
    assert text.endswith("restore or replace the file, then start again with the same checkpoint")


def test_a_file_with_other_types(spark, folder):
    pq.write_table(
        pa.table({"time": pa.array([START], pa.timestamp("us", "UTC")), "n": ["x"]}), folder / "b.parquet"
    )
    stream = ps.stream("t", "time timestamp, n bigint", "time", source=ps.files(folder))
    text = failure(stream.select("time", "n"), spark)
    assert "Parquet column [n]. Expected Spark type bigint, actual Parquet type BINARY" in text


def test_a_file_that_goes_while_it_is_read(spark, folder):
    frame = spark.read.parquet(str(folder))
    (folder / "b.parquet").unlink()
    with pytest.raises(RunError, match=r"^epoch 3, stage 1: \[FAILED_READ_FILE.*b.parquet") as found:  # noqa: SIM117
        with translated(Failing(3, "stage 1")):
            frame.collect()
    assert_a_sentence(found.value)


def test_a_sink_that_raises(spark):
    def full(table, number):
        raise KeyError("disk")

    with pytest.raises(RunError) as found:
        tuples(n=1).select("time").start(ps.each(full), session=spark).wait(live=False)
    told = "output each(test_a_sink_that_raises.<locals>.full): KeyError: 'disk'; correct the cause"
    assert told in str(found.value)
    assert isinstance(found.value.__cause__, KeyError)


def test_the_log_has_the_sentence_and_only_on_request_the_rest(spark, caplog):
    with caplog.at_level(logging.DEBUG, "penstock.run"):
        failure(tuples().select("time", x="n + n"), spark, BadValue)
    records = [each for each in caplog.records if each.name == "penstock.run"]
    told = [each for each in records if "Overflow" in each.getMessage()]
    assert [each.levelname for each in told] == ["ERROR"]
    assert told[0].exc_info is None
    assert [each.levelname for each in records if each.exc_info] == ["DEBUG"]
