"""Joins through whole runs: hot keys, outer joins over epochs, restarts, errors."""

import datetime as dt
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from oracle import fetched
from penstock.connect import EpochId
from penstock.errors import BadJoin, BadMap, BadRescale, RunError
from penstock.routing import HashPair, Ring, Spread
from penstock.routing.spark_hash import spark_hash
from rescales import AtRandom

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def at(milliseconds):
    return START + dt.timedelta(milliseconds=int(milliseconds))


def calls(name, *epochs, **options):
    """A stream of (millisecond, key, value) tuples, one list per epoch."""
    rows = [[{"time": at(t), "k": k, "v": int(v)} for t, k, v in epoch] for epoch in epochs]
    return ps.stream(name, "time timestamp, k bigint, v bigint", "time", source=ps.rows(rows), **options)


def collected(relation, **options):
    sink = ps.memory()
    run = relation.start(sink, **options)
    run.wait()
    return sink.table().to_pylist(), run


def hot(seed, rows=1500, share=0.8):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 1000, rows))
    keys = np.where(rng.random(rows) < share, 7, rng.integers(100, 200, rows))
    return [(int(t), int(k), place) for place, (t, k) in enumerate(zip(times, keys, strict=True))]


def pairs(left, right, within):
    return Counter((a, b) for s, k, a in left for t, j, b in right if k == j and abs(s - t) <= within)


def test_a_hot_key_is_spread_over_channels_and_every_pair_is_delivered_once(tmp_path):
    left, right = hot(1), hot(2)
    joined = calls("a", left[:900], left[900:]).join(
        calls("b", right[:900], right[900:]), "k", within="3 milliseconds", suffixes=("_a", "_b")
    )
    found, run = collected(joined, channels=4, checkpoint=tmp_path)
    assert Counter((row["v_a"], row["v_b"]) for row in found) == pairs(left, right, 3)
    (stage,) = run._epochs.last.plan.stages
    assert 7 in {row["k"] for row in found}
    assert max(stage.own.grids.sizes) > 1


