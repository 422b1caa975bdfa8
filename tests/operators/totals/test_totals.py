"""Aggregation without a window: what each epoch changes, and when a group is forgotten."""

import random

import pytest

import penstock as ps
from operators.contract import KernelRun, added_up
from penstock.errors import BadAggregate, BadName

EVENTS = ps.stream("events", "time timestamp, k bigint, v bigint, x double", time="time")


def row(time, key, value=1, x=0.0):
    return {"time": time, "k": key, "v": value, "x": x}


def steps(running, *epochs):
    """The results of each epoch of rows; the frontier is the latest time so far."""
    found, latest = [], 0
    for rows in epochs:
        before = len(running.results)
        latest = max([latest, *(each["time"] for each in rows)])
        running.step([rows], (latest,))
        found.append(running.results[before:])
    return found


def test_an_epoch_gives_the_groups_that_it_changed(tmp_path):
    running = KernelRun(EVENTS.group_by("k").agg(n=ps.count(), top=ps.max("v")), tmp_path)
    first, second, third = steps(running, [row(1, 1), row(2, 2)], [row(3, 1)], [])
    assert sorted(first) == [("insert", 1, 1, 1), ("insert", 2, 1, 1)]
    assert second == [("retract", 1, 1, 1), ("update", 1, 2, 1)]
    assert third == []


def test_without_a_key_all_tuples_are_one_group(tmp_path):
    running = KernelRun(EVENTS.agg(n=ps.count(), top=ps.max("v"), keep="10 us"), tmp_path, channels=3)
    found = steps(running, [row(1, 1), row(2, 2)], [row(3, 1, 7)], [], [row(30, 1)])
    assert found == [
        [("insert", 2, 1)],
        [("retract", 2, 1), ("update", 3, 7)],
        [],
        [("retract", 3, 7), ("update", 4, 7)],
    ]


def test_a_result_that_stays_the_same_is_not_given(tmp_path):
    running = KernelRun(EVENTS.group_by("k").agg(top=ps.max("v")), tmp_path)
    assert steps(running, [row(1, 1, 5)], [row(2, 1, 3)])[1] == []
    assert steps(running, [row(3, 1, 9)])[0] == [("retract", 1, 5), ("update", 1, 9)]


def test_tuples_of_any_age_count(tmp_path):
    running = KernelRun(EVENTS.group_by("k").agg(n=ps.count()), tmp_path)
    assert steps(running, [row(10**9, 1)], [row(1, 1)])[1] == [("retract", 1, 1), ("update", 1, 2)]


def test_zeros_and_nans_are_one_key_each(tmp_path):
    running = KernelRun(EVENTS.group_by("x").agg(n=ps.count()), tmp_path, channels=3)
    nan = float("nan")
    first, second = steps(
        running, [row(1, 1, 1, 0.0), row(1, 1, 1, nan)], [row(2, 1, 1, -0.0), row(2, 1, 1, nan)]
    )
    assert len(first) == 2
    assert sorted(each[0] for each in second) == ["retract", "retract", "update", "update"]


def test_a_group_is_forgotten_when_the_frontier_is_far_past_its_latest_tuple(tmp_path):
    running = KernelRun(EVENTS.group_by("k").agg(n=ps.count(), keep="10 us"), tmp_path)
    found = steps(running, [row(0, 1), row(1, 2)], [row(5, 2)], [row(10, 3)], [row(11, 1), row(11, 2)])
    # The frontier of the third epoch is 10 past the tuple of key 1, and 5 past the last of key 2.
    assert sorted(found[3]) == [("insert", 1, 1), ("retract", 2, 2), ("update", 2, 3)]


@pytest.mark.parametrize("seed", range(4))
def test_groups_with_a_time_to_live_follow_a_plain_model(tmp_path, seed):
    rng, keep = random.Random(seed), 12
    print(f"seed {seed}")  # noqa: T201
    relation = EVENTS.group_by("k").agg(n=ps.count(), total=ps.sum("v"), keep=f"{keep} us")
    running = KernelRun(relation, tmp_path, channels=3, seed=seed, restless=True)
    model, frontier = {}, None
    for _ in range(25):
        low = 0 if frontier is None else frontier - 30
        rows = [
            row(rng.randint(low, low + 40), rng.randint(0, 5), rng.randint(0, 9))
            for _ in range(rng.randint(0, 5))
        ]
        bound = None if frontier is None else (frontier - keep) // keep * keep
        before, found = dict(model), len(running.results)
        for each in rows:
            if bound is None or each["time"] >= bound:
                latest, n, total = model.get(each["k"], (each["time"], 0, 0))
                model[each["k"]] = max(latest, each["time"]), n + 1, total + each["v"]
        frontier = (
            max([each["time"] for each in rows], default=frontier)
            if frontier is None
            else max([frontier, *(each["time"] for each in rows)])
        )
        running.step([rows], (frontier,))
        told = [("insert", key, *value[1:]) for key, value in before.items()]
        after = added_up([*told, *running.results[found:]], 1)
        assert sorted(after) == sorted((key, *value[1:]) for key, value in model.items())
        model = {key: value for key, value in model.items() if frontier is None or value[0] + keep > frontier}


def test_refuses_what_cannot_be():
    with pytest.raises(BadAggregate, match="longer than no time"):
        EVENTS.group_by("k").agg(n=ps.count(), keep="0 seconds")
    with pytest.raises(BadAggregate, match="how long a group is kept"):
        EVENTS.group_by("k").agg(keep=ps.count())
    with pytest.raises(BadAggregate, match="without a key and without an aggregate"):
        EVENTS.agg()


def test_the_first_rows_of_a_key_are_replaced_as_a_whole(tmp_path):
    first = EVENTS.group_by("k").top(2, by="v")
    assert first.schema.names == ("change", "k", "time", "v", "x", "rank")
    exploded = first.inputs[0]
    running = KernelRun(exploded.inputs[0], tmp_path)
    one, two, three = steps(running, [row(1, 1, 5)], [row(2, 1, 9), row(3, 1, 7)], [row(4, 1, 1)])
    values = [[(change, [each["v"] for each in rows]) for change, _, rows in found] for found in (one, two)]
    assert values == [[("insert", [5])], [("retract", [5]), ("update", [9, 7])]]
    assert three == []


def test_row_number_without_a_window_is_the_first_rows_so_far():
    numbered = ps.sql(
        "SELECT k, v, r FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS r "
        "FROM events) WHERE r <= 2",
        EVENTS,
    )
    assert numbered == EVENTS.select("k", "v").group_by("k").top(2, by="v").select("k", "v", r="rank")


def test_the_first_rows_of_all_need_neither_a_window_nor_a_key():
    numbered = ps.sql(
        "SELECT k, v, r FROM (SELECT k, v, row_number() OVER (ORDER BY v DESC) AS r FROM events) "
        "WHERE r <= 2",
        EVENTS,
    )
    assert numbered == EVENTS.select("k", "v").top(2, by="v").select("k", "v", r="rank")


def test_a_column_named_change_is_in_the_way_of_the_first_rows():
    with pytest.raises(BadName, match="top\\(\\) adds a column 'change'"):
        EVENTS.select("k", change="v").group_by("k").top(2, by="change")
