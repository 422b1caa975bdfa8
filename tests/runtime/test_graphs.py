"""Random query graphs on Spark: what is delivered equals a batch engine's answer and the serial run's.

A failing case is named by its seed: `pytest tests/runtime/test_graphs.py -k "[17]"` runs that one alone.
"""

import datetime as dt

import pytest

import penstock as ps
from compile.reverted import judged_late
from graphs.accepted import judge
from graphs.batch import evaluate
from graphs.build import relations, run
from graphs.compare import assert_alike, multiset
from graphs.generate import generate
from sessions import interpreting

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


@pytest.fixture(scope="module")
def interpreted(spark):
    with interpreting(spark):
        yield spark


def check(seed, graph):
    # Shown with a failure.
    print(f"seed {seed}: {graph.channels} channels, {graph.strategy}:", *relations(graph), sep="\n")  # noqa: T201
    judged = judge(graph)
    parallel = run(graph)
    expected = evaluate(graph, judged.accepted)
    for place, found, wanted in zip(graph.outputs, parallel.rows, expected, strict=True):
        assert_alike(found, wanted, graph.nodes[place].columns)
    assert (parallel.late, parallel.rejected) == (judged.late + judged_late(graph), judged.rejected)
    return parallel


def check_serial(graph, parallel):
    serial = run(graph, channels=1)
    assert [multiset(rows) for rows in parallel.rows] == [multiset(rows) for rows in serial.rows]
    assert (parallel.late, parallel.rejected) == (serial.late, serial.rejected)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_random_graph_gives_what_a_batch_engine_gives(interpreted, seed):
    graph = generate(seed, operators=3, epochs=2)
    parallel = check(seed, graph)
    if seed == 0:
        check_serial(graph, parallel)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_300))
def test_three_hundred_random_graphs_give_what_a_batch_engine_and_serial_runs_give(interpreted, seed):
    graph = generate(seed)
    check_serial(graph, check(seed, graph))


@pytest.mark.parametrize("contradiction", ["1 = 2", "v > 1 AND NOT v > 1", "crc32('x') = 1"])
def test_time_passes_though_spark_knows_that_a_condition_is_never_true(spark, tmp_path, contradiction):
    epochs = [[{"time": EPOCH + second * SECOND, "v": second}] for second in (10, 1)]
    given = ps.stream("given", "time timestamp, v int", time="time", source=ps.rows(epochs))
    started = given.where(contradiction).window("1 second").agg(n=ps.count()).start(ps.memory(), tmp_path)
    started.wait()
    assert started.counts.late == 1
