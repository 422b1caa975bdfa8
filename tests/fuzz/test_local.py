"""The engine without Spark against plain counts, and against the batch oracle of random graphs."""

import datetime as dt
import sys
from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from fuzz.local import NeedsSpark, run_local
from graphs.accepted import judge
from graphs.batch import evaluate
from graphs.build import EPOCH, MICRO, relations, rows_of
from graphs.compare import assert_alike
from graphs.generate import generate
from graphs.graph import Graph, Source
from penstock.errors import RunError, WrongType
from sessions import interpreting

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
readings = ps.stream("readings", "time timestamp, k string, n int not null", time="time", delay="5 seconds")


def epochs(seed, count=4, rows=30):
    rng = Random(seed)
    return [
        [
            {"time": START + SECOND * (10 * epoch + rng.randrange(10)), "k": rng.choice("abc"), "n": 1}
            for _ in range(rows)
        ]
        for epoch in range(count)
    ]


def counted(table):
    return {(row["window_start"], row["k"]): row["n"] for row in table.to_pylist()}


def plain(rows):
    """Every window of every key, counted one by one."""
    seven = 7 * SECOND
    return Counter((EPOCH + (row["time"] - EPOCH) // seven * seven, row["k"]) for row in rows)


@pytest.mark.parametrize("options", [{"whole": True}, {}, {"resume": True}, {"rescale": False}])
def test_windows_count_what_was_accepted(options):
    windows = readings.group_by("k").window("7 seconds").agg(n=ps.count())
    for seed in range(5):
        given = epochs(seed)
        found = run_local(windows, {"readings": given}, seed=seed, channels=3, **options)
        assert counted(found.tables[0]) == plain(found.accepted["readings"])
        assert sum(map(len, given)) == len(found.accepted["readings"]) + len(found.late["readings"])
        # With the drain, and at times with a promise before it.
        assert found.epochs - (1 if "whole" in options else 4) in {1, 2}


def test_state_moves():
    windows = readings.group_by("k").window("1 hour").agg(n=ps.count())
    ran = [run_local(windows, {"readings": epochs(seed)}, seed=seed, channels=3) for seed in range(10)]
    assert sum(each.rescaled for each in ran) > 5
    assert sum(each.moved for each in ran) > 5


def test_late_and_unfit_rows_are_told_apart():
    on_time = {"time": START + 60 * SECOND, "k": "a", "n": 1}
    late = {"time": START, "k": "a", "n": 2}
    timeless = {"time": None, "k": "a", "n": 3}
    ahead = {"time": dt.datetime(2999, 1, 1, tzinfo=dt.UTC), "k": "a", "n": 4}
    sums = readings.group_by("k").window("7 seconds").agg(n=ps.sum("n"))
    given = {"readings": [[on_time], [late, timeless, ahead]]}
    found = run_local(sums, given, seed=1, channels=2)
    assert found.accepted["readings"] == [on_time]
    assert found.late["readings"] == [late]
    assert found.rejected["readings"] == [timeless, ahead]


class Summed(ps.ArrowAggregate):
    """A sum in user code, whose rows may be formed anywhere."""

    state = {"total": "bigint"}  # noqa: RUF012
    result = "bigint"
    split = True

    def accumulate(self, groups, n, *columns):
        return pa.record_batch({"total": np.bincount(groups, columns[0], n).astype(np.int64)})

    def merge(self, left, right):
        return pa.record_batch({"total": pa.compute.add(left["total"], right["total"])})

    def finish(self, state):
        return state["total"]


def _in_tasks(file):
    return "dataflow" in file or "src/penstock/distribution" in file


def executed(names):
    """Of these functions of tasks, those that have run since; and how to stop looking."""
    seen = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_name in names and _in_tasks(frame.f_code.co_filename):
            seen.add(frame.f_code.co_name)

    sys.setprofile(look)
    return seen, lambda: sys.setprofile(None)


@pytest.mark.parametrize("keys", [["k"], []])
def test_partials_of_user_code_are_formed_in_other_channels(keys):
    windows = readings.group_by(*keys).window("7 seconds") if keys else readings.window("7 seconds")
    sums = windows.agg(n=Summed("n"))
    seen, stop = executed({"former", "_formed"})
    try:
        for seed in range(4):
            found = run_local(sums, {"readings": epochs(seed)}, seed=seed, channels=3)
            expected = Counter()
            for (start, key), n in plain(found.accepted["readings"]).items():
                expected[start, key if keys else None] += n
            rows = found.tables[0].to_pylist()
            assert {(row["window_start"], row.get("k")): row["n"] for row in rows} == expected
    finally:
        stop()
    assert seen == {"former", "_formed"}


def doubled(batch):
    return pa.record_batch({"n": pa.compute.multiply(batch["n"], 2)})


def test_a_map_by_cost_takes_rows_where_they_are_and_in_channels():
    made = readings.map(doubled, "n int", by="k")
    seen, stop = executed({"_stepped", "folded", "run_channel"})
    try:
        for seed in range(6):
            given = epochs(seed)
            found = run_local(made, {"readings": given}, seed=seed, channels=3)
            assert found.tables[0]["n"].to_pylist() == [2] * sum(map(len, given))
    finally:
        stop()
    assert len(seen) == 3


def test_a_map_in_channels_passes_a_late_row_that_its_windows_still_take():
    """The frontier is at 15 seconds, the window of 10 is open until 20: 11 counts, 9 is late."""
    times = [[20], [9, 11], [60]]
    given = [[{"time": START + at * SECOND, "k": "a", "n": at} for at in each] for each in times]
    made = readings.map(doubled, "n int", channels=True)
    found = run_local(made.window("10 seconds").agg(n=ps.sum("n")), {"readings": given}, seed=1, channels=2)
    assert [row["n"] for row in found.late["readings"]] == [9]
    assert sorted(found.tables[0]["n"].to_pylist()) == [22, 40, 120]


def test_rows_that_come_too_late_for_their_session_are_set_aside_as_they_came():
    times = [[0, 1, 2], [60], [3, 70], [120]]
    given = [[{"time": START + at * SECOND, "k": "a", "n": at} for at in each] for each in times]
    sums = readings.group_by("k").session("4 seconds").agg(n=ps.sum("n"))
    for seed in range(4):
        found = run_local(sums, {"readings": given}, seed=seed, channels=2)
        (judged,) = found.judged.values()
        assert judged.to_pylist() == [given[2][0]]
        assert sorted(found.tables[0]["n"].to_pylist()) == [3, 60, 70, 120]
        assert not found.clean


def test_several_outputs_and_steps_without_a_stage():
    many, few, _ = readings.split("n > 1", "n <= 1")
    given = {"readings": [[{"time": START, "k": "a", "n": 1}, {"time": START, "k": "b", "n": 2}]]}
    query = ps.outputs(many.select("k"), few.select("time", k="concat(k, k)"))
    found = run_local(query, given, seed=1, channels=2)
    assert [each.to_pylist() for each in found.tables] == [[{"k": "b"}], [{"time": START, "k": "aa"}]]


def test_what_only_spark_can_evaluate_is_told():
    with pytest.raises(NeedsSpark, match="sin"):
        run_local(readings.select(x="sin(n)"), {}, seed=1, channels=1)


def test_refusals_and_failures_are_those_of_a_run():
    with pytest.raises(WrongType):
        run_local(readings.union(readings.select("time", "k", n="n + 1L")), {}, seed=1, channels=1)
    rows = {"readings": [[{"time": START, "k": "a", "n": 2**31 - 1}]]}
    failing = readings.select("k", n="n + 1").group_by("k").window("7 seconds").agg(n=ps.max("n"))
    with pytest.raises(RunError, match="verflow"):
        run_local(failing, rows, seed=1, channels=1)


def given_to(graph: Graph):
    """The rows of a graph's streams, with times."""
    return {
        node.operator.name: [
            [
                {**row, node.time: None if row[node.time] is None else EPOCH + row[node.time] * MICRO}
                for row in epoch
            ]
            for epoch in graph.epochs[node.operator.name]
        ]
        for node in graph.nodes
        if isinstance(node.operator, Source)
    }


def check_graph(seed, **options):
    graph = generate(seed)
    judged = judge(graph)
    found = run_local(
        ps.outputs(*relations(graph)),
        given_to(graph),
        seed=seed,
        channels=graph.channels,
        strategy=graph.strategy,
        **options,
    )
    assert {name: len(rows) for name, rows in found.accepted.items()} == {
        name: len(rows) for name, rows in judged.accepted.items()
    }
    for table, place, expected in zip(
        found.tables, graph.outputs, evaluate(graph, judged.accepted), strict=True
    ):
        assert_alike(rows_of(table, graph.nodes[place]), expected, graph.nodes[place].columns)


@pytest.mark.parametrize("options", [{}, {"resume": True}], ids=["cut", "resumed"])
@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_give_what_the_batch_gives(spark, seed, options):
    with interpreting(spark):
        check_graph(seed, **options)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_graphs(spark, seed):
    with interpreting(spark):
        try:
            check_graph(seed, resume=bool(seed % 2))
        except NeedsSpark as needed:
            pytest.skip(str(needed))
