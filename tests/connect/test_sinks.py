from pathlib import Path

import pyarrow as pa
import pytest

import penstock.query as ps
from penstock.connect import EpochId, SinkContext
from penstock.errors import BadPath, BadSink


def test_paths_and_uris():
    assert ps.parquet(Path("out")) == ps.ParquetSink("out", "snappy")
    assert ps.delta("s3://bucket/out", app="a") == ps.DeltaSink("s3://bucket/out", "a")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ps.parquet("out", compression="rar"),
        lambda: ps.parquet(""),
        lambda: ps.delta(""),
        lambda: ps.console(0),
        lambda: ps.each("print"),
    ],
)
def test_refuses(call):
    with pytest.raises(BadSink, match=r"give|there are"):
        call()


@pytest.mark.parametrize("rows", [2.5, True, "3", None])
def test_console_wants_a_whole_number(rows):
    with pytest.raises(BadSink, match=r"rows=.*give a whole number, from 1 to 1,000,000"):
        ps.console(rows)


def test_a_path_without_a_filesystem_is_named():
    with pytest.raises(BadPath, match=r"no filesystem for 'what://bucket/out'.*give a local path"):
        ps.parquet("what://bucket/out").folder.make()


def test_sinks_print_as_they_are_written():
    sink = ps.memory()
    sink.append(0, pa.table({"n": [1, 2]}))
    assert [repr(each) for each in (sink, ps.delta("out"), ps.console())] == [
        "memory(2 results of 1 epochs)",
        "delta('out')",
        "console(rows=20)",
    ]


def test_memory_is_empty_at_first():
    assert ps.memory().table().num_rows == 0


def test_memory_keeps_epochs_in_order():
    sink = ps.memory()
    sink.append(0, pa.table({"n": [1]}))
    sink.append(1, pa.table({"n": [2, 3]}))
    assert sink.table().column("n").to_pylist() == [1, 2, 3]


def test_memory_takes_an_epoch_once():
    sink = ps.memory()
    for epoch in (0, 1, 0):
        sink.append(epoch, pa.table({"n": [epoch]}))
    assert sink.table().column("n").to_pylist() == [0, 1]


def test_parts_of_an_epoch_are_printed_called_and_kept_as_they_come(capsys):
    calls, kept = [], ps.memory()
    context = SinkContext(
        id="a-0", name="a", schema=pa.schema([("n", pa.int64())]), folder=None, session=None
    )
    sinks = [
        ps.console(),
        ps.each(lambda table, number: calls.append((number, table["n"].to_pylist()))),
        kept,
    ]
    for sink in sinks:
        delivery = sink.open(context)
        for n in (1, 2):
            delivery.part(EpochId(3), pa.table({"n": [n]}))
        delivery.whole(EpochId(3))
        assert sink.takes_parts
    assert calls == [(6, [1]), (6, [2])]
    assert kept.table()["n"].to_pylist() == [1, 2]
    assert capsys.readouterr().out.count("┃ n ┃") == 2
