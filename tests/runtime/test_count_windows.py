"""Windows of counts through whole runs: every aggregate, a stage behind them, rescaling."""

import datetime as dt
import random

import pytest

import penstock as ps
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def trades(epochs, **options):
    rows = [[{"time": at(t), "k": k, "v": v} for t, k, v in epoch] for epoch in epochs]
    return ps.stream("trades", "time timestamp, k string, v bigint", "time", source=ps.rows(rows), **options)


def test_windows_are_the_last_rows_of_each_key_whatever_rescales(tmp_path):
    chance = random.Random(8)
    epochs = [
        [(9 * e + chance.randrange(20), f"k{chance.randrange(5)}", chance.randrange(9)) for _ in range(40)]
        for e in range(5)
    ]
    mean = ps.sql_aggregate(
        partial={"total": "sum(v)", "n": "count(v)"},
        merge={"total": "sum", "n": "sum"},
        finish="total / n",
        inputs=("v",),
    )
    last = trades(epochs, delay="20 seconds").group_by("k").window(6, slide=2, rows=True)
    native = last.agg(n=ps.count(), total=ps.sum("v"), all=ps.array_agg("v"))
    minutes = native.group_by("k").window("1 minute").agg(windows=ps.count())
    # Only Spark can form these partials, one for each row.
    formed = last.agg(n=ps.count(), mean=mean("v"), kinds=ps.approx_count_distinct("v"))
    assert "merged with stage" in minutes.explain()
    sinks = [ps.memory() for _ in range(3)]
    run = ps.outputs(native, minutes, formed).start(
        *sinks, channels=2, policy=AtRandom(3, every=1, most=6), checkpoint=tmp_path
    )
    run.wait()
    assert sum(each.rows for each in run.decisions) > 0
    groups, windows = {}, []
    for time, key, value in sorted(row for epoch in epochs for row in epoch):
        groups.setdefault(key, []).append((time, value))
    for key, rows in groups.items():
        for end in range(2, len(rows) + 1, 2):
            times, values = zip(*rows[max(0, end - 6) : end], strict=True)
            windows.append((at(times[0]), at(times[-1]), key, list(values)))
    found = [tuple(row.values()) for row in sinks[0].table().to_pylist()]
    assert sorted(found) == sorted((*w[:3], len(w[3]), sum(w[3]), w[3]) for w in windows)
    totals = sum(row["windows"] for row in sinks[1].table().to_pylist())
    assert totals == len(windows)
    found = [tuple(row.values()) for row in sinks[2].table().to_pylist()]
    assert sorted(row[:5] for row in found) == sorted(
        (*w[:3], len(w[3]), sum(w[3]) / len(w[3])) for w in windows
    )
    assert sorted(row[5] for row in found) == sorted(len(set(w[3])) for w in windows)
