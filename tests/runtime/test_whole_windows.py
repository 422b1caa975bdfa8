"""Functions over whole windows through whole runs, while channels and batches come and go."""

import datetime as dt
import itertools
import random
import time

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.cases import Total
from penstock.distribution.distribution import Change
from penstock.ingest import Client, Gate
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def until(ready, seconds=120):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def reports(epochs, **options):
    """A stream of (second, key, value) tuples, one list per epoch."""
    rows = [[{"time": at(t), "k": k, "v": v} for t, k, v in epoch] for epoch in epochs]
    return ps.stream("reports", "time timestamp, k string, v bigint", "time", source=ps.rows(rows), **options)


def extremes(rows):
    values = sorted(rows["v"].to_pylist())
    return {"low": values[:1], "high": values[-1:], "n": [len(values)]}


def expected(epochs, size, slide, *, keyed=False):
    groups = {}
    for t, k, v in (row for epoch in epochs for row in epoch):
        for start in range((t - size) // slide * slide + slide, t + 1, slide):
            groups.setdefault((at(start), k) if keyed else (at(start),), []).append(v)
    return {key: (min(values), max(values), len(values)) for key, values in groups.items()}


class Unrest(AtRandom):
    """Other channels, and other batches, at random."""

    def __call__(self, seen):
        chance = random.Random(seen.epoch)
        wishes = super().__call__(seen)
        return [*wishes, Change(0, "batch", chance.randint(1, 4), "at random")]


def test_windows_without_a_key_are_each_computed_once_while_channels_and_batches_change(tmp_path):
    chance = random.Random(5)
    epochs = [
        [(4 * e + chance.randrange(12), "a", chance.randrange(99)) for _ in range(30)] for e in range(7)
    ]
    found = reports(epochs, delay="12 seconds").window("6 seconds", slide="2 seconds")
    results = found.apply(extremes, "low bigint, high bigint, n bigint")
    slow = results.group_by("n").window("1 minute").agg(windows=ps.count())
    sink, counted = ps.memory(), ps.memory()
    run = ps.outputs(results, slow).start(
        sink, counted, channels=3, policy=Unrest(3, every=2, most=5), checkpoint=tmp_path
    )
    run.wait()
    rows = sink.table().to_pylist()
    assert {(row["window_start"],): (row["low"], row["high"], row["n"]) for row in rows} == expected(
        epochs, 6, 2
    )
    assert len(rows) == len(expected(epochs, 6, 2))
    assert sum(row["windows"] for row in counted.table().to_pylist()) == len(rows)
    assert run.progress[0].rows == 30
    assert {each.partitioning.split()[0] for each in run.decisions} > {"batches"}


def slowly(rows):
    """A function that waits; what it takes is measured."""
    time.sleep(0.005)
    return {"total": [sum(rows["n"].to_pylist())]}


def test_batches_grow_by_themselves_when_windows_cost_more_than_there_is_time_for(spark, tmp_path):
    #  an epoch takes 400 rows, ten a second, and closes 20 windows; with each, 64,000 more rows arrive
    seconds, many = 0.1, 64_000
    schema = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
    with Gate("127.0.0.1:0", tmp_path / "gate") as gate, Client(gate.address, "pulse/a", schema) as client:

        def push(epoch):
            n = np.arange(epoch * many, (epoch + 1) * many)
            times = pa.array((n * seconds * 1e6).astype(np.int64), schema.field("time").type)
            client.push(pa.record_batch([times, n], schema=schema))
            client.flush()

        found, epochs = [], itertools.count(1)

        def deliver(table, _epoch):
            found.extend(table.to_pylist())
            push(next(epochs))

        push(0)
        stream = ps.stream(
            "pulse",
            "time timestamp, n bigint",
            time="time",
            source=ps.gates(gate.address, rows_per_epoch=400),
        )
        windows = stream.window("6 seconds", slide="2 seconds").apply(slowly, "total bigint")
        run = windows.start(ps.each(deliver), tmp_path / "state", channels=2, session=spark)
        with run:
            until(lambda: len(run.progress) >= 7)
    (decided,) = run.decisions
    assert "of 10 from window" in decided.partitioning
    assert "it has the least backlog; a window costs" in decided.reason
    starts = [
        round((row["window_start"] - dt.datetime.fromtimestamp(0, dt.UTC)).total_seconds()) for row in found
    ]
    assert sorted(starts) == list(range(-4, max(starts) + 1, 2))
    assert max(starts) > 40 * 5
    rows = {start: range(max(start, 0) * 10, (start + 6) * 10) for start in starts}
    assert [row["total"] for row in found] == [sum(rows[start]) for start in starts]


def test_the_windows_of_a_key_are_computed_in_its_channel(tmp_path):
    epochs = [[(1, "a", 5), (2, "b", 7), (9, "a", 1)], [(3, "a", 2), (21, "b", 4)]]
    stream = reports(epochs, delay="10 seconds")
    windows = stream.group_by("k").window("10 seconds", slide="5 seconds")
    sink = ps.memory()
    windows.apply(extremes, "low bigint, high bigint, n bigint").start(
        sink, channels=2, checkpoint=tmp_path
    ).wait()
    found = {
        (row["window_start"], row["k"]): (row["low"], row["high"], row["n"])
        for row in sink.table().to_pylist()
    }
    assert found == expected(epochs, 10, 5, keyed=True)


@pytest.mark.parametrize("dealing", [None, "runs"])
def test_user_code_without_a_key_gives_the_same_wherever_it_is_formed(tmp_path, dealing):
    """Where tuples are read, or on all channels; windows lie on a ring."""
    chance = random.Random(6)
    epochs = [
        [(5 * e + chance.randrange(15), "a", chance.randrange(9)) for _ in range(400)] for e in range(6)
    ]
    stream = reports(epochs, delay="15 seconds")
    sink = ps.memory()
    totals = stream.window("8 seconds", slide="1 second").agg(total=Total("v"))
    run = totals.start(
        sink, channels=3, policy=AtRandom(4, every=2, most=5), checkpoint=tmp_path, dealing=dealing
    )
    run.wait()
    found = {row["window_start"]: row["total"] for row in sink.table().to_pylist()}
    groups = {}
    for t, _, v in (row for epoch in epochs for row in epoch):
        for start in range(t - 7, t + 1):
            groups.setdefault(at(start), []).append(v)
    assert found == {start: 1000 * sum(values) + max(values) for start, values in groups.items()}
    assert len(found) == sink.table().num_rows
    worked = [[each.rows for each in epoch.stages[0].channels] for epoch in run.progress if epoch.rows]
    assert all(sum(rows) == 400 for rows in worked)
    if dealing:
        assert all(max(rows) < 1.35 * 400 / len(rows) for rows in worked[1:]), worked
    assert len({len(rows) for rows in worked}) > 1


def test_whole_panes_go_round_robin_if_asked_for(tmp_path):
    #  nearly all rows are in one pane
    epochs = [[(3 if n % 20 else n // 20, "a", n % 9) for n in range(200)]]
    totals = reports(epochs).window("4 seconds", slide="1 second").agg(total=Total("v"))
    sink = ps.memory()
    run = totals.start(sink, channels=2, dealing="round robin", checkpoint=tmp_path)
    run.wait()
    found = {row["window_start"]: row["total"] for row in sink.table().to_pylist()}
    groups = {}
    for t, _, v in epochs[0]:
        for start in range(t - 3, t + 1):
            groups.setdefault(at(start), []).append(v)
    assert found == {start: 1000 * sum(values) + max(values) for start, values in groups.items()}
    even, odd = (sum(t % 2 == part for t, _, _ in epochs[0]) for part in (0, 1))
    assert [each.rows for each in run.progress[0].stages[0].channels] == [even, odd]
