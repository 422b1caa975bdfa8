"""The loop of control in a run: true measures, dry runs, restarts, and output that it never changes."""

import datetime as dt
import json
import re
from dataclasses import dataclass, field

import pytest

import penstock as ps
from penstock.control.recording import Recording, differences
from penstock.routing import first_router, router_name
from sessions import interpreting

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = "time timestamp, k string, n bigint"


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def rows(epoch, count=400, hot=0.4):
    """A fraction of the rows has one key, the others are even over 50."""
    return [
        {
            "time": START + dt.timedelta(seconds=epoch * 10, milliseconds=20 * place),
            "k": "hot" if place < hot * count else f"k{place % 50}",
            "n": place,
        }
        for place in range(count)
    ]


def stream(name, batches):
    return ps.stream(name, SCHEMA, "time", "1 second", ps.rows(batches))


def windows(batches, name="t"):
    return stream(name, batches).group_by("k").window("20 seconds", slide="10 seconds").agg(n=ps.sum("n"))


def answers(sink):
    return sorted(map(str, sink.table().to_pylist()))


def recorded(checkpoint):
    (path,) = (checkpoint / "control").glob("*.jsonl")
    return Recording.parse(path.read_text().splitlines())


@dataclass
class Watch:
    """A policy that keeps what it observes, asks for what it is told to, and counts over restarts."""

    asks: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)
    epochs: int = 0

    def observe(self, seen):
        self.seen.append(seen)
        self.epochs += 1

    def decide(self, now):
        assert now == self.seen[-1].committed
        return self.asks.get(self.seen[-1].epoch, [])

    def to_json(self):
        return {"epochs": self.epochs}

    def resume(self, value):
        self.epochs = value["epochs"]


def test_measures_are_of_this_epoch_and_of_every_channel(tmp_path):
    """Defects 7 and 9: no processor time for joins, and the load of an earlier epoch for an idle stage."""
    batches = [rows(0), rows(1), [], rows(3)]
    left, right = stream("l", batches), stream("r", [each[:100] for each in batches])
    pairs = left.join(right, on="k", within="1 second", suffixes=("", "_r"))
    joined = pairs.group_by("k").window("20 seconds").agg(n=ps.count())
    watch = Watch()
    query = ps.outputs(windows(batches), joined)
    run = query.start(ps.memory(), ps.memory(), checkpoint=tmp_path, channels=8, control="off", policy=watch)
    run.wait()
    assert [each.epoch for each in watch.seen] == [0, 1, 2, 3]
    for seen, given in zip(watch.seen, batches, strict=True):
        assert seen.arrived <= seen.started <= seen.ended <= seen.committed
        assert (seen.slots, seen.rows) == (2, len(given) * 2 + len(given[:100]))
        window, join = seen.stages
        assert sum(each.tuples for each in window.channels) == len(given)
        # Rows of a hot key of the join may have copies on a grid.
        assert sum(each.rows for each in join.channels) >= len(given) + len(given[:100])
        for stage in seen.stages:
            assert all((each.cpu_seconds > 0) == (each.seconds > 0) for each in stage.channels)
            assert stage.router
            assert ps.Observation.from_json(json.loads(json.dumps(seen.to_json()))) == seen
    assert all(each.cpu_seconds > 0 for stage in watch.seen[0].stages for each in stage.channels)
    assert sum(each.rows for stage in watch.seen[2].stages for each in stage.channels) == 0
    window, join = watch.seen[1].stages
    assert window.domain == pytest.approx(51, abs=2)
    known = dict(zip(window.known.hashes, window.known.shares, strict=True))
    assert window.known.texts[next(iter(known))] == "hot"
    assert next(iter(known.values())) == pytest.approx(0.4, abs=0.03)
    # The join counts each side for itself: the first 100 rows of the other side are all hot.
    assert [side[0] for side in join.known.sides] == pytest.approx([0.4, 1.0], abs=0.05)
    assert join.known.rates == (400, 100)
    assert join.copied == "neither"  # the aggregation in its channels needs whole keys
    # The aggregation that the join hosts counts with it.
    (last,) = [each for each in run.channels if each.stage == join.stage]
    assert last.name == join.name
    assert len(watch.seen[0].stages) == 2 < len(run.progress[0].stages)