def shifting(seed, epochs, rows=120):
    """Rows of which half have one key, another one in every third epoch; the first epochs are small."""
    rng, found = np.random.default_rng(seed), []
    for epoch in range(epochs):
        times = 100 * epoch + np.sort(rng.integers(0, 100, rows))
        keys = np.where(rng.random(rows) < 0.5, epoch // 3, rng.integers(10, 40, rows))
        numbers = range(epoch * rows, (epoch + 1) * rows)
        found.append([(int(t), int(k), v) for t, k, v in zip(times, keys, numbers, strict=True)])
    return found


def hashed(key):
    return int(spark_hash([pa.array([key], pa.int64())], 1).view(np.int64)[0])


def grid_of(how, key, *cells):
    """A grid on which the join is exact: an outer one may copy one side only, or judges each row once."""
    columns = {"inner": 2, "left": len(cells), "right": 1, "full": len(cells) - 1}[how]
    return Spread((hashed(key),), (len(cells),), (columns,), cells)


@pytest.mark.parametrize("how", ["left", "full", pytest.param("inner", marks=pytest.mark.soak)])
def test_grids_change_while_a_run_goes_on(tmp_path, how):
    """Epoch by epoch: found, as they are, changed, changed at a rescale, given up, found, too wide."""
    left, right = shifting(5, 8), shifting(6, 8)
    joined = calls("a", *left, delay="20 ms").join(
        calls("b", *right, delay="20 ms"), "k", within="150 ms", how=how, suffixes=("_a", "_b")
    )
    moving = HashPair(np.zeros(0, np.uint64), np.zeros(0, np.int32), Ring(3))
    wishes = {
        0: ps.Rescale(0, 4, spread=grid_of(how, 0, 3, 0, 1)),
        2: ps.Rescale(0, 4, spread=grid_of(how, 1, 0, 1, 2, 3)),
        3: ps.Rescale(0, 3, router=moving, spread=grid_of(how, 1, 2, 0)),
        4: ps.Rescale(0, 3, spread=Spread()),
        5: ps.Rescale(0, 5, "balanced", spread=grid_of(how, 2, 4, 2, 1)),
        6: ps.Rescale(0, 4),
    }
    found, run = collected(
        joined,
        checkpoint=tmp_path,
        channels=4,
        most_moved=2_000,
        keep_epochs=20,
        policy=lambda seen: [wishes[seen.epoch]] if seen.epoch in wishes else [],
    )
    every, others = ([row for epoch in side for row in epoch] for side in (left, right))
    wanted = pairs(every, others, 150)
    matched = {one for one, _ in wanted}, {other for _, other in wanted}
    if how in {"left", "full"}:
        wanted.update((v, None) for *_, v in every if v not in matched[0])
    if how == "full":
        wanted.update((None, v) for *_, v in others if v not in matched[1])
    assert Counter((row["v_a"], row["v_b"]) for row in found) == wanted
    # Too few rows for a search in the first epoch: nothing is known, instead of no hot keys for ever.
    kept = [
        run._epochs.works.checkpoint.manifest(EpochId(epoch)).plan.stages[0].own.grids for epoch in range(8)
    ]
    sizes = [each and {key: len(cells) for key, (_, cells) in each.grids.items()} for each in kept]
    zero, one, two = hashed(0), hashed(1), hashed(2)
    assert sizes == [None, {zero: 3}, {zero: 3}, {one: 4}, {one: 2}, {}, {two: 3}, {}]
    assert all(each.rows for each in run.decisions)


def test_grids_on_which_a_join_is_not_exact_are_refused():
    a, b, names = calls("a", [(0, 1, 1)]), calls("b", [(0, 1, 1)]), ("_a", "_b")
    within = {"within": "1 second", "suffixes": names}
    inner = a.join(b, "k", **within)
    counted = inner.group_by("k").window("1 second").agg(n=ps.count())
    apart = a.where("v > 0").join(b, "k", **within)
    relations = (
        a.join(b, "k", how="left", **within),
        a.join(b, "k", how="full", **within),
        a.join(b, "k", last=2, suffixes=names),
        a.cross(b, **within),
        apart,
        counted,
    )
    sinks = [ps.memory() for _ in relations]
    run = ps.outputs(*relations).start(*sinks, channels=6)
    run.wait()
    stages = [each.number for each in run._epochs.works.graph.stages if each.stage.host is None]
    narrow, wide = grid_of("inner", 1, 0, 1, 2), grid_of("left", 1, 0, 1)
    twice = Spread((1, 1), (1, 1), (1, 1), (0, 1))
    for stage, spread, message in [
        (0, narrow, "the right side only"),
        (1, wide, "one channel judges each row; give 1 column or more, and fewer than channels"),
        (2, wide, "no side"),
        (3, wide, "no key to spread"),
        (4, grid_of("inner", 1, 0, 3), "beyond the 3"),
        (4, twice, "twice"),
        (5, narrow, "stage 6 runs in the channels of stage 5"),
    ]:
        with pytest.raises(BadRescale, match=message):
            run._epochs.requests.check(ps.Rescale(stages[stage], 3, spread=spread))
    run._epochs.requests.check(ps.Rescale(stages[4], 3, spread=narrow))


def merged_joins(epochs):
    """A join within the channels of windows, one of both within the channels of both, and windows over it."""
    stream = calls("a", *epochs, delay="10 ms")
    windows = stream.group_by("k", "v").window("20 ms", slide="10 ms").agg(n=ps.count(), top=ps.max("time"))
    few, many = windows.where("n < 3"), windows.where("v > 0").select("k", "v", "window_start", m="n")
    both = few.join(many, ["v", "k"], within="30 ms", how="full", suffixes=("", "_2"))
    again = both.join(few, ["k", "v"], within="10 ms", suffixes=("", "_3"))
    return both, again.group_by("k", "v").window("40 ms").agg(pairs=ps.count(), total=ps.sum("m"))


def test_joins_in_the_channels_of_what_feeds_them_give_what_they_give_in_their_own(tmp_path):
    rng = np.random.default_rng(8)
    keys = [None, 1, 2, 3, 4, 5]
    epochs = [
        [
            (100 * epoch + t, keys[k], v)
            for t, k, v in zip(
                np.sort(rng.integers(0, 100, 90)), rng.integers(0, 6, 90), rng.integers(0, 3, 90), strict=True
            )
        ]
        for epoch in range(3)
    ]
    results = []
    for strategy, policy in (("query", None), ("subquery", None), ("subquery", AtRandom(4, every=1, most=6))):
        sinks = ps.memory(), ps.memory()
        query = ps.outputs(*merged_joins(epochs))
        moved = {} if policy is None else {"policy": policy, "most_moved": 40_000}
        run = query.start(
            *sinks, checkpoint=tmp_path / str(len(results)), strategy=strategy, channels=4, **moved
        )
        run.wait()
        hosts = [each.stage.host for each in run._epochs.works.graph.stages]
        assert hosts == ([None] * 4 if strategy == "query" else [None, 0, 1, 2])
        results.append([Counter(map(repr, sink.table().to_pylist())) for sink in sinks])
    assert all(results[0])
    assert results[0] == results[1] == results[2]
    assert sum(each.rows for each in run.decisions) > 100


def test_a_product_with_the_last_rows_in_channels_that_come_and_go(tmp_path):
    rng, last = np.random.default_rng(9), 40
    left, right = ([list(zip(times, times, times, strict=True)) for times in each] for each in _times(rng, 5))
    product = calls("a", *left, delay="20 ms").cross(
        calls("b", *right, delay="20 ms"), "l.v + r.v < 1500", last=last, suffixes=("_a", "_b")
    )
    wishes = {0: ps.Rescale(0, 5), 2: ps.Rescale(0, 2), 3: ps.Rescale(0, 3)}
    found, run = collected(
        product,
        checkpoint=tmp_path,
        channels=3,
        policy=lambda seen: [wishes[seen.epoch]] if seen.epoch in wishes else [],
    )
    every = sorted(
        [(t, 0) for epoch in left for t, *_ in epoch] + [(t, 1) for epoch in right for t, *_ in epoch]
    )
    seen, wanted = ([], []), Counter()
    for time, side in every:
        for other in seen[1 - side][-last:]:
            if time + other < 1500:
                wanted[(time, other) if side == 0 else (other, time)] += 1
        seen[side].append(time)
    assert Counter((row["v_a"], row["v_b"]) for row in found) == wanted
    assert [each.after for each in run.decisions] == [5, 2, 3]
    assert min(each.rows for each in run.decisions if each.after > each.before) > 0


def _times(rng, epochs):
    """Distinct times of both sides, epoch by epoch, not in order."""
    return [[rng.permutation(200)[:60] + 200 * epoch for epoch in range(epochs)] for _ in range(2)]


def test_windows_beside_a_join_see_their_key_whole():
    left, right = hot(3), hot(4)
    joined = calls("a", left).join(calls("b", right), "k", within="2 milliseconds", suffixes=("_a", "_b"))
    counted = joined.group_by("k").window("1 second").agg(n=ps.count())
    found, _ = collected(counted, channels=4)
    expected = Counter()
    for s, k, _a in left:
        expected[k] += sum(1 for t, j, _b in right if j == k and abs(s - t) <= 2)
    assert {row["k"]: row["n"] for row in found} == {k: n for k, n in expected.items() if n}


@pytest.mark.parametrize("how", ["left", "right", "full"])
def test_outer_joins_deliver_lone_rows_when_they_can_match_no_more(how):
    left = calls("a", [(0, 1, 10), (5, 2, 20)], [(40, 1, 30)])
    right = calls("b", [(2, 1, 11)], [(60, 3, 12)])
    found, _ = collected(left.join(right, "k", within="10 ms", how=how, suffixes=("_a", "_b")), channels=3)
    lone = {
        "left": [(20, None), (30, None)],
        "right": [(None, 12)],
        "full": [(20, None), (30, None), (None, 12)],
    }
    assert Counter((row["v_a"], row["v_b"]) for row in found) == Counter([(10, 11), *lone[how]])


def test_the_last_rows_of_a_key_precede():
    left = calls("a", [(10, 1, 1), (30, 1, 2)])
    right = calls("b", [(0, 1, 5), (5, 1, 6), (20, 1, 7)])
    found, _ = collected(left.join(right, "k", last=1, suffixes=("_a", "_b")), channels=2)
    assert {(row["v_a"], row["v_b"], row["pair_time"]) for row in found} == {
        (1, 6, at(10)),
        (1, 7, at(20)),
        (2, 7, at(30)),
    }


def test_at_equal_times_every_left_row_goes_before_every_right_row():
    # Eight ties, so that their digests alone would order at least one of them the other way about.
    left = calls("a", [(t, 1, t) for t in range(8)])
    right = calls("b", [(t, 1, 100 + t) for t in range(8)])
    found, _ = collected(left.join(right, "k", last=1, suffixes=("_a", "_b")), channels=1)
    with_left = {(row["v_a"], row["v_b"]) for row in found if row["pair_time"] == at(row["v_b"] - 100)}
    assert with_left == {(t, 100 + t) for t in range(8)}


def test_a_run_goes_on_with_the_rows_that_it_kept(tmp_path):
    source = ps.rows([[{"time": at(0), "k": 1, "v": 1}], [{"time": at(4), "k": 1, "v": 2}]])
    stream = ps.stream("a", "time timestamp, k bigint, v bigint", "time", source=source)
    joined = stream.join(stream, "k", within="5 ms", condition="l.v < r.v", suffixes=("_1", "_2"))
    found, run = collected(joined, checkpoint=tmp_path)
    assert [(row["v_1"], row["v_2"]) for row in found] == [(1, 2)]
    again, _ = collected(joined, checkpoint=tmp_path)
    assert again == []
    assert run.counts.rows == 2


def test_best_effort_does_not_wait_for_a_slower_stage_and_sets_its_results_aside(tmp_path):
    fast = calls("fast", [(0, 1, 1), (100, 1, 1)], [(200, 1, 1)], [(300, 1, 1)])
    slow = calls("slow", [(0, 2, 1)], [(15, 2, 1)], [(60, 2, 1)])
    counted = [each.group_by("k").window("10 ms").agg(n=ps.count()) for each in (fast, slow)]
    total = counted[0].union(counted[1]).group_by("k").window("20 ms").agg(n=ps.sum("n"))
    exact, _ = collected(total)
    assert sum(row["n"] for row in exact) == 7
    found, run = collected(total, merging="best effort", checkpoint=tmp_path)
    assert run.counts.late > 0
    kept = fetched(f"SELECT sum(n) FROM '{tmp_path}/late/stage-*/*.parquet'")[0][0]
    assert sum(row["n"] for row in found) + int(kept) == 7


def test_several_sinks_of_one_query():
    stream = calls("a", [(0, 1, 1), (1, 2, 200)], [(2, 1, 3)])
    high, low = stream.split("v > 100")
    one, other, counts = ps.memory(), ps.memory(), ps.memory()
    counted = low.group_by("k").window("1 second").agg(n=ps.count())
    ps.outputs(high, low, counted).start(one, other, counts).wait()
    assert one.table()["v"].to_pylist() == [200]
    assert other.table()["v"].to_pylist() == [1, 3]
    assert counts.table().select(["k", "n"]).to_pylist() == [{"k": 1, "n": 2}]


def test_a_map_that_changes_the_number_of_rows_is_refused():
    mapped = calls("a", [(0, 1, 1), (1, 2, 2)]).map(lambda batch: batch.slice(0, 1), "k bigint, v bigint")
    with pytest.raises(BadMap, match="returned 1 rows for 2"):
        collected(mapped)


def test_nothing_follows_an_outer_join_with_the_last_rows():
    joined = calls("a", []).join(calls("b", []), "k", last=2, how="left", suffixes=("_a", "_b"))
    with pytest.raises(BadJoin, match="of any age"):
        joined.window("1 second").agg(n=ps.count()).start(ps.memory())


@pytest.mark.parametrize("option", [{"strategy": "clever"}, {"merging": "fast"}, {"channels": 0}])
def test_options_are_checked(option):
    with pytest.raises(RunError, match=next(iter(option))):
        calls("a", []).window("1 second").agg(n=ps.count()).start(ps.memory(), **option)


def test_a_join_in_sql_with_a_condition_over_times():
    stream = calls("calls", [(0, 1, 0), (4000, 1, 500), (5000, 2, 0)], [(9000, 1, 505), (9500, 2, 1)])
    frauds = ps.sql(
        """SELECT c.k, c.v AS from_, d.v AS to_ FROM calls AS c JOIN calls AS d
           ON c.k = d.k AND c.time < d.time
           AND abs(d.v - c.v) > 10 * timestampdiff(SECOND, c.time, d.time) WITHIN 1 MINUTE""",
        stream,
    )
    found, _ = collected(frauds, channels=2)
    assert {(row["k"], row["from_"], row["to_"]) for row in found} == {(1, 0, 500), (1, 0, 505)}


def test_a_join_in_sql_under_windows():
    left, right = calls("a", [(0, 1, 1), (5, 2, 2)]), calls("b", [(1, 1, 10), (400, 1, 11)])
    counted = ps.sql(
        """SELECT a.k, count(*) AS n
           FROM a JOIN b ON a.k = b.k WITHIN 100 MILLISECONDS [RANGE 1 SECOND] GROUP BY a.k""",
        left,
        right,
    )
    found, _ = collected(counted, channels=3)
    assert [(row["k"], row["n"]) for row in found] == [(1, 1)]


def test_a_union_of_results_with_themselves_delivers_all_twice():
    counted = calls("a", [(0, 1, 1), (1, 2, 5)]).group_by("k").window("1 second").agg(n=ps.count())
    found, _ = collected(counted.union(counted))
    assert sorted(row["k"] for row in found) == [1, 1, 2, 2]


def test_results_go_on_in_the_channel_and_to_another_stage_alike():
    left, right = calls("a", [(0, 1, 1), (5, 2, 2)]), calls("b", [(1, 1, 10), (6, 2, 11)])
    pairs = left.join(right, "k", within="100 ms", suffixes=("_a", "_b"))
    beside = pairs.group_by("k").window("1 second").agg(n=ps.count())
    apart = pairs.group_by("v_b").window("1 second").agg(n=ps.count())
    one, other, plain = ps.memory(), ps.memory(), ps.memory()
    ps.outputs(beside, apart, pairs).start(one, other, plain, channels=4).wait()
    assert sorted(one.table()["k"].to_pylist()) == [1, 2]
    assert sorted(other.table()["v_b"].to_pylist()) == [10, 11]
    assert plain.table().num_rows == 2
