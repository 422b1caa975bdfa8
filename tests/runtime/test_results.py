"""Results as channels finish: in which order they leave, what a reader sees, and what stays exactly once."""

import datetime as dt
import math
import time
from functools import partial
from pathlib import Path

import pytest

import penstock as ps
from penstock.connect import MemorySink
from penstock.errors import BadMap, BadOption, RunError
from penstock.routing import realised_disorder
from penstock.runtime.run import Run

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
WINDOWS, KEYS = 12, 16
SCHEMA = "k bigint, n bigint"


def hold(flag, batch):
    """Wait for a file where key 0 is: one channel finishes when the test says so."""
    until = time.monotonic() + 120
    while 0 in batch["k"].to_pylist() and not Path(flag).exists() and time.monotonic() < until:
        time.sleep(0.01)
    return batch.select(["k", "n"])


def counted(*epochs):
    """Windows of ten seconds, of the given numbers, each with all keys."""
    rows = [
        [{"time": NOON + dt.timedelta(seconds=10 * each), "k": key} for each in epoch for key in range(KEYS)]
        for epoch in epochs
    ]
    stream = ps.stream("t", "time timestamp, k bigint", "time", source=ps.rows(rows))
    return stream.group_by("k").window("10 seconds").agg(n=ps.count())


def starts(batches):
    """The number of the window of each batch; a batch has one."""
    found = [batch.rows["window_start"].unique().to_pylist() for batch in batches]
    assert all(len(each) == 1 for each in found)
    return [int((each.replace(tzinfo=dt.UTC) - NOON).total_seconds()) // 10 for (each,) in found]


def keys(batches):
    pairs = zip(batches, starts(batches), strict=True)
    return sorted((start, key) for batch, start in pairs for key in batch.rows["k"].to_pylist())


WHOLE = sorted((window, key) for window in range(WINDOWS) for key in range(KEYS))


@pytest.mark.parametrize("k", [0, 3, math.inf])
def test_results_leave_while_a_channel_is_slow_as_far_as_the_disorder_allows(spark, tmp_path, k):
    flag = tmp_path / "go"
    query = counted(range(WINDOWS)).map(partial(hold, str(flag)), SCHEMA)
    run = query.start(session=spark, channels=2)
    results = run.results(disorder=k)
    # Of two channels one is held: the other gives its first window, and k more that overtake.
    early = [next(results) for _ in range(min(k, WINDOWS - 2) + 1)]
    assert starts(early) == list(range(len(early)))
    assert not any(0 in each.rows["k"].to_pylist() for each in early)
    flag.touch()
    found = [*early, *results]
    assert keys(found) == WHOLE
    assert realised_disorder(starts(found)) <= k
    assert run.disorder == max(each.disorder for each in run.progress) <= k
    run.wait()
    if k == 0:
        assert starts(found) == sorted(starts(found))


def fail(flag, batch):
    """Once the file is there, fail where key 0 is."""
    hold(flag, batch)
    if 0 in batch["k"].to_pylist():
        raise ValueError("the channel is lost")
    return batch.select(["k", "n"])


class Noting(MemorySink):
    """Creates a file when it has a part."""

    def __init__(self, flag):
        super().__init__()
        self.flag = flag

    def extend(self, epoch_key, table):
        super().extend(epoch_key, table)
        self.flag.touch()


def test_a_sink_that_had_parts_of_an_epoch_has_everything_once_after_the_next_start(spark, tmp_path):
    sink, query = Noting(tmp_path / "had"), counted(range(6), range(6, WINDOWS))
    first = query.map(partial(fail, str(sink.flag)), SCHEMA)
    run = first.start(sink, tmp_path / "state", session=spark, channels=2, disorder=math.inf)
    results = run.results()
    with pytest.raises(BadMap, match="the channel is lost"):
        run.wait()
    assert 0 < sink.table().num_rows < WINDOWS * KEYS
    with pytest.raises(BadMap, match="the channel is lost"):
        list(results)
    again = query.start(sink, tmp_path / "state", session=spark, channels=2, qos=ps.QoS(disorder=2))
    again.wait()
    table = sink.table()
    found = [(row["window_start"], row["k"]) for row in table.to_pylist()]
    assert len(found) == len(set(found)) == WINDOWS * KEYS
    assert 0 <= again.disorder <= 2


def test_committed_results_come_in_order_and_ends_with_the_run(spark, tmp_path):
    query = counted(range(4), range(4, WINDOWS))
    with query.start(session=spark, channels=2) as run:
        found = list(run.results(committed=True))
    assert starts(found) == sorted(starts(found))
    assert keys(found) == WHOLE
    assert [str(each.epoch) for each in found] == sorted(str(each.epoch) for each in found)
    assert list(run.results()) == []


def test_rows_without_windows_come_in_order_of_time_and_several_outputs_have_their_own(spark):
    rows = [
        [{"time": NOON + dt.timedelta(seconds=s), "k": s % 5} for s in epoch] for epoch in [(4, 2, 3), (9, 8)]
    ]
    stream = ps.stream("t", "time timestamp, k bigint", "time", delay="1 minute", source=ps.rows(rows))
    pairs = stream.join(stream, "k", within="1 minute", suffixes=("_a", "_b"))
    run = ps.outputs(pairs, stream.where("k > 2")).start(session=spark, channels=2)
    first, second = run.results(), run.results(disorder=math.inf, output=1)
    times = [batch.rows["pair_time"].to_pylist() for batch in first]
    assert all(each == sorted(each) for each in times)
    assert sum(map(len, times)) == 9
    assert sum(each.rows.num_rows for each in second) == 4


def test_a_run_without_a_sink_waits_for_a_reader_and_does_not_wait_for_one_that_left(spark):
    run = counted(range(WINDOWS)).start(session=spark, channels=2)
    with pytest.raises(RunError, match="waits for a reader"):
        run.wait()
    for _ in run.results():
        break
    run.wait()
    assert run.counts.results == WINDOWS * KEYS


def test_a_run_without_a_reader_can_be_stopped(spark):
    run = counted(range(WINDOWS)).start(session=spark, channels=2)
    run.stop()
    assert list(run.results()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"disorder": -1}, "disorder=-1; give a whole number, from 0"),
        ({"disorder": 1.5}, "or math.inf"),
        ({"output": 1}, "output=1"),
        ({"disorder": 2, "committed": True}, "leave one out"),
        ({"committed": "yes"}, "committed"),
    ],
)
def test_wrong_requests_for_results_are_refused(options, words):
    run = Run(bounded=True, close=lambda: None)
    with pytest.raises(BadOption, match=words):
        run.results(**options)
