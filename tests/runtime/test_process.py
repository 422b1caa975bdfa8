"""Keyed functions through whole runs: types of keys, what comes before and after, restarts, errors."""

import datetime as dt
from collections import Counter
from decimal import Decimal

import pytest

import penstock as ps
from penstock.errors import BadProcess
from processes import Running, Sessions, visit_session
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SESSION = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def clicks(*epochs, schema="time timestamp, k bigint, v bigint", **options):
    """A stream of (second, key, value) tuples, one list per epoch."""
    rows = [[{"time": at(t), "k": k, "v": v} for t, k, v in epoch] for epoch in epochs]
    return ps.stream("clicks", schema, "time", source=ps.rows(rows), **options)


def collected(relation, **options):
    sink = ps.memory()
    run = relation.start(sink, **options)
    run.wait()
    return sink.table().to_pylist(), run


@pytest.mark.parametrize("function", [Sessions(), visit_session], ids=["arrow", "visits"])
def test_sessions_over_epochs_with_late_rows_and_the_drain(function, tmp_path):
    # key 1: 0 5 | 40     second 25 fires the first; the row at 3 comes after frontier 38
    stream = clicks([(0, 1, 1), (5, 1, 2), (40, 1, 3)], [(3, 1, 9), (39, None, 7)], delay="2 seconds")
    process = stream.group_by("k").process(function, timeout="20 seconds", **SESSION)
    found, run = collected(process, channels=3, checkpoint=tmp_path)
    shown = sorted((row["time"], row["k"], row["n"], row["total"]) for row in found if row["k"])
    assert shown == [(at(25), 1, 2, 3), (at(60), 1, 1, 3)]
    assert [(row["time"], row["n"]) for row in found if row["k"] is None] == [(at(59), 1)]
    assert run.counts.late == 1
    assert run.progress[-1].state_rows == 0


def test_a_timer_fires_without_rows_of_its_key():
    stream = clicks([(0, 1, 1)], [(100, 2, 1)])
    process = stream.group_by("k").process(Sessions(), timeout="10 seconds", **SESSION)
    found, run = collected(process, channels=2)
    assert Counter(row["time"] for row in found) == Counter([at(10), at(110)])
    assert [each.results for each in run.progress] == [0, 1, 1]


TYPES = {
    "string": ["a", "", None],
    "double": [0.0, 1.5, None],
    "decimal(20,3)": [Decimal("1.500"), Decimal("12345678901234567.000"), None],
    "date": [dt.date(2024, 1, 1), dt.date(1969, 5, 5), None],
    "boolean": [True, False, None],
    "binary": [b"a", b"", None],
    "smallint": [7, -7, None],
}


def test_keys_of_every_type_and_made_ones():
    names = [f"k{place}" for place in range(len(TYPES))]
    schema = ", ".join(["time timestamp, v bigint", *map(" ".join, zip(names, TYPES, strict=True))])
    keys = list(zip(*TYPES.values(), strict=True))
    rows = [{"time": at(t), "v": 1, **dict(zip(names, key, strict=True))} for t in range(3) for key in keys]
    source = ps.rows([rows[:4], rows[4:]])
    stream = ps.stream("typed", schema, "time", source=source, delay="9 seconds")
    found, _ = collected(stream.group_by(*names, half="v * 2").process(Running(), **SESSION), channels=2)
    seen = Counter((tuple(row[name] for name in names), row["n"]) for row in found)
    assert seen == Counter((key, n) for key in keys for n in (1, 2, 3))
    assert {row["half"] for row in found} == {2}


def test_windows_joins_and_functions_follow_and_precede_each_other():
    stream = clicks([(t, t % 3, t) for t in range(40)], [(t, t % 3, t) for t in range(40, 90)], delay="5 s")
    counted = stream.group_by("k").window("10 seconds").agg(v=ps.count())
    running = counted.group_by("k").process(Running(), **SESSION)
    paired = running.join(counted, "k", within="0 seconds")
    summed = paired.window("1 minute").agg(rows=ps.count(), top=ps.max("n"), most=ps.max("total"))
    found, _ = collected(summed, channels=4)
    assert [(row["rows"], row["top"], row["most"]) for row in found] == [(18, 6, 20), (9, 9, 30)]
    sessions = running.group_by("k").process(visit_v, state="n bigint", result="n bigint", timeout="1 minute")
    again, _ = collected(sessions, channels=2)
    assert sorted((row["window_start"], row["k"], row["n"]) for row in again) == [
        (at(140), k, 9) for k in range(3)
    ]


def visit_v(key, time, row, state):
    return ps.Visit(None, [state]) if row is None else ps.Visit({"n": row["n"]})


def test_a_run_goes_on_with_the_state_that_it_kept(tmp_path):
    source = ps.rows([[{"time": at(t), "k": 1, "v": t}] for t in range(3)])
    stream = ps.stream("clicks", "time timestamp, k bigint, v bigint", "time", source=source)
    process = stream.group_by("k").process(Running(), **SESSION)
    first, second = ps.memory(), ps.memory()
    run = process.start(first, checkpoint=tmp_path)
    run.wait()
    process.start(second, checkpoint=tmp_path).wait()
    assert [row["total"] for row in first.table().to_pylist()] == [0, 1, 3]
    assert second.table().num_rows == 0


@pytest.mark.parametrize("epochs", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_rescaling_at_random_changes_nothing(epochs):
    rows = [[(10 * e + t, (7 * e + t * t) % 23, t) for t in range(14)] for e in range(epochs)]
    keyed = clicks(*rows, delay="3 seconds").group_by("k")
    sessions = keyed.process(Sessions(), timeout="12 seconds", **SESSION)
    running = keyed.process(visit_running, state="n bigint", result="n bigint, v bigint")
    still, moved = delivered(sessions, running), delivered(sessions, running, policy=AtRandom(5, every=1))
    assert moved[:2] == still[:2]
    assert still[0].total() > 3 * epochs
    assert sum(each.rows for each in moved[2].decisions) > 0


def delivered(*relations, **options):
    sinks = [ps.memory() for _ in relations]
    run = ps.outputs(*relations).start(*sinks, channels=4, **options)
    run.wait()
    return (*(Counter(map(str, sink.table().to_pylist())) for sink in sinks), run)


def visit_running(key, time, row, state):
    n = 1 + (state["n"] if state else 0)
    return ps.Visit({"n": n}, [{"n": n, "v": row["v"]}])


def test_an_error_in_a_channel_is_itself_again():
    process = clicks([(0, 1, 1)]).group_by("k").process(lambda *_: 3, **SESSION)
    with pytest.raises(BadProcess, match="returned int; return a"):
        collected(process)
