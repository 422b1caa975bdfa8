"""The levels of an epoch: which stages share an exchange, and runs over chains, unions, hops and relays."""

import datetime as dt
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.cases import Total
from penstock.compile import cut, optimise
from penstock.connect import ResultFormat
from penstock.distribution import Everywhere, Runs
from penstock.query import outputs as query_of
from penstock.runtime.dataflow.tasks import FORM, HOME
from penstock.runtime.graph import build
from penstock.runtime.levels import level_of_stages, levels_of
from penstock.runtime.records import EpochPlan, StagePlan
from penstock.runtime.spark.frames import typed
from penstock.state.storage import Location
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SCHEMA = "window_start timestamp, window_end timestamp, k bigint, n bigint"


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def drawn(epochs=4, rows=60, seed=4):
    """Tuples in the order of time, as if they were results of windows: a key and a number each."""
    rng = np.random.default_rng(seed)
    return [
        [
            {
                "window_start": START + dt.timedelta(seconds=20 * epoch + 20 * row / rows),
                "window_end": START,
                "k": int(rng.integers(7)),
                "n": int(rng.integers(1, 9)),
            }
            for row in range(rows)
        ]
        for epoch in range(epochs)
    ]


EPOCHS = drawn()
ROWS = [row for epoch in EPOCHS for row in epoch]


def tuples():
    return ps.stream("s", SCHEMA, "window_start", source=ps.rows(EPOCHS))


def every(relation, seconds, key="k"):
    """Sums of windows by a key, which is the k of the result."""
    return relation.group_by(k=key).window(f"{seconds} seconds").agg(n=ps.sum("n"))


def kind(relation, name):
    return relation.select("window_start", "window_end", "k", "n", kind=f"'{name}'")


def counted(relation):
    """What came, by kind and key."""
    return relation.group_by("kind", "k").window("1 hour").agg(total=ps.sum("n"), rows=ps.count())


def skipping():
    """The last stage gets tuples of the stream, of a stage two levels up, and of the one before it."""
    tens = every(tuples(), 10)
    minutes = every(tens, 60, "n % 3")
    return counted(kind(minutes, "b").union(kind(tens, "a")).union(kind(tuples(), "s")))


def floor(time, seconds):
    return int((time - START).total_seconds()) // seconds


