"""Semi and anti joins, joins by window and joins with a time to live, through whole runs."""

from collections import Counter

import numpy as np
import pytest

import penstock as ps
from rescales import AtRandom
from runtime.test_joins import at, calls, grid_of


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def drawn(seed, epochs=5, rows=150):
    """Rows of which a third have key 0, epoch by epoch; values tell rows apart."""
    rng, found = np.random.default_rng(seed), []
    for epoch in range(epochs):
        times = 100 * epoch + rng.integers(0, 100, rows)
        keys = np.where(rng.random(rows) < 0.33, 0, rng.integers(1, 60, rows))
        numbers = range(epoch * rows, (epoch + 1) * rows)
        found.append([(int(t), int(k), v) for t, k, v in zip(times, keys, numbers, strict=True)])
    return found


def every(epochs):
    return [row for epoch in epochs for row in epoch]


def test_kinds_of_joins_over_grids_rescales_and_epochs_give_what_a_batch_gives(tmp_path):
    left, right = drawn(11, epochs=4), drawn(12, epochs=4, rows=30)
    a, b = calls("a", *left, delay="100 ms"), calls("b", *right, delay="100 ms")
    half = ps.window("40 ms", slide="20 ms")
    joins = {
        "semi": a.join(b, "k", within="15 ms", how="semi"),
        "anti": a.join(b, "k", within="15 ms", how="anti", condition="l.v % 2 = 0"),
        "window": a.join(b, "k", window=half, how="left", suffixes=("_a", "_b")),
        "window anti": a.join(b, "k", window=half, how="anti").select("k", "v"),
        "keep": a.join(b, "k", keep=("30 ms", "5 ms"), time="left", suffixes=("_a", "_b")),
        "forever": a.join(b, "k", keep="forever", condition="l.v + r.v < 100", suffixes=("_a", "_b")),
    }
    sinks = [ps.memory() for _ in joins]
    moving = AtRandom(6, every=2, most=5)

    def policy(seen):
        """The hot key on a grid, then any number of channels."""
        if seen.epoch == 0:
            return [
                ps.Rescale(each.number, each.channels, spread=grid_of("left", 0, 0, 1))
                for each in seen.stages
            ]
        return moving(seen)

    run = ps.outputs(*joins.values()).start(*sinks, checkpoint=tmp_path, channels=12, policy=policy)
    run.wait()
    found = {name: sink.table().to_pylist() for name, sink in zip(joins, sinks, strict=True)}
    ours, theirs = every(left), every(right)
    near = {v for t, k, v in ours if any(j == k and abs(s - t) <= 15 for s, j, _ in theirs)}
    assert Counter(row["v"] for row in found["semi"]) == Counter(near)
    assert Counter(row["v"] for row in found["anti"]) == Counter(
        v for _, _, v in ours if v not in near or v % 2
    )
    assert {row["time"] for row in found["semi"]} <= {at(t) for t, *_ in ours}
    pairs, alone = Counter(), Counter()
    for t, k, v in ours:
        for start in range(t // 20 * 20, t // 20 * 20 - 40, -20):
            same = [w for s, j, w in theirs if j == k and start <= s < start + 40]
            pairs.update((start, v, w) for w in same or [None])
            alone.update([(start, v)] if not same else [])
    assert Counter((row["window_start"], row["v_a"], row["v_b"]) for row in found["window"]) == Counter(
        {(at(start), v, w): n for (start, v, w), n in pairs.items()}
    )
    assert Counter((row["window_start"], row["v"]) for row in found["window anti"]) == Counter(
        {(at(start), v): n for (start, v), n in alone.items()}
    )
    assert Counter((row["pair_time"], row["v_a"], row["v_b"]) for row in found["keep"]) == Counter(
        (at(t), v, w) for t, k, v in ours for s, j, w in theirs if j == k and -5 <= s - t <= 30
    )
    assert Counter((row["v_a"], row["v_b"]) for row in found["forever"]) == Counter(
        (v, w) for t, k, v in ours for s, j, w in theirs if j == k and v + w < 100
    )
    assert sum(each.rows for each in run.decisions) > 100


def test_windows_follow_a_join_that_keeps_rows_for_a_day_without_waiting_for_it():
    left = calls("a", [(0, 1, 1)], [(5000, 1, 2)], [(9000, 2, 3)])
    right = calls("b", [(10, 1, 7)], [(4990, 1, 8)], [(9000, 2, 9)])
    pairs = left.join(right, "k", keep="1 day", suffixes=("_a", "_b"))
    counted = pairs.group_by("k").window("1 second").agg(n=ps.count())
    sink, seen = ps.memory(), []
    run = counted.start(sink, policy=lambda _: seen.append(sink.table().num_rows) or [])
    run.wait()
    assert [(row["window_start"], row["n"]) for row in sink.table().to_pylist()] == [
        (at(0), 1),
        (at(4000), 1),
        (at(5000), 2),
        (at(9000), 1),
    ]
    assert seen[-1] == 3


def test_a_lone_row_leaves_at_once_where_the_condition_on_it_alone_is_false():
    left, right = calls("a", [(0, 1, 1), (1, 1, 5)], [(2, 1, 9)]), calls("b", [(0, 2, 0)], [(3, 2, 0)])
    joined = left.join(
        right, "k", within="1 hour", how="left", condition="l.v < 3 AND r.v > 0", suffixes=("_a", "_b")
    )
    sink, seen = ps.memory(), []
    joined.start(sink, policy=lambda _: seen.append(sorted(sink.table()["v_a"].to_pylist())) or []).wait()
    assert seen == [[5], [5, 9]]
    assert sorted(sink.table()["v_a"].to_pylist()) == [1, 5, 9]
