"""Explode through whole runs: on the way to a stage, behind one, and to a sink."""

import datetime as dt
from collections import Counter

import pytest

import penstock as ps

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def posts(*epochs, **options):
    rows = [
        [
            {"time": START + dt.timedelta(seconds=t), "author": author, "tags": tags}
            for t, author, tags in epoch
        ]
        for epoch in epochs
    ]
    schema = "time timestamp, author string, tags array<string>"
    return ps.stream("posts", schema, "time", source=ps.rows(rows), **options)


def test_elements_are_counted_and_late_tuples_count_once():
    given = posts(
        [(0, "a", ["x", "y"]), (1, "b", ["x"]), (2, "b", []), (3, "c", None), (30, "a", ["z"])],
        [(1, "late", ["x", "y", "z"]), (31, "a", ["z", None])],
    )
    tags = given.explode(tag="tags").where("author <> 'c'")
    counted = tags.group_by("tag").window("10 seconds").agg(n=ps.count(), last=ps.max("author"))
    joined = counted.select("tag", words="concat(tag, ' ', last)").explode(
        word="split(words, ' ')", outer=True
    )
    plain = given.explode(tags="tags", outer=True)
    sinks = [ps.memory() for _ in range(3)]
    run = ps.outputs(counted, joined, plain).start(*sinks)
    run.wait()
    one, two, three = (sink.table().to_pylist() for sink in sinks)
    assert Counter((row["tag"], row["n"], row["last"]) for row in one) == Counter(
        [("x", 2, "b"), ("y", 1, "a"), ("z", 2, "a"), (None, 1, "a")]
    )
    assert Counter((row["tag"], row["word"]) for row in two) == Counter(
        [("x", "x"), ("x", "b"), ("y", "y"), ("y", "a"), ("z", "z"), ("z", "a"), (None, None)]
    )
    assert run.counts.late == 1
    assert Counter((row["author"], row["tags"]) for row in three) == Counter(
        [("a", "x"), ("a", "y"), ("b", "x"), ("b", None), ("c", None), ("a", "z"), ("a", "z"), ("a", None)]
    )


def test_a_late_tuple_counts_once_on_the_way_to_windows_alone():
    given = posts([(0, "a", ["x", "y"]), (30, "a", ["z"])], [(1, "late", ["x", "y", "z"])])
    sink = ps.memory()
    run = given.explode(tag="tags").group_by("tag").window("10 seconds").agg(n=ps.count()).start(sink)
    run.wait()
    assert sorted(sink.table()["tag"].to_pylist()) == ["x", "y", "z"]
    assert (run.counts.late, run.counts.rows) == (1, 3)
