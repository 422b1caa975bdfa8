"""What every sink promises: an epoch that is delivered again counts once, whatever the first try left."""

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import penstock as ps
from connect.sink_cases import SINK_CASES
from penstock.connect import SINKS, Begins, ConsoleSink, EpochId, ResultFile, Results
from penstock.errors import BadSink, RunError, SinkError
from penstock.runtime.delivering import OpenSink
from penstock.state.storage import Location

SCHEMA = pa.schema({"time": pa.timestamp("us", "UTC"), "n": pa.int64()})
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

every_sink = pytest.mark.parametrize("case", SINK_CASES, ids=lambda case: case.name)


def numbered(*numbers):
    return [{"time": START + dt.timedelta(seconds=n), "n": n} for n in numbers]


class Epochs:
    """Delivers rows to a sink as an epoch does, a file for each channel, without Spark."""

    def __init__(self, sink, folder, schema=SCHEMA, id_="a-0"):
        self.sink = sink
        self.schema = schema
        self.folder = Location.of(folder / "state")
        self.id = id_
        self.begins = Begins(owner=0)
        self.open()

    def open(self):
        """A run begins."""
        self.begins = replace(self.begins, owner=self.begins.owner + 1)
        self.running = OpenSink(self.sink, self.id, "run", self.folder, ("time",), None)
        self.running.prepare(self.schema, self.begins)

    def written(self, *channels):
        """Channels write; the receipts."""
        found = []
        for rows in channels:
            file = ResultFile(self.running.target, self.schema)
            file.write(pa.Table.from_pylist(rows, self.schema))
            file.close()
            found += [file.receipt()] if file.receipt() else []
        return found

    def deliver(self, epoch, *channels, drain=False, committed=True):
        outputs = self.written(*channels)
        self.running.deliver(EpochId(epoch, drain), outputs)
        if committed:
            self.begins = replace(self.begins, last=EpochId(epoch, drain))
            self.running.forget(outputs)


def plain(rows):
    """Rows without regard to order, as a sink that knows only JSON has them."""
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def test_the_suite_knows_every_sink(tmp_path):
    # The terminal shows a replayed epoch again: what is printed cannot be taken back.
    made = {type(case.make(tmp_path)) for case in SINK_CASES}
    assert set(SINKS) <= made | {ConsoleSink}


@every_sink
def test_epochs_add_up(case, tmp_path):
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.deliver(0, numbered(1), numbered(2))
    epochs.deliver(1, numbered(3))
    epochs.deliver(1, numbered(4), drain=True)
    assert plain(case.read(sink, tmp_path)) == plain(numbered(1, 2, 3, 4))


@every_sink
def test_an_epoch_that_was_delivered_but_not_committed_counts_once(case, tmp_path):
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.deliver(0, numbered(1))
    epochs.deliver(1, numbered(2), numbered(3), numbered(4), committed=False)
    epochs.open()
    # The same rows in fewer files and in another order.
    epochs.deliver(1, numbered(4, 2), numbered(3))
    epochs.deliver(2, numbered(5))
    assert plain(case.read(sink, tmp_path)) == plain(numbered(1, 2, 3, 4, 5))


@every_sink
def test_files_of_an_epoch_that_was_never_delivered_do_not_count(case, tmp_path):
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.written(numbered(1))
    epochs.open()
    epochs.deliver(0, numbered(1))
    assert plain(case.read(sink, tmp_path)) == plain(numbered(1))


@every_sink
def test_an_epoch_without_results(case, tmp_path):
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.deliver(0)
    assert case.read(sink, tmp_path) == []
    epochs.deliver(1, numbered(1))
    epochs.deliver(2)
    assert plain(case.read(sink, tmp_path)) == plain(numbered(1))


@every_sink
def test_a_drain_is_not_its_epoch(case, tmp_path):
    """Defect 19: who went by the number that `ps.each` passed dropped the drain."""
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.deliver(0, numbered(1))
    epochs.deliver(0, numbered(2), drain=True, committed=False)
    epochs.open()
    epochs.deliver(0, numbered(2), drain=True)
    assert plain(case.read(sink, tmp_path)) == plain(numbered(1, 2))


