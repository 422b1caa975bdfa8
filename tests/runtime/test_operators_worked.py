"""What a run measures of its operators: the map side of each stream and each stage, with their parents."""

import datetime as dt

import pytest

import penstock as ps

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


class Watching:
    """A policy that keeps what it observes and decides nothing."""

    def __init__(self):
        self.seen = []

    def observe(self, seen):
        self.seen.append(seen)

    def decide(self, _):
        return []

    def to_json(self):
        return {}

    def resume(self, _):
        pass


@pytest.fixture
def seen(spark, tmp_path):
    """Epochs of a query: a filter that drops half, windows, then windows over the results."""
    rows = [
        [{"time": START + dt.timedelta(minutes=minute, seconds=n), "key": n % 5} for n in range(60)]
        for minute in range(3)
    ]
    stream = ps.stream("calls", "time timestamp, key bigint", "time", source=ps.rows(rows))
    every = stream.where("second(time) < 30").group_by("key").window("10 seconds").agg(n=ps.count())
    query = every.group_by("n").window("1 minute").agg(keys=ps.count())
    policy = Watching()
    query.start(ps.memory(), checkpoint=tmp_path, session=spark, channels=2, policy=policy).wait()
    return policy.seen


def test_every_map_side_and_stage_is_an_operator_with_its_parents(seen):
    names = {tuple(each.name.split(":")[0] for each in epoch.operators) for epoch in seen}
    assert names == {("calls", "stage 0", "stage 1")}
    first = seen[0].operators
    assert [each.tuples for each in first[:2]] == [60, 30]
    assert first[1].parents == ((0, 30),)
    # The first windows of a minute give 5 keys each; those that are open when it ends come later.
    assert sum(epoch.operators[2].tuples for epoch in seen) % 5 == 0
    assert all(epoch.operators[2].parents == ((1, epoch.operators[2].tuples),) for epoch in seen)


def test_work_and_what_executors_got_of_their_cores_is_measured(seen):
    for epoch in seen:
        assert epoch.operators[0].seconds > 0
        (unit,) = epoch.units
        assert 0 < unit.occupied <= unit.seconds
        assert sum(each.seconds for each in epoch.operators) <= 2 * unit.seconds
