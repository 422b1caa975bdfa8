"""The handle of a run: what it prints, what it logs, and that no wrong request ends it."""

import datetime as dt
import json
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import penstock as ps
from junk import JUNK
from penstock.cli.app import app
from penstock.errors import BadRescale, RunError
from penstock.runtime.progress import ChannelWork

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def counted(*seconds):
    rows = [[{"time": NOON + dt.timedelta(seconds=s), "k": "ab"[s % 2]} for s in epoch] for epoch in seconds]
    stream = ps.stream("t", "time timestamp, k string", "time", source=ps.rows(rows))
    return stream.group_by("k").window("10 seconds").agg(n=ps.count())


def lines(caplog, level="INFO"):
    return [
        each.message for each in caplog.records if each.name == "penstock.run" and each.levelname == level
    ]


def test_a_run_logs_a_line_for_each_epoch_and_decision(spark, caplog):
    def policy(seen):
        return [ps.Rescale(0, 3, reason="as a test")] if seen.epoch == 0 else []

    with caplog.at_level(logging.INFO, "penstock"):
        run = counted([1, 2], [21, 22], [41, 3]).start(
            ps.memory(), session=spark, channels=2, policy=policy, name="counting"
        )
        run.wait()
    found = lines(caplog)
    epochs = [each for each in found if "tuples" in each]
    assert len(epochs) == len(run.progress) == 4
    assert epochs[2].startswith(f"counting: epoch    2: {2:>9} tuples, {2:>7} results, {1:>3} late")
    assert "frontier 2024-01-01 12:00:22" in epochs[1]
    (decision,) = [each for each in found if "as a test" in each]
    assert decision.startswith("counting: epoch    1: stage 0, 2 to 3 channels, balanced: as a test; ")
    assert decision == f"counting: {run.decisions[0]}"
    assert repr(run) == "Run counting: ended, epoch 2, 6 tuples, 5 results, 1 late, 0 rejected"
    assert lines(caplog, "ERROR") == []


def test_channels_of_a_bounded_run_show_its_last_input(spark):
    """Defect: they showed the drain, in which there is nothing."""
    run = counted([1, 2], [21, 22, 23]).start(ps.memory(), session=spark, channels=2)
    run.wait()
    (stage,) = run.channels
    assert sum(each.tuples for each in stage.channels) == 3
    assert sum(each.state_rows for each in stage.channels) > 0


def test_rows_of_state_are_those_that_penstock_state_counts(spark, tmp_path):
    """Defect: the marks of a join counted as rows, so that there were twice as many."""
    rows = [[{"time": NOON + dt.timedelta(seconds=s), "k": str(s % 5)} for s in range(20)]]
    one, other = (
        ps.stream(name, f"time timestamp, k string, {name} int", "time", source=ps.rows(rows))
        for name in "ab"
    )
    run = one.join(other, "k", within="1 hour", how="left", suffixes=("", "_2")).start(
        ps.memory(), session=spark, channels=2, checkpoint=tmp_path
    )
    run.wait()
    found = CliRunner().invoke(
        app, ["state", str(tmp_path), "--json", "--epoch", "0"], catch_exceptions=False
    )
    (stage,) = json.loads(found.stdout)["stages"]
    shown = sum(each["rows"] for each in stage["channels"])
    assert run.progress[0].state_rows == run.progress[0].stages[0].state_rows == shown == 40


def test_a_failure_is_logged_as_an_error(spark, caplog):
    def fail(table, number):
        raise ValueError("the disk is full")

    run = counted([1], [21]).start(ps.each(fail), session=spark)
    with pytest.raises(RunError):
        run.wait()
    (line,) = lines(caplog, "ERROR")
    function = "test_a_failure_is_logged_as_an_error.<locals>.fail"
    assert line.startswith(f"run: epoch 1, output each({function}): ValueError: the disk is full; ")
    assert repr(run).startswith("Run without a name: failed, ")


def test_without_a_handler_of_the_user_warnings_still_reach_standard_error():
    """Python's handler of last resort shows them; a handler of ours, even an empty one, would hide them."""
    assert not logging.getLogger("penstock").handlers


