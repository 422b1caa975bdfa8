"""Windows of counts without Spark: random rows, orders, epochs and moves against windows cut one by one."""

import random
import tempfile

import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock.errors import BadName, BadWindow

EVENTS = ps.stream("events", "time timestamp, k bigint, v bigint", time="time")


class Concatenated(ps.ArrowAggregate):
    """An aggregate for which order matters."""

    state = {"text": "string"}  # noqa: RUF012
    result = "string"

    def accumulate(self, groups, n, *columns):
        texts = [""] * n
        for place, value in zip(groups.tolist(), columns[0].to_pylist(), strict=True):
            texts[place] += f"{value} "
        return pa.record_batch({"text": texts})

    def merge(self, left, right):
        return pa.record_batch({"text": pa.compute.binary_join_element_wise(left["text"], right["text"], "")})

    def finish(self, state):
        return state["text"]


def windows(size, slide, keys=("k",)):
    grouped = EVENTS.group_by(*keys) if keys else EVENTS
    return grouped.window(size, slide=slide, rows=True).agg(n=ps.count(), order=Concatenated("v"))


def plain_windows(rows, size, slide, keys):
    """All windows, by the definition."""
    groups = {}
    for row in sorted(rows, key=lambda row: (row["time"], row["v"])):
        groups.setdefault(tuple(row[name] for name in keys), []).append(row)
    found = []
    for key, own in groups.items():
        for end in range(slide, len(own) + 1, slide):
            last = own[max(0, end - size) : end]
            text = "".join(f"{row['v']} " for row in last)
            found.append((last[-1]["time"], last[0]["time"], *key, len(last), text))
    return found


@pytest.mark.parametrize("keys", [("k",), ()])
def test_rows_of_one_time_are_counted_where_nothing_else_is_kept_of_them(keys, tmp_path):
    grouped = EVENTS.group_by(*keys) if keys else EVENTS
    counting = grouped.window(2, slide=2, rows=True).agg(n=ps.count())
    rows = [{"time": time, "k": 1, "v": 0} for time in (1, 1, 2, 2, 2)]
    found = KernelRun(counting, tmp_path, 1, 1).run([[rows[:3]], [rows[3:]]], 10)
    assert sorted(row[-1] for row in found) == [2, 2]


def compared(seed):
    chance = random.Random(seed)
    size, slide = chance.choice([(1, 1), (5, 5), (6, 4), (20, 3), (3, 7), (40, 10)])
    keys = chance.choice([("k",), ()])
    rows = [
        {"time": place // 2, "k": chance.choice([None, 1, 1, 1, 2]), "v": chance.randrange(100)}
        for place in range(150)
    ]
    dealt = sorted(rows, key=lambda row: row["time"] + chance.randrange(10))
    epochs = []
    while dealt:
        count = chance.randrange(1, 25)
        epochs.append([dealt[:count]])
        dealt = dealt[count:]
    with tempfile.TemporaryDirectory() as folder:
        run = KernelRun(windows(size, slide, keys), folder, chance.randrange(1, 5), seed, restless=True)
        found = run.run(epochs, 10)
    assert sorted(map(repr, found)) == sorted(map(repr, plain_windows(rows, size, slide, keys))), (
        f"seed {seed}"
    )


@pytest.mark.parametrize("seed", range(6))
def test_windows_of_any_order_epochs_and_moves_are_those_cut_one_by_one(seed):
    compared(seed)


@pytest.mark.soak
def test_windows_of_any_order_at_length():
    for seed in range(1000, 1400):
        compared(seed)


def run_of(relation, tmp_path, *epochs):
    rows = [[[{"time": time, "k": 1, "v": v} for time, v in epoch]] for epoch in epochs]
    return [(found[1], found[0], *found[3:]) for found in KernelRun(relation, tmp_path).run(rows, 0)]


def test_the_first_windows_hold_fewer_rows_and_an_unfinished_one_at_the_end_is_not_given(tmp_path):
    # rows 1 … 7, windows of 4 every 2:  1 2 | 1 2 3 4 | 3 4 5 6, and 7 is in none that is complete
    found = run_of(windows(4, 2), tmp_path, [(time, time) for time in range(1, 8)])
    assert found == [(1, 2, 2, "1 2 "), (1, 4, 4, "1 2 3 4 "), (3, 6, 4, "3 4 5 6 ")]


def test_rows_of_one_time_go_by_their_content(tmp_path):
    assert run_of(windows(2, 2), tmp_path, [(5, 9), (5, 3), (5, 7)], [(6, 0)]) == [
        (5, 5, 2, "3 7 "),
        (5, 6, 2, "9 0 "),
    ]


def test_a_row_waits_until_the_frontier_has_passed_it(tmp_path):
    run = KernelRun(windows(1, 1), tmp_path)
    run.step([[{"time": 5, "k": 1, "v": 0}]], (5,))
    assert run.results == []
    run.step([[]], (6,))
    assert [row[0] for row in run.results] == [5]


def test_a_key_with_many_rows_beside_one_with_few(tmp_path):
    rows = [{"time": time, "k": int(time % 50 == 0), "v": time} for time in range(2000)]
    found = KernelRun(windows(30, 1), tmp_path).run([[rows[:1500]], [rows[1500:]]], 0)
    assert sorted(map(repr, found)) == sorted(map(repr, plain_windows(rows, 30, 1, ("k",))))


def test_what_is_kept_is_the_number_of_rows_and_the_panes_of_the_next_window(tmp_path):
    run = KernelRun(windows(6, 2), tmp_path)
    run.step([[{"time": time, "k": 7, "v": time} for time in range(11)]], (11,))
    table = run.kernel.tables[0]
    (rows,) = [table.named(each) for each in table.show(run.segments, run.record.channels[0], ())]
    (row,) = rows.to_pylist()
    assert (row["k"], row["_rows"], row["_pane"], row["rows"]) == (7, 11, [3, 4, 5], [2, 2, 1])


def test_names_and_event_time():
    found = EVENTS.window(10, rows=True).group_by("k").agg()
    assert found.schema.names == ("window_start", "window_end", "k")
    assert (found.time, repr(found)) == ("window_end", "events.group_by(k).window(10 rows slide 10).agg()")
    with pytest.raises(BadName, match="twice"):
        EVENTS.group_by("k").window(10, rows=True).group_by("v")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": 0, "rows": True}, "above 0"),
        ({"size": 2.5, "rows": True}, "whole number"),
        ({"size": "1 minute", "rows": True}, "whole number"),
        ({"size": 5, "slide": -1, "rows": True}, "slide=-1"),
        ({"size": 5, "offset": "1 s", "rows": True}, "offset is for windows over time"),
        ({"size": 5}, "rows=True for counts"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(BadWindow, match=words):
        EVENTS.window(**given)
