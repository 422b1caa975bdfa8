"""Channels that come and go while a query runs: the output stays the same, and what happened can be read."""

import datetime as dt
import os
import random
import time
from collections import Counter

import pytest

import penstock as ps
from compile.reverted import judged_late
from graphs.accepted import judge
from graphs.batch import evaluate
from graphs.build import relations, run
from graphs.compare import assert_alike
from graphs.generate import generate
from penstock.errors import BadRescale, RunError
from rescales import AtRandom
from runtime.moving_victim import ALL, start
from runtime.reports import write_input
from runtime.test_kill import rows
from sessions import interpreting

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def readings(epochs, seed=1, rows_each=200):
    chance = random.Random(seed)
    return [
        [
            {
                "time": START + dt.timedelta(seconds=epoch * 5 + chance.random() * 5),
                "k": f"k{chance.randrange(60)}",
            }
            for _ in range(rows_each)
        ]
        for epoch in range(epochs)
    ]


def windows(batches):
    stream = ps.stream("t", "time timestamp, k string", "time", "1 second", ps.rows(batches))
    return stream.group_by("k").window("20 seconds", slide="2 seconds").agg(n=ps.count())


def answer(batches):
    """Every window of every key, counted one by one."""
    found = Counter()
    for row in [each for batch in batches for each in batch]:
        second = (row["time"] - START).total_seconds()
        for start_ in range(int(second // 2) * 2 - 18, int(second // 2) * 2 + 1, 2):
            found[start_, row["k"]] += 1
    return found


def counted(sink):
    return {
        (int((row["window_start"] - START).total_seconds()), row["k"]): row["n"]
        for row in sink.table().to_pylist()
    }


def test_up_and_down_in_steps_and_what_a_run_tells_of_it(tmp_path):
    batches, sink = readings(7), ps.memory()
    wishes = {0: ps.Rescale(0, 5, reason="more"), 4: ps.Rescale(0, 2, "consistent")}
    run_ = windows(batches).start(
        sink,
        tmp_path,
        channels=2,
        most_moved=4_000,
        policy=lambda seen: [wishes[seen.epoch]] if seen.epoch in wishes else [],
    )
    run_.wait()
    assert counted(sink) == answer(batches)
    decisions = run_.decisions
    assert (decisions[0].epoch, decisions[0].before, decisions[0].after, decisions[0].reason) == (
        1,
        2,
        5,
        "more",
    )
    steps = [each for each in decisions if each.reason == "the next step of what was asked for"]
    assert steps
    assert decisions[decisions.index(steps[0]) - 1].left > steps[0].left
    assert decisions[0].rows > 0 < decisions[0].bytes
    assert decisions[-1].partitioning == "consistent"
    (stage,) = run_.channels
    assert (stage.stage, stage.tolerated, len(stage.tracked)) == (0, (1.2, 1.2, 1.2), 60)
    assert sum(each.share for each in stage.tracked) == pytest.approx(1, abs=0.01)
    assert "move" in run_.progress[1].phases


def test_an_idle_stage_does_not_report_an_earlier_epoch(tmp_path):
    """Defects 7 and 9: the load of the last epoch with rows stood for every idle epoch after it."""
    seen = []

    def watch(observation):
        seen.append([sum(each.tuples for each in stage.channels) for stage in observation.stages])
        return []

    streams = [
        ps.stream(name, "time timestamp, k string", "time", "1 second", ps.rows(readings(epochs)))
        for name, epochs in (("busy", 3), ("quiet", 1))
    ]
    counts = [each.group_by("k").window("1 hour").agg(n=ps.count()) for each in streams]
    query, sinks = ps.outputs(*counts), (ps.memory(), ps.memory())
    query.start(*sinks, checkpoint=tmp_path, channels=2, policy=watch).wait()
    assert [sorted(each) for each in seen[:3]] == [[200, 200], [0, 200], [0, 200]]


def test_a_start_with_other_channels_rescales_what_is_there(tmp_path):
    batches = readings(4)
    source = tmp_path / "in"
    source.mkdir()
    # A range keeps what is in it.
    starts = ({"channels": 2}, {"channels": 3}, {"channels": (1, 4), "control": "off"}, {})
    for number, channels in enumerate(starts):
        lines = [f'{{"time": "{row["time"].isoformat()}", "k": "{row["k"]}"}}' for row in batches[number]]
        (source / f"{number}.json").write_text("\n".join(lines))
        # The last one ends and closes what is open; the others are stopped in the middle.
        files = ps.files(source, "json", live=number < 3)
        stream = ps.stream("t", "time timestamp, k string", "time", "1 second", files)
        query = stream.group_by("k").window("20 seconds", slide="2 seconds").agg(n=ps.count())
        started = query.start(ps.parquet(tmp_path / "out"), tmp_path / "state", **channels)
        while number < 3 and started.running and started.counts.rows < 200 * (number + 1):
            time.sleep(0.05)
        if number < 3:
            started.stop()
        started.wait()
        assert len(started.channels[0].channels) == (2, 3, 3, 3)[number]
    found = rows(f"{tmp_path}/out/*.parquet")
    assert {(int((each[0] - START).total_seconds()), each[2]): each[3] for each in found} == answer(batches)


def test_what_cannot_be_is_refused_at_once(tmp_path):
    stream = ps.stream("t", "time timestamp, k string", "time", source=ps.rows(readings(1, rows_each=3)))
    single = stream.window("2 seconds").agg(n=ps.count()).start(ps.memory(), tmp_path / "a")
    for wish, message in [
        ((0, 2), "no key"),
        ((3, 2), "does not exist"),
        ((0, 0), "1 to 1,024"),
        ((0, 1, "best"), "balanced"),
    ]:
        with pytest.raises(BadRescale, match=message):
            single.rescale(*wish)
    single.wait()
    assert single.rescale(0, 1).wait(0.1) is False
    with pytest.raises(RunError, match="readj"):
        windows(readings(1)).start(ps.memory(), tmp_path / "b", partitioning="even")


@pytest.mark.parametrize("seed", range(2))
def test_a_random_graph_that_is_rescaled_all_the_time_gives_what_a_batch_engine_gives(seed):
    check(seed, generate(seed, operators=3, epochs=3))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2_000, 2_100))
def test_a_hundred_random_graphs_are_rescaled_all_the_time(seed):
    check(seed, generate(seed))


def check(seed, graph):
    print(f"seed {seed}: {graph.channels} channels, {graph.strategy}:", *relations(graph), sep="\n")  # noqa: T201
    judged = judge(graph)
    moved = run(graph, policy=AtRandom(seed, every=1), most_moved=(64 << 20, 3_000)[seed % 2])
    expected = evaluate(graph, judged.accepted)
    for place, found, wanted in zip(graph.outputs, moved.rows, expected, strict=True):
        assert_alike(found, wanted, graph.nodes[place].columns)
    assert (moved.late, moved.rejected) == (judged.late + judged_late(graph), judged.rejected)


@pytest.mark.soak
def test_sixty_epochs_of_all_keyed_state_under_random_rescales(tmp_path):
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    write_input(tmp_path / "in", 60, seed)
    for name, policy in (("still", "never"), ("moved", str(seed))):
        start(tmp_path / "in", tmp_path / name, tmp_path / f"{name}-state", policy).wait()
    for place in ALL:
        still, moved = (rows(f"{tmp_path}/{name}/{place}/*.parquet") for name in ("still", "moved"))
        assert still
        assert moved == still
