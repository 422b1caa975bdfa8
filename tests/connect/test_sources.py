from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import penstock.query as ps
from penstock.errors import BadSource

SCHEMA = "time timestamp not null, v int"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def tables(*batches):
    return ps.stream("s", SCHEMA, time="time", source=ps.rows(batches)).source.batches


def test_files():
    source = ps.files(Path("in"), format="CSV", files_per_epoch=5, options={"header": "true"})
    assert source == ps.FilesSource("in", "csv", 5, live=False, options=(("header", "true"),))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"format": "text"}, "no columns"),
        ({"format": "avro"}, "the formats are parquet, csv, json, orc, arrow"),
        ({"format": "arrow", "options": {"a": "b"}}, "Arrow files have none"),
        ({"options": {"maxFileAge": "1d"}}, "option 'maxFileAge' is of Spark's file streams"),
        ({"files_per_epoch": 0}, "1 or more"),
        ({"path": ""}, "path ''"),
    ],
)
def test_files_refuses(arguments, reason):
    with pytest.raises(BadSource, match=reason):
        ps.files(**{"path": "in", **arguments})


def test_a_frame_that_is_not_streaming():
    with pytest.raises(BadSource, match="readStream"):
        ps.dataframe(object())


def test_rows_become_tables_of_the_schema():
    dicts = [{"time": NOON, "V": 1}, {"time": NOON}]
    batch = pa.RecordBatch.from_pydict({"v": pa.array([1, None], pa.int64()), "time": [NOON, NOON]})
    first, second, third = tables(dicts, batch, pa.Table.from_batches([batch]))
    assert first.schema == ps.Schema.parse(SCHEMA).arrow()
    assert first.equals(second)
    assert second.equals(third)


def test_an_empty_batch_is_an_epoch():
    assert [each.num_rows for each in tables([], [{"time": NOON, "v": 1}])] == [0, 1]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([{"time": NOON, "v": "x"}], "batch 1, column 'v'.*int"),
        ([{"time": NOON, "v": 2**40}], "batch 1, column 'v'"),
        ([{"v": 1}], "batch 1, column 'time': 1 nulls"),
        ([{"time": NOON, "w": 1}], "batch 1 has the column 'w'"),
        (pa.table({"time": [NOON], "v": ["x"]}), "batch 1, column 'v'"),
        (pa.table({"v": [1]}), "batch 1, column 'time': 1 nulls"),
        ("text", "batch 1 is str"),
    ],
)
def test_rows_that_do_not_fit_name_batch_and_column(batch, reason):
    with pytest.raises(BadSource, match=reason):
        tables([], batch)


def test_rows_want_a_list():
    with pytest.raises(BadSource, match="put it in a list"):
        ps.rows(pa.table({"v": [1]}))


COLUMNS = "time timestamp, stream string, v int"


def test_gates_read_the_inlet_of_the_streams_name():
    source = ps.gates("a:1, b:2", stream_column="STREAM", rows_per_epoch=10, patience="1 minute")
    stream = ps.stream("reports", COLUMNS, time="time", key="stream", source=source)
    assert stream.source == ps.GatesSource(("a:1", "b:2"), "reports", "stream", 10, 60_000_000)
    assert ps.stream("s", COLUMNS, time="time", source=ps.gates("a:1", inlet="i")).source.inlet == "i"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"address": ""}, "such as '127.0.0.1:7400'"),
        ({"address": "a:1,,b:2"}, "a:1,,b:2"),
        ({"rows_per_epoch": 0}, "1 or more"),
        ({"inlet": "reports/vehicle-1"}, "before the slash"),
    ],
)
def test_gates_refuses(arguments, reason):
    with pytest.raises(BadSource, match=reason):
        ps.gates(**{"address": "a:1", **arguments})


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: ps.files(3), "path 3; give a path"),
        (lambda: ps.files("in", format=3), "no format 3"),
        (lambda: ps.files("in", live=1), "live=1; give True or False"),
        (lambda: ps.files("in", files_per_epoch=2.5), "files_per_epoch=2.5"),
        (lambda: ps.files("in", options=["header"]), "give a dict"),
        (lambda: ps.rows(3), "rows.. got int; give a list"),
        (lambda: ps.gates("a:1", rows_per_epoch=True), "rows_per_epoch=True"),
        (lambda: ps.gates("a:1", token=b"sesame"), "token is bytes; give the text"),
        (lambda: ps.gates("a:1", tls="cert.pem"), "tls is str; give a penstock.TLS"),
        (lambda: ps.gates("a:1", inlet=3), "inlet 3"),
        (lambda: ps.gates("a:1", stream_column=3), "stream_column=3"),
        (lambda: ps.stream("s", SCHEMA, "time", source="in"), "source is str; give ps.files.*ps.Source"),
    ],
)
def test_a_wrong_type_is_named_when_it_is_given(call, reason):
    with pytest.raises(BadSource, match=reason):
        call()


def test_the_stream_column_holds_text():
    with pytest.raises(BadSource, match=r"'v'.*declare it as string"):
        ps.stream("s", COLUMNS, time="time", source=ps.gates("a:1", stream_column="v"))


def test_a_token_is_in_no_text():
    source = ps.gates("a:1", token="sesame")
    stream = ps.stream("s", COLUMNS, time="time", source=source)
    assert "sesame" not in f"{source!r} {stream!r} {stream.window('1 second').agg(n=ps.count())!r}"