@pytest.fixture(scope="module")
def live(spark, tmp_path_factory):
    frame = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    stream = ps.stream("t", "timestamp timestamp, value bigint", "timestamp", source=ps.dataframe(frame))
    query = stream.group_by(k="value % 7").window("1 second").agg(n=ps.count())
    with query.start(ps.memory(), tmp_path_factory.mktemp("state"), session=spark, channels=2) as run:
        yield run


def wait_for(run, epochs):
    until, end = len(run.progress) + epochs, time.monotonic() + 120
    while len(run.progress) < until:
        assert run.running
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ((0, 2.5), r"channels=2.5; give a whole number, from 1 to 1,024"),
        ((0, True), "channels=True"),
        ((0, 0), "channels=0"),
        ((0, 2000), "channels=2000"),
        ((0.0, 2), "stage=0.0"),
        ((1, 2), "stage 1 does not exist; rescale one of 0"),
        ((0, 2, "fair"), "partitioning='fair'; give one of balanced"),
    ],
)
def test_a_wrong_rescale_is_refused_and_the_run_goes_on(live, request_, reason):
    with pytest.raises(BadRescale, match=reason):
        live.rescale(*request_)
    assert live.running


@settings(max_examples=200)
@given(request_=st.tuples(JUNK, JUNK, JUNK))
def test_no_junk_gets_past_the_check(live, request_):
    try:
        live.rescale(*request_)
    except BadRescale:
        assert live.running


def test_after_all_of_it_the_run_still_runs(live):
    rescaled = live.rescale(0, 3)
    assert repr(rescaled).startswith("Rescaled stage 0 to 3 channels: ")
    wait_for(live, 3)
    assert rescaled.wait(120)
    assert repr(rescaled).endswith(": done")
    assert "running, epoch " in repr(live)
    assert "channels, balanced" in repr(live.channels[0]).splitlines()[0]
    assert len(repr(live.channels[0]).splitlines()) == 4


def test_what_a_run_tells_prints_short():
    load = ps.ChannelLoad(0, 1200, 0.0123, 7, 64, 8_200_000)
    assert repr(load) == (
        "channel   0:     1,200 tuples,  12.3 ms,       7 keys, state        64 rows,   8.2 MB"
    )
    stage = ps.StageChannels(
        0, "window", "balanced", 2, (load, load), (1.0, 1.25, 1.0), (1.2,) * 3, (), moving=True
    )
    head, *channels = repr(stage).splitlines()
    assert head == (
        "stage 0, window: 2 channels, balanced, moving to 2; "
        "most over least: state 1.00, time 1.25, tuples 1.00"
    )
    assert channels == [f"  {load!r}"] * 2
    assert repr(ps.Observation(7, (stage,))) == f"after epoch 7:\n{stage!r}"
    assert repr(ps.TrackedKey(-1, 0.25, None)) == "key ffffffffffffffff: 25.0% of tuples, spread"
    assert repr(ChannelWork(1000, 0.5, 0.25)) == "1,000 rows, busy 500.0 ms, 250.0 ms of processor time"
    progress = ps.StageProgress("window", 1000, 0.002, 64, NOON, (ChannelWork(1, 1, 1),) * 2)
    assert repr(progress) == (
        "window: 1,000 tuples (2.0 µs each), busy 2.0 ms in 2 channels, 64 rows of state, "
        "frontier 2024-01-01 12:00:00"
    )
    decision = ps.Decision(
        stage=0,
        before=2,
        after=4,
        rows=9,
        bytes=1500,
        seconds=0.1,
        left=0.5,
        epoch=12,
        partitioning="scan",
        reason="asked for",
    )
    assert repr(decision) == (
        "epoch   12: stage 0, 2 to 4 channels, scan: asked for; "
        "about 9 rows and 1.5 kB moved in 100.0 ms, 50% left"
    )
    epoch = ps.EpochProgress(3, 1_200_000, 0, 0, 310, 1.5, {}, None, None, 64, 2048, "channel")
    assert repr(epoch) == (
        "epoch    3: 1,200,000 tuples,     310 results,   0 late,   0 rejected,  1.50 s, frontier none yet, "
        "state 64 rows, 2.0 kB"
    )