@every_sink
def test_two_checkpoints_do_not_take_each_others_results_for_their_own(case, tmp_path):
    """Defects 2 and 3, newcomer 1: a second checkpoint lost its results or replaced those of the first."""
    sink = case.make(tmp_path)
    if isinstance(sink, ps.query.ParquetSink):
        sink = replace(sink, shared=True)
    for id_ in ("a-0", "b-0"):
        epochs = Epochs(sink, tmp_path / id_, id_=id_)
        epochs.deliver(0, numbered(1 if id_ == "a-0" else 2))
        epochs.deliver(1, numbered(3))
    expected = numbered(2, 3) if case.name == "each" else numbered(1, 3, 2, 3)
    # A function gets the number of an epoch and nothing else: each run has a function of its own.
    assert plain(case.read(sink, tmp_path)) == plain(expected)


@pytest.mark.parametrize("case", [each for each in SINK_CASES if each.name in {"parquet", "memory"}])
def test_a_run_that_goes_back_takes_later_epochs_back(case, tmp_path):
    sink = case.make(tmp_path)
    assert sink.takes_back
    epochs = Epochs(sink, tmp_path)
    for epoch in range(4):
        epochs.deliver(epoch, numbered(epoch))
    epochs.begins = replace(epochs.begins, last=EpochId(1), back=True)
    epochs.open()
    assert plain(case.read(sink, tmp_path)) == plain(numbered(0, 1))
    epochs.deliver(2, numbered(7))
    assert plain(case.read(sink, tmp_path)) == plain(numbered(0, 1, 7))


def test_a_delta_table_that_is_ahead_of_a_run_that_goes_back_is_refused(tmp_path):
    epochs = Epochs(ps.delta(tmp_path / "table"), tmp_path)
    for epoch in range(3):
        epochs.deliver(epoch, numbered(epoch))
    epochs.begins = replace(epochs.begins, last=EpochId(1), back=True)
    with pytest.raises(
        SinkError, match=r"up to epoch 2, but this run begins with epoch 2.*restore the table"
    ):
        epochs.open()
    epochs.begins = replace(epochs.begins, last=EpochId(2))
    epochs.open()


EVERY_TYPE = {
    "time": (pa.timestamp("us", "UTC"), START),
    "local": (pa.timestamp("us"), dt.datetime(2024, 1, 1, 12)),  # noqa: DTZ001 -- a time without zone
    "day": (pa.date32(), dt.date(2024, 1, 1)),
    "flag": (pa.bool_(), True),
    "tiny": (pa.int8(), -128),
    "small": (pa.int16(), 32_767),
    "whole": (pa.int32(), -1),
    "big": (pa.int64(), 2**63 - 1),
    "real": (pa.float32(), 0.5),
    "double": (pa.float64(), -0.1),
    "money": (pa.decimal128(20, 2), Decimal("-123.45")),
    "text": (pa.string(), "naïve ✓ 'quoted'"),
    "bytes": (pa.binary(), b"\x00\xff"),
    "items": (pa.list_(pa.int64()), [1, None, 3]),
    "pair": (pa.struct({"a": pa.int64(), "b": pa.string()}), {"a": 1, "b": None}),
}


@every_sink
def test_every_type_and_null(case, tmp_path):
    schema = pa.schema({name: type_ for name, (type_, _) in EVERY_TYPE.items()})
    rows = [
        {name: value for name, (_, value) in EVERY_TYPE.items()},
        {name: START if name == "time" else None for name in EVERY_TYPE},
    ]
    sink = case.make(tmp_path)
    Epochs(sink, tmp_path, schema).deliver(0, rows)
    assert plain(case.read(sink, tmp_path)) == plain(rows)


@pytest.mark.parametrize("case", [each for each in SINK_CASES if each.name in {"memory", "each"}])
def test_a_table_is_in_the_order_of_time(case, tmp_path):
    sink = case.make(tmp_path)
    Epochs(sink, tmp_path).deliver(0, numbered(5, 2), numbered(1, 4))
    assert case.read(sink, tmp_path) == numbered(1, 2, 4, 5)


