"""Hot keys of class aggregates: rows dealt out over sub-keys give what whole keys and a batch engine give."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from oracle import Shape, windows
from penstock.control.rescale import Rescale
from penstock_lab.workloads import draw, zipf_shares

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000
MINUTE = 60 * SECOND


class Total(ps.ArrowAggregate):
    """A sum and a maximum, in user code."""

    state = {"total": "bigint", "top": "bigint"}  # noqa: RUF012
    result = "bigint"
    split = True

    def accumulate(self, groups, n, *columns):
        values = columns[0].to_numpy()
        total, top = np.zeros(n, np.int64), np.full(n, -1)
        np.add.at(total, groups, values)
        np.maximum.at(top, groups, values)
        return pa.record_batch({"total": total, "top": top})

    def merge(self, left, right):
        total = left["total"].to_numpy() + right["total"].to_numpy()
        return pa.record_batch({"total": total, "top": np.maximum(left["top"], right["top"])})

    def finish(self, state):
        return pa.compute.add(pa.compute.multiply(state["total"], 1000), state["top"])


class Whole(Total):
    """The same for keys that stay whole."""

    split = False


def zipf_epochs(seed, epochs, rows, keys=50):
    """Epochs of skewed rows in disorder, one minute each; some keys are null."""
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        times = epoch * MINUTE + rng.integers(0, MINUTE + 20 * SECOND, rows)
        drawn = draw(rng, zipf_shares(keys, 1.5), rows)
        yield [
            {
                "time": int(time),
                "key": None if key == 1 else f"key {key}",
                "part": int(key) % 3,
                "value": int(v),
            }
            for time, key, v in zip(times, drawn, rng.integers(0, 900, rows).tolist(), strict=True)
        ]


def started(epochs, aggregate, by=("key",), channels=4, sink=None, **options):
    rows = [
        [{**row, "time": START + dt.timedelta(microseconds=row["time"])} for row in epoch] for epoch in epochs
    ]
    schema = "time timestamp, key string, part int, value bigint"
    stream = ps.stream("r", schema, "time", delay="20 seconds", source=ps.rows(rows))
    memory = ps.memory()
    query = (
        stream.group_by(*by)
        .window("1 minute", slide="30 seconds")
        .agg(n=ps.count(), most=ps.max("value"), total=aggregate("value"))
    )
    run = query.start(sink or memory, channels=channels, **options)
    run.wait()
    return run, None if sink else memory.table()


def found(table, by=("key",)):
    names = ["window_start", *by, "n", "most", "total"]
    return sorted(map(str, zip(*(table[name].to_pylist() for name in names), strict=True)))


@pytest.mark.parametrize("by", [("key",), ("part", "key")], ids=["one key", "two keys"])
def test_split_keys_give_what_whole_ones_and_a_batch_engine_give(spark, by):
    epochs = list(zipf_epochs(3, epochs=3, rows=3000))
    run, split = started(epochs, Total, by)
    texts = [epoch.stages[0].split for epoch in run.progress]
    assert texts[0] == ""
    assert "of the rows" in texts[1]
    table = pa.Table.from_pylist([row for epoch in epochs for row in epoch])
    asked = {"n": "count(*)", "most": "max(value)", "total": "(1000 * sum(value) + max(value))::BIGINT"}
    exact = windows(Shape(MINUTE, 30 * SECOND), table, list(by), asked)
    starts = exact["window_start"].to_pylist()
    shown = [START + dt.timedelta(microseconds=start) for start in starts]
    exact = exact.set_column(0, "window_start", pa.array(shown, pa.timestamp("us", "UTC")))
    assert found(split, by) == found(exact, by)


def test_an_aggregate_may_refuse_and_gives_the_same(spark):
    epochs = list(zipf_epochs(4, epochs=3, rows=3000))
    (split_run, split), (whole_run, whole) = started(epochs, Total), started(epochs, Whole)
    assert any(epoch.stages[0].split for epoch in split_run.progress)
    assert not any(epoch.stages[0].split for epoch in whole_run.progress)
    assert found(split) == found(whole)


def test_formers_share_the_rows_evenly_and_all_are_counted(spark):
    run, _ = started(zipf_epochs(5, epochs=3, rows=8000), Total)
    whole, *split = [[each.rows for each in epoch.stages[0].channels] for epoch in run.progress[:3]]
    assert max(whole) > 1.5 * np.mean(whole)
    for rows in split:
        assert sum(rows) == 8000
        assert max(rows) < 1.15 * np.mean(rows)


def test_channels_may_come_and_go_while_keys_are_split(spark):
    epochs = list(zipf_epochs(6, epochs=5, rows=2000))
    wanted = {1: 6, 2: 3, 3: 4}
    run, found_split = started(
        epochs, Total, policy=lambda seen: [Rescale(0, wanted[seen.epoch])] if seen.epoch in wanted else []
    )
    assert [len(epoch.stages[0].channels) for epoch in run.progress[:5]] == [4, 4, 6, 3, 4]
    assert all(epoch.stages[0].split for epoch in run.progress[1:5])
    _, whole = started(epochs, Whole)
    assert found(found_split) == found(whole)
    (first, *_) = [each for each in run.decisions if each.partitioning == "sub-keys"]
    assert first.epoch == 1
    assert first.reason.startswith("split: the busiest channel has ")
    assert "; key 0 with " in first.reason


def test_an_epoch_that_is_run_again_splits_the_same_keys_and_gives_the_same(spark, tmp_path):
    epochs = list(zipf_epochs(7, epochs=3, rows=2000))
    delivered = []
    for _ in range(2):
        taken = {}
        sink = ps.each(lambda table, epoch, taken=taken: taken.setdefault(epoch, []).extend(found(table)))
        run, _ = started(epochs, Total, sink=sink, checkpoint=tmp_path)
        # An epoch and its drain have numbers of their own: 4 and 5 are those of epoch 2.
        delivered.append((sorted(taken.get(4, []) + taken.get(5, [])), run.progress[-2].stages[0].split))
        # The driver dies in epoch 2: its plan is there, that it happened is not.
        for name in ("manifests/*2-data.json", "manifests/*2-drain.json"):
            for file in tmp_path.glob(name):
                file.unlink()
    assert "key 0 with" in delivered[0][1]
    assert delivered[0][0]
    assert delivered[0] == delivered[1]


def test_all_keys_may_have_two_channels_from_the_first_epoch_on(spark):
    epochs = list(zipf_epochs(8, epochs=3, rows=8000))
    run, chosen = started(epochs, Total, dealing="two choices")
    _, whole = started(epochs, Whole)
    assert found(chosen) == found(whole)
    worked = [[each.rows for each in epoch.stages[0].channels] for epoch in run.progress[:3]]
    # The hottest key has 46 % of the rows, and whole it would be 1.9 times the mean of four channels alone.
    assert all(sum(rows) == 8000 and max(rows) < 1.4 * np.mean(rows) for rows in worked), worked
    assert not [each for each in run.decisions if each.partitioning == "sub-keys"]