def grouped(rows, seconds):
    """The sums of windows, by window and key."""
    found = Counter()
    for at, key, n in rows:
        found[at // seconds * seconds, key] += n
    return [(at, key, n) for (at, key), n in found.items()]


PLAIN = [(floor(row["window_start"], 1), row["k"], row["n"]) for row in ROWS]
TENS = grouped(PLAIN, 10)
# By another key, so that the channels are others than those of the tens.
MINUTES = grouped([(at, n % 3, n) for at, _, n in TENS], 60)


def totals(**kinds):
    found = {}
    for name, rows in kinds.items():
        for _, key, n in rows:
            total, count = found.get((name, key), (0, 0))
            found[name, key] = total + n, count + 1
    return found


def ran(relation, tmp_path, **options):
    sink = ps.memory()
    run = relation.start(sink, tmp_path / "state", **({"channels": 6} | options))
    run.wait()
    assert run.counts.rows == len(ROWS)
    assert run.counts.late == 0
    assert not list((tmp_path / "state" / "between").iterdir())
    return sink.table().to_pylist()


def shown(rows):
    assert len(rows) == len({(row["kind"], row["k"]) for row in rows})
    return {(row["kind"], row["k"]): (row["total"], row["rows"]) for row in rows}


# Which stages share an exchange.

ONE_HOP, TWO_HOPS = Everywhere(channels=2), Everywhere(channels=2, forming=Runs(64))


def levels(session, *relations, layouts=None, staying=(), strategy="subquery"):
    """The level of each stage, and (stage, hop) of each exchange."""
    subqueries = cut(optimise(query_of(*relations)).query, strategy)
    nowhere = Location("/nowhere")
    sinks = [_Nowhere(ResultFormat(nowhere, "parquet")) for _ in relations]
    graph = build(partial(typed, session), subqueries, sinks, ResultFormat(nowhere, "parquet"), nowhere)
    stages = (
        StagePlan(2) if each.hosted else StagePlan.of((layouts or {}).get(each.number, ONE_HOP))
        for each in graph.stages
    )
    plan = EpochPlan(tuple(stages), 0)
    parts = levels_of(graph, plan, staying)
    for each in parts:
        assert [part.first for part in each] == [2 * place for place in range(len(each))]
    found = level_of_stages(graph, plan, staying)
    return [found[each.number] for each in graph.stages], [
        [(part.stage, part.hop) for part in each] for each in parts
    ]


class _Nowhere:
    def __init__(self, target):
        self.target = target


def test_a_chain_has_a_level_for_each_stage(spark):
    chain = every(every(every(tuples(), 10), 20, "n % 3"), 60, "n % 5")
    assert levels(spark, chain) == ([0, 1, 2], [[(0, HOME)], [(1, HOME)], [(2, HOME)]])


def test_stages_that_nothing_orders_share_an_exchange(spark):
    tens, twenties = every(tuples(), 10), every(tuples(), 20, "n % 3")
    assert levels(spark, tens, twenties) == ([0, 0], [[(0, HOME), (1, HOME)]])


def test_a_stage_comes_after_all_that_feed_it(spark):
    assert levels(spark, skipping()) == ([0, 1, 2], [[(0, HOME)], [(1, HOME)], [(2, HOME)]])


def test_a_second_hop_is_a_level_of_its_own(spark):
    chain = every(tuples(), 10).window("1 minute").agg(total=Total("n"))
    assert levels(spark, chain, layouts={1: TWO_HOPS}) == ([0, 2], [[(0, HOME)], [(1, FORM)], [(1, HOME)]])
    stages = tuples().window("10 seconds").agg(n=Total("n")).group_by("n").window("1 minute")
    found = levels(spark, stages.agg(total=Total("n")), layouts={0: TWO_HOPS, 1: TWO_HOPS})
    assert found == ([1, 3], [[(0, FORM)], [(0, HOME)], [(1, FORM)], [(1, HOME)]])


def test_a_step_of_spark_lies_between_two_exchanges(spark):
    exploded = every(tuples(), 10).explode(part="split(cast(n AS string), '')")
    stages = exploded.group_by("part").window("1 minute").agg(n=ps.count())
    assert levels(spark, stages) == ([0, 2], [[(0, HOME)], [], [(1, HOME)]])
    # At the end a last job writes what it makes.
    assert levels(spark, exploded) == ([0], [[(0, HOME)], []])


def test_a_stage_that_stays_is_where_its_rows_are(spark):
    mapped = every(tuples(), 10).map(lambda batch: batch, "k bigint, n bigint", channels=True)
    counts = mapped.group_by("n").window("1 minute").agg(rows=ps.count())
    assert levels(spark, counts) == ([0, 1, 2], [[(0, HOME)], [(1, HOME)], [(2, HOME)]])
    assert levels(spark, counts, staying={1}) == ([0, 0, 1], [[(0, HOME)], [(2, HOME)]])


# Whole runs.


@pytest.mark.parametrize("strategy", ["subquery", "operator", "query"])
def test_chains_unions_and_rows_that_skip_levels(tmp_path, strategy):
    found = ran(skipping(), tmp_path, strategy=strategy, channels=9)
    assert shown(found) == totals(s=PLAIN, a=TENS, b=MINUTES)


def test_steps_of_spark_between_stages_and_at_the_end(tmp_path):
    digits = every(tuples(), 10).explode(part="split(cast(n AS string), '')").where("part <> ''")
    counts = digits.group_by("part").window("1 minute").agg(n=ps.count())
    both = counts.explode(copy="array(1, 2)").select("window_start", "part", "n", "copy")
    found = Counter()
    for row in ran(both, tmp_path):
        found[row["part"], row["copy"]] += row["n"]
    expected = Counter((digit, copy) for _, _, n in TENS for digit in str(n) for copy in (1, 2))
    assert found == expected


def test_rows_are_relayed_past_a_step_of_spark(tmp_path):
    """Tuples of the stream wait two levels for those that pass through Spark."""
    tens = every(tuples(), 10)
    doubled = tens.explode(copy="array(1, 2)").select("window_start", "window_end", "k", "n")
    found = ran(counted(kind(doubled, "d").union(kind(tuples(), "s"))), tmp_path)
    assert shown(found) == totals(s=PLAIN, d=TENS * 2)


def test_a_stream_that_only_spark_steps_read(tmp_path):
    doubled = tuples().explode(copy="array(1, 2)").select("window_start", "window_end", "k", "n")
    found = ran(counted(kind(doubled, "d")), tmp_path)
    assert shown(found) == totals(d=PLAIN * 2)


@pytest.mark.parametrize("dealing", ["runs", "round robin"])
def test_two_hops_behind_a_stage_beside_one_that_needs_none(tmp_path, dealing):
    tens = every(tuples(), 10)
    lone = tens.window("1 minute").agg(total=Total("n"))
    sinks = ps.memory(), ps.memory()
    query = ps.outputs(lone, every(tens, 60, "n % 3"))
    run = query.start(*sinks, checkpoint=tmp_path, channels=6, dealing=dealing)
    run.wait()
    sums = {row["window_start"]: row["total"] for row in sinks[0].table().to_pylist()}
    expected = {}
    for at, _, n in TENS:
        expected.setdefault(START + dt.timedelta(seconds=at // 60 * 60), []).append(n)
    assert sums == {start: 1000 * sum(each) + max(each) for start, each in expected.items()}
    found = Counter({(row["window_start"], row["k"]): row["n"] for row in sinks[1].table().to_pylist()})
    assert found == Counter({(START + dt.timedelta(seconds=at), key): n for at, key, n in MINUTES})


def test_a_function_that_stays_where_its_rows_are_between_two_stages(tmp_path):
    def twice(batch):
        return pa.record_batch({"k": batch["k"], "n": pa.compute.multiply(batch["n"], 2)})

    mapped = every(tuples(), 10).map(twice, "k bigint, n bigint", channels=True)
    sums = mapped.group_by("k").window("1 hour").agg(total=ps.sum("n"), rows=ps.count())
    found = {row["k"]: (row["total"], row["rows"]) for row in ran(sums, tmp_path)}
    expected = totals(x=[(at, key, 2 * n) for at, key, n in TENS])
    assert found == {key: each for (_, key), each in expected.items()}


def test_one_channel_for_each_stage_relays_as_well(tmp_path):
    assert shown(ran(skipping(), tmp_path, channels=1)) == totals(s=PLAIN, a=TENS, b=MINUTES)