@every_sink
def test_nothing_is_left_in_the_checkpoint(case, tmp_path):
    sink = case.make(tmp_path)
    epochs = Epochs(sink, tmp_path)
    epochs.deliver(0, numbered(1))
    assert epochs.folder.names() == []


@every_sink
def test_a_sink_is_a_value_that_prints_short(case, tmp_path):
    sink = case.make(tmp_path)
    hash(sink)
    assert "\n" not in repr(sink)
    assert len(repr(sink)) < 40 + len(str(tmp_path))


def windows(name="t"):
    rows = [[{"time": each["time"], "n": each["n"]} for each in numbered(n, n + 1)] for n in (0, 10, 20)]
    stream = ps.stream(name, "time timestamp, n bigint", "time", source=ps.rows(rows))
    return stream.window("5 seconds").agg(total=ps.sum("n"))


class Broken:
    """Fails at the second call, once."""

    def __init__(self):
        self.calls = 0

    def __call__(self, _table, _number):
        self.calls += 1
        if self.calls == 2:
            raise OSError("no space left")


@every_sink
def test_a_run_that_fails_after_delivery_delivers_each_result_once(case, tmp_path, spark):
    # The sink has the epoch when its neighbour fails, so that the epoch runs again with the next start.
    sink, neighbour = case.make(tmp_path), ps.each(Broken())
    query = ps.outputs(windows(), windows().where("total > 0"))
    with pytest.raises(RunError, match="no space left"):
        query.start(sink, neighbour, checkpoint=tmp_path / "state", session=spark).wait()
    before = case.read(sink, tmp_path)
    query.start(sink, neighbour, checkpoint=tmp_path / "state", session=spark).wait()
    assert len(before) in {1, 2}
    assert sorted(row["total"] for row in case.read(sink, tmp_path)) == [1, 21, 41]


def test_two_outputs_cannot_share_a_folder(tmp_path):
    query = ps.outputs(windows(), windows().where("total > 0"))
    with pytest.raises(BadSink, match="two outputs write to"):
        query.start(ps.parquet(tmp_path), ps.parquet(tmp_path))
    with pytest.raises(BadSink, match="two outputs write to"):
        windows().start(ps.parquet(tmp_path), late=ps.parquet(f"{tmp_path}/"))


class Closing(ps.Sink):
    """Counts what is called."""

    def __init__(self, *, fails=False):
        self.calls = []
        self.fails = fails

    def open(self, context):
        from penstock.connect import Delivery

        sink = self

        class Counting(Delivery):
            def deliver(self, _epoch, results):
                sink.calls.append(("deliver", results.rows))
                if sink.fails:
                    raise SinkError("the database is away")

            def committed(self, epoch):
                sink.calls.append(("committed", epoch.version))

            def close(self):
                sink.calls.append(("close",))

        self.calls.append(("open", context.name, context.order, tuple(context.schema.names)))
        return Counting()


def test_a_sink_is_opened_and_closed_once_and_hears_of_every_commit(spark):
    sink = Closing()
    windows().start(sink, session=spark, name="mine").wait()
    assert sink.calls == [
        ("open", "mine", ("window_start",), ("window_start", "window_end", "total")),
        *[("deliver", 0), ("committed", 0), ("deliver", 1), ("committed", 2)],
        *[("deliver", 1), ("committed", 4), ("deliver", 1), ("committed", 5)],
        ("close",),
    ]


def test_a_sink_is_closed_after_a_failure(spark):
    sink = Closing(fails=True)
    with pytest.raises(SinkError, match="the database is away"):
        windows().start(sink, session=spark).wait()
    assert [each[0] for each in sink.calls] == ["open", "deliver", "close"]


def test_results_as_a_table_and_as_a_spark_frame(spark, tmp_path):
    for sink in (ps.memory(), ps.parquet(tmp_path / "out")):
        epochs = Epochs(sink, tmp_path)
        files = tuple(epochs.written(numbered(2), numbered(1)))
        for given, found in ((files, [1, 2]), ((), [])):
            results = Results(EpochId(0), SCHEMA, epochs.running.target, given, ("time",))
            assert results.table()["n"].to_pylist() == found
            frame = results.frame(spark)
            assert sorted(row["n"] for row in frame.collect()) == found
            assert frame.columns == ["time", "n"]
