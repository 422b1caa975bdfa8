"""Keyed functions whose channels come and go between epochs, on real files: the results stay the same."""

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compile import HASH
from penstock.routing import PARTITIONINGS, Frequencies, Goal, Growth, first_router, next_router, step_toward
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.moves import MoveTask, StageState
from penstock.runtime.moving import gathered
from penstock.runtime.placing import Homes
from penstock.runtime.process_stage import ProcessStage
from processes import Channels, Running, Sessions, Waiting, accepted, relation

SESSION = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}
WAITING = {"state": {"n": "bigint", "fired": "boolean"}, "result": "n bigint"}


class Moving(Channels):
    """Channels with a router that changes before some epochs, drawn by a seed."""

    def __init__(self, process, folder, seed):
        super().__init__(process, folder, 3)
        self.rng, self.homes = np.random.default_rng(seed), Homes(first_router("uniform", 3), 3)
        self.stage, self.moved = ProcessStage(None, self.plan, (), ()), 0

    def step(self, rows, frontier, *, ended=False):
        if self.rng.random() < 0.6:
            self.move(self.successor())
        super().step(rows, frontier, ended=ended)

    def sent(self, rows):
        table = super().sent(rows)
        hashes = spark_hash([table[key.name] for key in self.plan.keys], table.num_rows)
        place = table.column_names.index(HASH)
        return table.set_column(place, HASH, [hashes.view(np.int64)])

    def routed(self, table):
        return self.homes.router.route(table[HASH].to_numpy().view(np.uint64))

    def successor(self):
        """Any router of any number of channels, or a step on the way to it."""
        none = Frequencies(np.zeros(0, np.uint64), np.zeros(0))
        name, channels = str(self.rng.choice(PARTITIONINGS)), int(self.rng.integers(1, 7))
        router = next_router(name, self.homes.router, none, channels, Goal(domain=1000))
        if self.rng.random() < 0.5:
            share = float(self.rng.uniform(0.05, 0.6))
            return step_toward(
                self.homes.router, router, none, growth=Growth.LINEAR, share=share, domain=1000
            )
        return router

    def move(self, router):
        homes = Homes(router, router.channels)
        state = StageState(self.state, self.stage.placing(self.homes, homes))
        task = MoveTask(self.segments, f"moved-{self.epoch}", (state,))
        departures = {channel: task.work(channel) for channel in range(self.homes.channels)}
        self.moved += sum(each.rows for every in departures.values() for each in every)
        self.state = gathered(self.stage, state, departures, 0, homes.channels)
        self.homes = homes


def drawn(rng, epochs=12):
    return [
        [
            {"time": 20 * e + int(t), "k": int(k), "v": int(v), "wait": int(v) + 1, "s": None}
            for t, k, v in zip(*rng.integers([[0], [0], [0]], [[30], [25], [30]], (3, 12)), strict=True)
        ]
        for e in range(epochs)
    ]


@pytest.mark.parametrize(
    ("function", "options"),
    [(Sessions(), SESSION | {"timeout": "60 us"}), (Running(), SESSION), (Waiting(), WAITING)],
    ids=["sessions", "running", "timers"],
)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=2)
def test_moving_keys_changes_nothing(function, options, seed):
    epochs = drawn(np.random.default_rng(seed))
    process = relation(function, **options)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        moving = Moving(process, one, seed)
        assert moving.run(epochs, 6) == Channels(process, other).run(epochs, 6)
        assert moving.moved > 0
    assert len(accepted(epochs, 6)[0]) < 12 * 12  # some are late