def test_a_dry_run_changes_nothing_and_tells_all(tmp_path):
    batches = [rows(epoch) for epoch in range(4)]
    asks = {1: [ps.Rescale(0, 6, reason="more")], 2: [ps.Rescale(9, 2)]}
    sinks = {mode: ps.memory() for mode in ("off", "observe", "on")}
    runs = {}
    for mode, sink in sinks.items():
        policy = None if mode == "off" else Watch(asks)
        runs[mode] = windows(batches).start(sink, tmp_path / mode, channels=4, control=mode, policy=policy)
        runs[mode].wait()
    assert answers(sinks["off"]) == answers(sinks["observe"]) == answers(sinks["on"])
    # Off: nobody looks, nothing is written.
    assert (runs["off"].rulings, runs["off"].decisions) == ([], [])
    assert not (tmp_path / "off" / "control").exists()
    # Observe: all is held back.
    assert not runs["observe"].decisions
    held = [(each.decision.stage, each.held) for each in runs["observe"].rulings if each.policy == "policy"]
    assert held[0] == (0, "dry run")
    assert held[1][1].startswith("it cannot be met: stage 9 does not exist")
    recording = recorded(tmp_path / "observe")
    assert [each.seen.epoch for each in recording.epochs] == [0, 1, 2, 3]
    assert recording.epochs[1].rulings[0]["decision"]["channels"] == 6
    # On: what is possible happens in the next epoch, with the reason.
    decision = next(each for each in runs["on"].decisions if each.after == 6)
    assert (decision.epoch, decision.reason, decision.rows > 0) == (2, "more", True)


def joined(batches):
    left, right = stream("l", batches), stream("r", [each[::4] for each in batches])
    return left.join(right, on="k", within="2 seconds", suffixes=("", "_r"))


@pytest.mark.parametrize("partitioning", ["balanced", "readj"])
def test_off_changes_nothing_over_skewed_epochs(tmp_path, partitioning):
    batches = [rows(epoch, hot=0.6) for epoch in range(20)]
    query = ps.outputs(windows(batches), joined(batches))
    run = query.start(
        *(ps.memory(), ps.memory()),
        checkpoint=tmp_path,
        channels=4,
        control="off",
        partitioning=partitioning,
    )
    run.wait()
    assert (run.rulings, run.decisions) == ([], [])
    assert all(each.wait_seconds == 0 for each in run.progress)
    for stage in run.channels:
        assert stage.router == router_name(first_router(partitioning, len(stage.channels)).to_bytes())
        assert stage.spread is None or not stage.spread.grids
        assert stage.sub_keys is None
        # Keys are counted for a partitioning that goes by their frequencies, and else for nobody.
        counted = partitioning == "readj"
        assert any(each.keys for each in stage.channels) == bool(stage.known.hashes) == counted


def test_the_grids_that_a_join_begins_with_are_a_ruling(tmp_path):
    batches = [rows(epoch, count=1200, hot=0.6) for epoch in range(4)]
    sinks, told = {}, {}
    for mode in ("off", "observe", "on"):
        sinks[mode] = ps.memory()
        run = joined(batches).start(sinks[mode], tmp_path / mode, channels=4, control=mode)
        run.wait()
        (stage,) = run.channels
        assert bool(stage.spread.grids) == (mode == "on")
        assert mode == "on" or not run.decisions
        told[mode] = [each.words() for each in run.rulings if "with grids for" in each.words()]
    assert answers(sinks["off"]) == answers(sinks["observe"]) == answers(sinks["on"])
    assert told["off"] == []
    assert re.fullmatch(
        r".*: stage 0 would begin with grids for 1 .*\(held back: dry run\)", *told["observe"]
    )
    assert re.fullmatch(
        r"epoch 0, layout: stage 0 begins with grids for 1 of its keys: .* \d\d% of the .*", *told["on"]
    )
    for mode in ("observe", "on"):
        recording = recorded(tmp_path / mode)
        assert any("with grids for" in each["held"] for each in recording.epochs[0].rulings)
        assert differences(recording, recording.routers.__getitem__) == []


def test_a_restart_goes_on_from_what_was_remembered(tmp_path):
    batches = [rows(epoch) for epoch in range(5)]
    watch = Watch()
    query = windows(batches)
    sink = ps.parquet(tmp_path / "out")
    query.start(sink, tmp_path / "state", channels=4, control="off", policy=watch).wait()
    assert watch.epochs == 5
    again = Watch()
    query.start(sink, tmp_path / "state", channels=4, control="off", policy=again).wait()
    # The manifest of the drain has all that was remembered; nothing new came.
    assert (again.epochs, again.seen) == (5, [])
