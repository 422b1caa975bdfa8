"""Session windows without Spark: random orders, lateness, epochs and moves against sessions one by one."""

import random
import tempfile
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock.errors import BadName, BadWindow
from penstock.operators.exchange import HASH
from penstock.operators.sessions.kernel import session_starts
from penstock.routing.spark_hash import spark_hash
from penstock.state.pane_table import PANE

FORMS = ("merges", "waits", "applies")
EVENTS = ps.stream("events", "time timestamp, k bigint, v bigint, s string", time="time")


def noting(run):
    """The run, with what its kernel finds to be late in `noted`."""
    noted = run.noted = []

    class Noting(type(run.kernel)):
        def step(self, channel):
            return super().step(replace(channel, late=noted.append))

    run.kernel = Noting(*(getattr(run.kernel, each.name) for each in fields(run.kernel)))
    return run


class Tally(ps.ArrowAggregate):
    """The number of rows, of which nobody knows that their order does not matter: they wait."""

    state = {"n": "bigint"}  # noqa: RUF012
    result = "bigint"

    def accumulate(self, groups, n, *columns):  # noqa: ARG002
        return pa.record_batch({"n": np.bincount(groups, minlength=n)})

    def merge(self, left, right):
        return pa.record_batch({"n": pa.compute.add(left["n"], right["n"])})

    def finish(self, state):
        return state["n"]


def told(rows):
    """What the aggregates below give, by a function over all rows."""
    values = [v for _, v in sorted(zip(rows["time"].to_pylist(), rows["v"].to_pylist(), strict=True), key=by)]
    values = [v for v in values if v is not None]
    texts = [each for each in rows["s"].to_pylist() if each is not None]
    times = rows["time"].to_pylist()
    assert times == sorted(times)
    return {
        "n": [rows.num_rows],
        "total": [sum(values) if values else None],
        "all": [values],
        "top": [max(texts, default=None)],
    }


def by(pair):
    time, value = pair
    return time, value is not None, value or 0


def sessions(gap, keys=("k",), *, form="merges", **options):
    windowed = (EVENTS.group_by(*keys) if keys else EVENTS).session(f"{gap} us", **options)
    if form == "applies":
        return windowed.apply(told, "n bigint, total bigint, all array<bigint>, top string")
    count = Tally("v") if form == "waits" else ps.count()
    return windowed.agg(n=count, total=ps.sum("v"), all=ps.array_agg("v"), top=ps.max("s"))


def plain_sessions(epochs, delay, gap, keys=("k",)):
    """All sessions and late rows, by the definition: rows of an epoch are never late to each other."""
    opened, found, late, latest = {}, [], [], None
    for epoch in [*epochs, None]:
        before = None if latest is None else latest - delay
        fresh = {}
        for row in epoch or []:
            fresh.setdefault(tuple(row[name] for name in keys), []).append(row)
        latest = max(
            [row["time"] for row in epoch or []] + ([] if latest is None else [latest]), default=None
        )
        after = None if latest is None else latest - delay
        for key in {*opened, *fresh}:
            parts = [(rows, True) for rows in opened.pop(key, [])]
            parts += [([row], False) for row in fresh.get(key, [])]
            merged = []
            for rows, known in sorted(parts, key=lambda each: min(row["time"] for row in each[0])):
                first = min(row["time"] for row in rows)
                if merged and first <= max(row["time"] for row in merged[-1][0]) + gap:
                    merged[-1] = (merged[-1][0] + rows, merged[-1][1] or known)
                else:
                    merged.append((rows, known))
            for rows, known in merged:
                end = max(row["time"] for row in rows) + gap
                if not known and before is not None and end < before:
                    late.extend(rows)
                elif epoch is None or end < after:
                    found.append((key, rows))
                else:
                    opened.setdefault(key, []).append(rows)
    return [result(key, rows, gap) for key, rows in found], late


def result(key, rows, gap):
    rows = sorted(rows, key=lambda row: by((row["time"], row["v"])))
    values = [row["v"] for row in rows if row["v"] is not None]
    total = sum(values) if values else None
    top = max((row["s"] for row in rows if row["s"] is not None), default=None)
    return (rows[-1]["time"] + gap, rows[0]["time"], *key, len(rows), total, values, top)


