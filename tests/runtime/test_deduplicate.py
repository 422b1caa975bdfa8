"""Deduplication through whole runs: a window behind it, and channels that come and go."""

import datetime as dt
import random
from collections import Counter

import pytest

import penstock as ps
from penstock.runtime.state_view import StateView
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def clicks(*epochs, **options):
    """A stream of (second, key, value) tuples, one list per epoch."""
    rows = [[{"time": at(t), "k": k, "v": v} for t, k, v in epoch] for epoch in epochs]
    return ps.stream("clicks", "k string, time timestamp, v bigint", "time", source=ps.rows(rows), **options)


def test_a_window_behind_it_counts_what_passed_in_the_same_channels(tmp_path):
    # within 10 s, key a:  1 passes, 8 and 10 are dropped, 11 passes, 65 passes; 2 comes after frontier 6
    stream = clicks(
        [(8, "a", 1), (1, "a", 2), (11, "a", 3), (11, "a", 0)],
        [(2, "a", 9), (10, "a", 4), (7, None, 5), (9, None, 6)],
        [(65, "a", 7)],
        delay="5 seconds",
    )
    once = stream.deduplicate("k", within="10 seconds")
    counted = once.group_by("k").window("1 minute").agg(n=ps.count(), total=ps.sum("v"))
    assert "stage 1 merged with stage 0: both part tuples by k" in counted.explain()
    passed, sums = ps.memory(), ps.memory()
    run = ps.outputs(once, counted).start(passed, sums, channels=3, checkpoint=tmp_path)
    run.wait()
    found = Counter((row["k"], row["time"], row["v"]) for row in passed.table().to_pylist())
    assert found == Counter([("a", at(1), 2), ("a", at(11), 0), ("a", at(65), 7), (None, at(7), 5)])
    assert passed.table().column_names == ["k", "time", "v"]
    totals = {(row["window_start"], row["k"]): (row["n"], row["total"]) for row in sums.table().to_pylist()}
    assert totals == {(at(0), "a"): (2, 2), (at(0), None): (1, 5), (at(60), "a"): (1, 7)}
    assert run.counts.late == 1
    view = StateView(tmp_path)
    (key,) = view.of_key(view.manifest(), ["a"], 0)
    (row,) = key.rows.to_pylist()
    assert (row["k"], row["_passes_again"]) == ("a", at(75))


def test_rescaling_changes_nothing(tmp_path):
    chance = random.Random(5)
    epochs = [
        [(8 * e + chance.randrange(20), f"k{chance.randrange(12)}", chance.randrange(4)) for _ in range(40)]
        for e in range(7)
    ]
    once = clicks(*epochs, delay="12 seconds").deduplicate("k", within="15 seconds")
    sink = ps.memory()
    run = once.start(sink, channels=2, policy=AtRandom(3, every=1, most=6), checkpoint=tmp_path)
    run.wait()
    assert sum(each.rows for each in run.decisions) > 0
    again, expected = {}, []
    for time, key, value in sorted(row for epoch in epochs for row in epoch):
        if time >= again.get(key, 0):
            again[key] = time + 15
            expected.append((at(time), key, value))
    found = [(row["time"], row["k"], row["v"]) for row in sink.table().to_pylist()]
    assert sorted(found) == sorted(expected)


def test_fields_of_structs_whose_names_are_words_of_sql_or_have_spaces_pass_by():
    place = {"a": 1, "select": 2, "odd name": 3}
    rows = [{"time": at(each), "v v": 7, "k": "a", "place": place} for each in (0, 1)]
    schema = "time timestamp, `v v` int, k string, place struct<a:int,`select`:int,`odd name`:int>"
    stream = ps.stream("places", schema, "time", source=ps.rows([rows]))
    passed, top = ps.memory(), ps.memory()
    ps.outputs(
        stream.deduplicate("k", within="10 seconds").select("place", odd="place.`odd name`"),
        stream.group_by("k").window("1 minute").top(1, by="`v v`").select("v v", "place"),
    ).start(passed, top, channels=2).wait()
    assert [(row["place"], row["odd"]) for row in passed.table().to_pylist()] == [(place, 3)]
    assert [(row["v v"], row["place"]) for row in top.table().to_pylist()] == [(7, place)]
