"""The latency of results, from what epochs saw of arrivals: by hand, without Spark."""

import numpy as np
import pytest

import penstock.query as ps
from penstock.control.pace import Pace
from penstock.control.ruling import Ruling
from penstock.operators.kernel import WindowEnds
from penstock.runtime.dataflow.receipts import StreamSeen
from penstock.runtime.latency import ArrivalLines, LatencyMeter, ResultWay
from penstock.runtime.pacer import Pacer

SECOND = 1_000_000


def seen(earliest, latest, first=None, last=None):
    return StreamSeen(
        latest=latest * SECOND,
        earliest=earliest * SECOND,
        arrived_first=None if first is None else int(first * SECOND),
        arrived_last=None if last is None else int(last * SECOND),
    )


def before(lines, *seconds):
    arrived, times = lines.before(np.array(seconds) * SECOND)
    return [float(each) / SECOND for each in arrived], [each // SECOND for each in times.tolist()]


def test_the_last_tuple_before_an_end_is_of_the_epoch_that_had_it():
    #  event time  0 ──── 10      20 ──── 30
    #  arrival   100 ─── 102     110 ─── 111
    lines = ArrivalLines()
    lines.add(seen(0, 10, 100, 102), 0)
    lines.add(seen(20, 30, 110, 111), 0)
    arrived, times = before(lines, 5, 15, 20, 25, 40)
    assert arrived == [101, 102, 102, 110.5, 111]
    assert times == [5, 10, 10, 25, 30]


def test_tuples_that_are_behind_those_before_them_do_not_move_the_line():
    lines = ArrivalLines()
    lines.add(seen(0, 10, 100, 102), 0)
    lines.add(seen(2, 8, 103, 104), 0)
    assert before(lines, 10)[0] == [102]
    lines.add(seen(5, 14, 104, 108), 0)
    assert before(lines, 12)[0] == [106]


def metered(bound=None, delay="0 seconds"):
    stream = ps.stream("s", "time timestamp, k int", "time", delay=delay)
    return LatencyMeter((ResultWay(0, frozenset({"s"})),), (stream,), bound)


def test_a_window_is_as_old_as_its_last_tuple_and_empty_windows_have_no_result():
    meter = metered(bound=5.0)
    # Windows of 10 s: those that end at 10 and 30 hold tuples, the one that ends at 50 would hold none.
    ends = {0: WindowEnds([10 * SECOND, 30 * SECOND, 50 * SECOND], 10 * SECOND)}
    found = meter.epoch({"s": seen(0, 30, 100, 130)}, ends, offered=131, delivered=134, results=9)
    assert (found.results, found.p50, found.most) == (2, pytest.approx(14), pytest.approx(24))
    assert found.p99 == pytest.approx(23.8)
    assert found.within == 0.5
    assert meter.epoch({}, ends, offered=131, delivered=134, results=0) is None


def test_the_delay_of_the_streams_comes_on_top_of_the_bound():
    ends = {0: WindowEnds([10 * SECOND], 10 * SECOND)}
    for delay, within in (("0 seconds", 0.0), ("3 seconds", 1.0)):
        meter = metered(bound=2.0, delay=delay)
        found = meter.epoch({"s": seen(0, 10, 100, 110)}, ends, offered=111, delivered=114, results=1)
        assert (found.most, found.within) == (pytest.approx(4), within)


def test_without_stamps_tuples_arrive_when_they_are_offered():
    meter = metered()
    found = meter.epoch({"s": seen(0, 10)}, {0: None}, offered=111, delivered=114, results=1)
    assert (found.p50, found.p99, found.within) == (3, 3, None)


def rested(paced: Pacer, rulings, committed, now):
    """How long it rests after an epoch that got its rows at 100 and was committed, if it is `now`."""
    paced.clock, waits = lambda: now, []
    paced.after(100.0, committed, rulings)
    paced.rest(waits.append)
    return sum(waits)


def test_epochs_wait_as_the_interval_says_and_never_longer_than_a_tick():
    assert rested(Pacer(2.0), (), 100.5, 100.5) == 1.5
    assert rested(Pacer(2.0, tick=0.25), (), 100.5, 100.5) == 0.25
    assert rested(Pacer(0.0), (), 100.5, 100.5) == 0


def test_the_wait_counts_from_the_commit_and_is_that_of_the_ruling():
    pace = Pace(2.0, 2.5, 3.0, "little comes")
    assert rested(Pacer(), (Ruling(0, "pacing", pace),), 100.5, 100.75) == 1.75
    assert rested(Pacer(), (Ruling(0, "pacing", pace),), 100.5, 103.0) == 0
    paced = Pacer()
    assert rested(paced, (Ruling(0, "pacing", pace, "dry run"),), 100.5, 100.5) == 0
    assert paced.reason == "little comes (held back: dry run)"


def test_without_a_ruling_epochs_run_back_to_back():
    assert rested(Pacer(), (), 100.5, 100.5) == 0
