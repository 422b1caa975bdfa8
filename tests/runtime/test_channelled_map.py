"""Maps in channels through whole runs: a window behind them, rescales, replays, and rows placed by cost."""

import datetime as dt
import hashlib
import random
import time
from collections import Counter

import pyarrow as pa
import pytest
from pyspark import TaskContext

import penstock as ps
from penstock.distribution.distribution import Change
from penstock.errors import RunError
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def scans(epochs, **options):
    """A stream of (second, code) tuples, one list per epoch."""
    rows = [[{"time": at(t), "code": code} for t, code in epoch] for epoch in epochs]
    return ps.stream("scans", "time timestamp, code bigint", "time", source=ps.rows(rows), **options)


def worked(batch):
    """Work in proportion to the code."""
    digests = [hashlib.sha256(b"x" * 2_000 * code).hexdigest()[:4] for code in batch["code"].to_pylist()]
    return pa.record_batch({"code": batch["code"], "digest": digests})


def drawn(seed, epochs, rows, span=10):
    chance = random.Random(seed)
    return [
        [(span * e + chance.randrange(span), chance.choice([1, 1, 1, 2, 5, 40])) for _ in range(rows)]
        for e in range(epochs)
    ]


def test_a_window_behind_it_counts_every_tuple_once_whatever_is_rescaled(tmp_path):
    # epochs of 10 s, delay 5 s, windows of 20 s: when the last one begins, the frontier is about 25 s
    epochs = drawn(3, epochs=4, rows=60)
    # Below the frontier, but its window is open: not late, as it is not for a map without channels.
    epochs[-1].append((21, 7))
    # Its window is closed.
    epochs[-1].append((2, 7))
    mapped = scans(epochs, delay="5 seconds").map(
        worked, "code bigint, digest string", by="code", channels=True
    )
    counted = mapped.group_by("code", "digest").window("20 seconds").agg(n=ps.count())
    passed, sums = ps.memory(), ps.memory()
    run = ps.outputs(mapped, counted).start(
        passed, sums, channels=3, policy=AtRandom(3, every=1, most=3), checkpoint=tmp_path
    )
    run.wait()
    accepted = [row for epoch in epochs for row in epoch if row != (2, 7)]
    assert run.counts.late == 1
    found = Counter((row["time"], row["code"]) for row in passed.table().to_pylist())
    assert found == Counter((at(t), code) for t, code in accepted)
    totals = {(row["window_start"], row["code"]): row["n"] for row in sums.table().to_pylist()}
    assert totals == Counter((at(t // 20 * 20), code) for t, code in accepted)
    stages = [each.stages[0] for each in run.progress if each.stages[0].tuples]
    assert [each.grouping for each in stages] == ["round robin", *["by cost"] * 3]
    assert len({len(each.channels) for each in stages}) > 1
    assert all(sum(one.rows for one in each.channels) == each.tuples for each in stages)


def placed(batch):
    """The channel in which each row is."""
    return batch.append_column("channel", pa.array([TaskContext.get().partitionId()] * batch.num_rows))


def test_a_replay_places_rows_as_the_attempt_before_it(tmp_path):
    told = []

    def deliver(table, number):
        told.append((number, Counter((row["code"], row["channel"]) for row in table.to_pylist())))
        if len(told) == 2:
            raise OSError("no space left")

    mapped = scans(drawn(4, epochs=2, rows=80)).map(
        lambda batch: placed(worked(batch)), "code bigint, channel int", by="code", channels=True
    )
    with pytest.raises(RunError, match="no space left"):
        mapped.start(ps.each(deliver), channels=3, checkpoint=tmp_path).wait()
    run = mapped.start(ps.each(deliver), channels=3, checkpoint=tmp_path)
    run.wait()
    assert told[1] == told[2]
    assert run.progress[0].stages[0].grouping == "by cost"
    # How even channels are depends on measured costs; tests/routing holds the placing to its bound.
    assert {channel for _, channel in told[2][1]} == {0, 1, 2}


def test_rows_stay_in_place_until_a_policy_sends_them_and_refused_ones_are_set_aside(tmp_path):
    def picky(batch):
        if -1 in batch["code"].to_pylist():
            raise ValueError("no code")
        return worked(batch)

    ways = {0: "by cost", 1: "round robin", 2: "in place"}
    epochs = [[*epoch, (epoch[0][0], -1)] for epoch in drawn(5, epochs=4, rows=30)]
    sink = ps.memory()
    run = (
        scans(epochs)
        .map(picky, "code bigint, digest string", by="code")
        .start(
            sink,
            channels=2,
            checkpoint=tmp_path,
            on_error="set aside",
            policy=lambda seen: (
                [Change(0, "grouping", ways[seen.epoch], "to try")] if seen.epoch in ways else []
            ),
        )
    )
    run.wait()
    stages = [each.stages[0] for each in run.progress if each.rows]
    assert [each.grouping for each in stages] == ["in place", "by cost", "round robin", "in place"]
    assert [each.tuples for each in stages] == [31] * 4
    assert run.counts.rejected == 4
    found = Counter((row["time"], row["code"]) for row in sink.table().to_pylist())
    assert found == Counter((at(t), code) for epoch in epochs for t, code in epoch if code > 0)
    assert "rows by cost: to try" in repr(run.decisions[0])


def slow(batch):
    """Waits for as long as the code says, so that channels run at the same time on however few cores."""
    for code in batch["code"].to_pylist():
        time.sleep(0.004 * code)
    return pa.record_batch({"code": batch["code"]})


def zipf(seed, epochs, rows):
    """Codes by Zipf 1.3, of which rarer ones take up to 40 times as long."""
    chance = random.Random(seed)
    codes = [1, 2, 1, 40, 1, 20, 1, 40]
    weights = [1 / rank**1.3 for rank in range(1, len(codes) + 1)]
    return [[(10 * e, code) for code in chance.choices(codes, weights, k=rows)] for e in range(epochs)]


@pytest.mark.parametrize(
    ("given", "found"), [({"by": "code"}, []), ({"channels": True}, ["costs by code"])], ids=["by", "found"]
)
def test_by_itself_rows_go_by_cost_where_costs_differ(tmp_path, given, found):
    epochs = zipf(7, epochs=14, rows=24)
    sink = ps.memory()
    run = scans(epochs).map(slow, "code bigint", **given).start(sink, channels=2, checkpoint=tmp_path)
    run.wait()
    ways = [each.stages[0].grouping for each in run.progress if each.rows]
    assert ways[-1] == "by cost", run.rulings
    told = [each.partitioning for each in run.decisions if each.partitioning.startswith("costs by")]
    assert told == found
    delivered = Counter((row["time"], row["code"]) for row in sink.table().to_pylist())
    assert delivered == Counter((at(t), code) for epoch in epochs for t, code in epoch)
