"""Tuples for which a function of the user raises."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.errors import BadMap

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def parsed(batch):
    return pa.record_batch([pc.cast(batch["text"], pa.int64())], ["n"])


def numbers(texts):
    rows = [{"time": START, "text": text} for text in texts]
    stream = ps.stream("t", "time timestamp, text string", "time", source=ps.rows([rows]))
    return stream.map(parsed, "n bigint")


def test_the_error_names_the_function_and_the_row(spark):
    """Defect 27: which of many rows a function failed for was not said."""
    run = numbers([*map(str, range(1000)), "seven", *map(str, range(500))]).start(ps.memory(), session=spark)
    with pytest.raises(
        BadMap, match=r"map\(parsed\) raised ArrowInvalid: .* for the row \{'time': .*'seven'\}"
    ):
        run.wait()


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
    with pytest.raises(BadMap, match="ValueError: too many rows for 6 rows together"):
        stream.map(picky, "text string").operator.call(table)
