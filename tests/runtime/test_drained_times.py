"""When all has ended, results that are later than every tuple still reach the windows behind them."""

import datetime as dt

import pytest

import penstock as ps
from fuzz.local import run_local

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
STREAM = ps.stream("t", "time timestamp, k int", time="time", delay="1 second")


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def alarm(key, time, row, state):
    """Set a timer for a minute after each row, and tell when it fires."""
    if row is None:
        return ps.Visit(None, results=[{"n": 7}])
    return ps.Visit(state={"n": 1}, timer=time + dt.timedelta(minutes=1))


def quiet(key, time, row, state):
    """Tell when a key has had no row for the timeout."""
    return ps.Visit(None, results=[{"n": 7}]) if row is None else ps.Visit(state={"n": 1})


def first_time(rows):
    return rows.slice(0, 1).select(["window_end"]).rename_columns(["last"])


SESSIONS = STREAM.group_by("k").session("20 seconds").agg(n=ps.count())
KEPT = {"state": "n bigint", "result": "n bigint"}


def counted(relation, size="10 seconds", slide=None):
    return relation.group_by("k").window(size, slide=slide).agg(c=ps.count())


@pytest.mark.parametrize(
    ("query", "begins"),
    [
        # A row at 5: its session ends at 25, in the window from 20 on.
        (counted(SESSIONS), [20]),
        (counted(counted(SESSIONS, "20 seconds", "10 seconds"), "5 seconds"), [10, 20]),
        (SESSIONS.group_by("k").window("10 seconds").apply(first_time, "last timestamp"), [20]),
        # A timer that the function sets, or a timeout: both fire at 65.
        (counted(STREAM.group_by("k").process(alarm, **KEPT)), [60]),
        (counted(STREAM.group_by("k").process(quiet, timeout="1 minute", **KEPT)), [60]),
        (
            STREAM.group_by("k")
            .process(alarm, **KEPT)
            .group_by("k")
            .window("10 seconds")
            .apply(lambda rows: rows.slice(0, 1).select(["n"]), "n bigint"),
            [60],
        ),
    ],
    ids=["sessions", "windows of windows", "whole windows", "alarms", "timeouts", "alarms, whole windows"],
)
@pytest.mark.parametrize("epochs", [[[5]], [[5], []], [[], [5]]], ids=["last", "early", "late"])
def test_windows_behind_late_results_close(query, begins, epochs):
    given = [[{"time": at(each), "k": 1} for each in epoch] for epoch in epochs]
    (found,) = run_local(query, {"t": given}, seed=1, channels=2).tables
    assert sorted(found["window_start"].to_pylist()) == [at(each) for each in begins]