def drawn(chance, count, span):
    """Rows in roughly the order of time, some of them far behind."""
    return [
        {
            "time": max(0, place * span // count - chance.choice([0, 0, 1, 3, 20, 60])),
            "k": chance.choice([None, 1, 1, 2, 3]),
            "v": chance.choice([None, *range(-5, 6)]),
            "s": chance.choice(["a", "é", "", None]),
        }
        for place in range(count)
    ]


def cut(chance, rows):
    epochs = []
    while rows:
        size = chance.randrange(1, 12)
        epochs.append(chance.sample(rows[:size], len(rows[:size])))
        rows = rows[size:]
        if chance.random() < 0.1:
            epochs.append([])
    return epochs


def compared(seed):
    chance = random.Random(seed)
    gap, delay = chance.choice([1, 4, 9, 25]), chance.choice([0, 2, 10, 40])
    keys = chance.choice([("k",), ("k", "s"), ()])
    epochs = cut(chance, drawn(chance, 90, chance.choice([60, 200, 600])))
    with tempfile.TemporaryDirectory() as folder:
        relation = sessions(gap, keys, form=FORMS[seed % 3])
        run = noting(KernelRun(relation, folder, chance.randrange(1, 5), seed, restless=True))
        found = run.run([[each] for each in epochs], delay)
    expected, late = plain_sessions(epochs, delay, gap, keys)
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"seed {seed}"
    columns = [pa.array([row[name] for row in late], run_type(name)) for name in keys] or [
        pa.array([0] * len(late), pa.int8())
    ]
    hashes = spark_hash(columns, len(late)).view(np.int64).tolist()
    pairs = {(key, row["time"] // gap) for key, row in zip(hashes, late, strict=True)}
    noted = {pair for each in run.noted for pair in zip(*map(list, columns_of(each)), strict=True)}
    assert noted == pairs, f"seed {seed}"
    return len(late)


def columns_of(table):
    return table[HASH].to_pylist(), table[PANE].to_pylist()


def run_type(name):
    return pa.string() if name == "s" else pa.int64()


def test_sessions_of_any_order_lateness_epochs_and_moves_are_those_formed_one_by_one():
    assert sum(compared(seed) for seed in range(6)) > 30


@pytest.mark.soak
def test_sessions_of_any_order_at_length():
    for seed in range(1000, 1400):
        compared(seed)


def run_of(relation, tmp_path, *epochs, delay=0):
    run = noting(KernelRun(relation, tmp_path))
    rows = [[[{"time": time, "k": 1, "v": v, "s": None} for time, v in epoch]] for epoch in epochs]
    return run, [(end, start, n) for end, start, _, n, *_ in run.run(rows, delay)]


def test_a_row_exactly_one_gap_later_belongs_to_the_session(tmp_path):
    # gap 5:  1 . . . . 6 . . . . . 12      6 belongs to 1, 12 does not belong to 6
    _, found = run_of(sessions(5), tmp_path, [(1, 0), (6, 0)], [(12, 0)])
    assert found == [(11, 1, 2), (17, 12, 1)]


def test_a_session_stays_open_while_a_row_exactly_one_gap_later_can_come(tmp_path):
    # The frontier is at 6 after the second epoch: another key's row took it there.
    run = KernelRun(sessions(5), tmp_path)
    row = {"v": 0, "s": None}
    run.step([[row | {"time": 1, "k": 1}]], (1,))
    run.step([[row | {"time": 6, "k": 2}]], (6,))
    assert run.results == []
    run.step([[row | {"time": 6, "k": 1}]], (6,))
    run.step([[]], (12,))
    assert sorted(found[:4] for found in run.results) == [(11, 1, 1, 2), (11, 6, 2, 1)]


def test_a_late_row_joins_an_open_session_that_began_before_it(tmp_path):
    # gap 5, no delay:  0 3 6 9 12 | then 2, whose own session would have closed at 7
    run, found = run_of(sessions(5), tmp_path, [(0, 0), (3, 0), (6, 0), (9, 0), (12, 0)], [(2, 0)])
    assert found == [(17, 0, 6)]
    assert run.noted == []


def test_a_row_that_joins_two_open_sessions_makes_them_one(tmp_path):
    _, found = run_of(sessions(5), tmp_path, [(0, 0), (8, 0)], [(4, 0)], delay=20)
    assert found == [(13, 0, 3)]


def test_a_row_whose_session_is_closed_is_late(tmp_path):
    run, found = run_of(sessions(5), tmp_path, [(0, 0)], [(20, 0)], [(3, 0), (9, 0)])
    assert found == [(5, 0, 1), (25, 20, 1)]
    assert [each[PANE].to_pylist() for each in run.noted] == [[0, 1]]


def test_a_row_behind_the_frontier_starts_a_session_that_is_still_open(tmp_path):
    # 0 is closed at 5; 17 is below the frontier, but its session would close at 22
    run, found = run_of(sessions(5), tmp_path, [(0, 0)], [(20, 0)], [(14, 0), (17, 0)])
    assert found == [(5, 0, 1), (25, 14, 3)]
    assert run.noted == []


def test_with_late_drop_a_row_below_the_frontier_is_not_taken(tmp_path):
    run, found = run_of(sessions(5, late="drop"), tmp_path, [(0, 0)], [(20, 0)], [(17, 0)])
    assert found == [(5, 0, 1), (25, 20, 1)]
    assert run.kernel.bound(run.record.position, 0) == 21


class Concatenated(ps.ArrowAggregate):
    """An aggregate for which order matters."""

    state = {"text": "string"}  # noqa: RUF012
    result = "string"

    def accumulate(self, groups, n, *columns):
        texts = [""] * n
        for place, text in zip(groups.tolist(), columns[0].to_pylist(), strict=True):
            texts[place] += text
        return pa.record_batch({"text": texts})

    def merge(self, left, right):
        return pa.record_batch({"text": pa.compute.binary_join_element_wise(left["text"], right["text"], "")})

    def finish(self, state):
        return state["text"]


@pytest.mark.parametrize("seed", range(4))
def test_an_aggregate_for_which_order_matters_sees_rows_in_the_order_of_time(tmp_path, seed):
    chance = random.Random(seed)
    rows = [{"time": time, "k": 1, "v": 0, "s": chr(97 + time % 26)} for time in range(60)]
    dealt = sorted(rows, key=lambda row: row["time"] + chance.randrange(12))
    relation = EVENTS.group_by("k").session("3 us").agg(text=Concatenated("s"))
    run = KernelRun(relation, tmp_path, 2, seed, restless=True)
    found = run.run([[each] for each in cut(chance, dealt)], 12)
    assert [each[-1] for each in found] == ["".join(row["s"] for row in rows)], f"seed {seed}"


def test_sessions_start_after_the_longest_reach_of_all_before():
    keys, first, last = np.array([0, 0, 0, 1]), np.array([0, 1, 9, 9]), np.array([8, 2, 9, 9])
    assert session_starts(keys, first, last, 1).tolist() == [True, False, False, True]
    assert session_starts(keys[:0], first[:0], last[:0], 1).tolist() == []


def test_groups_without_an_aggregate_and_keys_after_the_verb():
    found = EVENTS.session("1 hour").group_by("k").agg()
    assert found.schema.names == ("window_start", "window_end", "k")
    assert found.time == "window_end"
    assert repr(found) == "events.group_by(k).session(1 hour).agg()"
    with pytest.raises(BadName, match="twice"):
        EVENTS.group_by("k").session("1 hour").group_by("s")


@pytest.mark.parametrize(
    ("gap", "options", "words"),
    [("0 seconds", {}, "more than 0"), ("1 s", {"late": "never"}, "give 'count'")],
)
def test_a_session_that_makes_no_sense_is_refused(gap, options, words):
    with pytest.raises(BadWindow, match=words):
        EVENTS.session(gap, **options)


def test_what_is_kept_is_shown_by_key(tmp_path):
    run, _ = run_of(sessions(5), tmp_path, [(0, 3), (20, 4)], delay=30)
    run = KernelRun(sessions(5), tmp_path / "again")
    run.step([[{"time": time, "k": 7, "v": 3, "s": None} for time in (0, 2, 20)]], (-30,))
    table = run.kernel.tables[0]
    (rows,) = [table.named(each) for each in table.show(run.segments, run.record.channels[0], ())]
    (row,) = rows.to_pylist()
    assert (row["k"], row["_first"], row["_last"], row["rows"]) == (7, [0, 20], [2, 20], [2, 1])
