"""Grouping and channels are one decision: an exchange is switched on where it pays, over as many as pay."""

import json

import numpy as np
import pytest

from penstock.control.controller import Controller
from penstock.control.grouping_policy import GroupingPolicy
from penstock.control.limits import Budget, Limits
from penstock.control.objective import Objective, makespan
from penstock.control.observation import ChannelLoad, Grouped, Observation, StageChannels
from penstock.control.recording import Recording, controller_line, differences, epoch_line
from penstock.control.rescale import Rescale
from penstock.control.setup import Setup
from penstock.routing import place_by_cost
from penstock.sketches import MeanCost
from penstock_lab.workloads import draw, zipf_shares

EVERY = ("in place", "round robin", "by cost")


def seen(epoch, tasks, seconds, grouping="in place", *, deviation=2.0, allowed=EVERY, channels=4):
    """An epoch of 1,000 rows on four slots and cores."""
    loads = tuple(ChannelLoad(place, 1000 // channels, 0.25, 0, 0, 0) for place in range(channels))
    grouped = Grouped(grouping, allowed, tuple(tasks), seconds, 1e-3, deviation)
    stage = StageChannels(0, "map", "balanced", 4, loads, (1.0,) * 3, (1.2,) * 3, (), grouped=grouped)
    return Observation(epoch, (stage,), slots=4, cores=4.0, rows=1000)


def followed(policy, world, epochs=12):
    """The groupings of epochs in a world where each takes what `world` says: tasks, and seconds on top."""
    grouping, ways, reasons = "in place", [], []
    for epoch in range(epochs):
        ways.append(grouping)
        tasks, beyond, deviation = world[grouping]
        policy.observe(seen(epoch, tasks, max(tasks) + beyond, grouping, deviation=deviation))
        for wish in (each for one in policy.propose(0.0) for each in one.changes):
            assert (wish.setting, wish.words()) == ("grouping", f"rows {wish.value}")
            grouping = wish.value
            reasons.append(wish.reason)
    return ways, reasons


def test_rows_are_placed_by_cost_where_tasks_of_the_source_are_uneven():
    uneven = {"in place": ([4, 1, 1, 2], 0.1, 2.0), "by cost": ([2.02, 2, 2, 2], 0.4, 2.0)}
    ways, (reason,) = followed(GroupingPolicy(), uneven)
    assert ways == ["in place"] * 3 + ["by cost"] * 9
    assert reason.startswith("rows by cost over 4 channels: an epoch takes 2.")
    assert "instead of 4.10 s, and of the processor 8.02 s instead of 8.00 s; the busiest has 1.0" in reason


def test_a_machine_on_which_everything_waits_hides_no_gain():
    slow = {"in place": ([4, 1, 1, 2], 60.0, 2.0), "by cost": ([2.02, 2, 2, 2], 60.2, 2.0)}
    ways, _ = followed(GroupingPolicy(), slow)
    assert ways == ["in place"] * 3 + ["by cost"] * 9


def test_nothing_is_exchanged_where_costs_are_equal_and_tasks_even():
    even = {"in place": ([2.0, 2.01, 2, 2.02], 0.1, 0.0)}
    assert followed(GroupingPolicy(), even, 80) == (["in place"] * 80, [])


def test_equal_costs_in_a_single_task_need_no_more_than_equal_numbers():
    single = {"in place": ([8], 0.1, 0.0), "round robin": ([2, 2, 2, 2], 0.3, 0.0)}
    ways, _ = followed(GroupingPolicy(), single)
    assert ways[3:] == ["round robin"] * 9


def test_an_exchange_that_costs_more_than_it_saves_is_switched_off_and_stays_off():
    dear = {
        "in place": ([2.8, 2, 2, 1.8], 0.1, 2.0),
        "by cost": ([2.15, 2.15, 2.15, 2.15], 0.9, 2.0),
        "round robin": ([2.4, 2, 2, 2.4], 0.7, 2.0),
    }
    ways, reasons = followed(GroupingPolicy(), dear, 40)
    assert "by cost" in ways
    assert set(ways[20:]) == {"in place"}
    assert "rows in place: an epoch takes 2.90 s instead of 3.05 s" in reasons[-1]


def test_one_slow_epoch_changes_nothing():
    policy, found = GroupingPolicy(), []
    for epoch in range(30):
        slow = 9.0 if epoch % 10 == 5 else 2.1
        policy.observe(seen(epoch, [2.0, 2, 2, 2], slow, deviation=0.1))
        found += [change for each in policy.propose(0.0) for change in each.changes]
    assert found == []


def test_now_and_then_an_epoch_without_the_exchange_tells_whether_it_still_pays():
    world = {"in place": ([4, 1, 1, 2], 0.1, 2.0), "by cost": ([2.02, 2, 2, 2], 0.2, 2.0)}
    ways, reasons = followed(GroupingPolicy(), world, 140)
    assert ways[3:].count("in place") == 2
    assert reasons[1].startswith("a trial: no epoch has run without the exchange for 64")


def test_a_stage_with_one_grouping_keeps_it_and_a_given_number_of_channels():
    policy = GroupingPolicy()
    for epoch in range(9):
        policy.observe(seen(epoch, [4, 1, 1, 2], 5.0, "round robin", allowed=("round robin",)))
        assert [each.changes for each in policy.propose(0.0)] == [()]


def test_that_costs_are_unknown_is_said():
    policy = GroupingPolicy()
    observed = seen(0, [2, 2, 2, 2], 2.1, "round robin", allowed=("round robin", "by cost"))
    stage = observed.stages[0]
    grouped = Grouped(
        "round robin", stage.grouped.allowed, (2, 2, 2, 2), 2.1, unknown="no column explains it"
    )
    policy.observe(
        Observation(0, (StageChannels(**{**vars(stage), "grouped": grouped}),), slots=4, cores=4.0)
    )
    (told,) = policy.propose(0.0)
    assert told.reason.endswith("none go by cost, because no column explains it")


def test_it_decides_the_same_after_a_restart_and_in_a_replay():
    setup = Setup({"grouping": {"least": 1, "most": None}})
    controller, lines = setup.controller({}.get), []
    lines.append(controller_line(setup, controller.to_json()))
    for epoch in range(6):
        restarted = setup.controller({}.get)
        restarted.resume(json.loads(json.dumps(controller.to_json())))
        controller = restarted
        observed = seen(epoch, [4, 1, 1, 2], 5.0)
        controller.observe(observed)
        lines.append(epoch_line(observed, controller.decide(0.0)))
    recording = Recording.parse(lines)
    told = [ruling for each in recording.epochs for ruling in each.rulings]
    assert told[0]["held"].startswith("stage 0 stays: rows in place take ")
    told = [each for each in told if each["decision"] is not None]
    assert told[0]["decision"]["kind"] == "grouping"
    assert differences(recording, {}.get) == []


class Mapped:
    """A map without state whose rows cost what their value does, drawn by Zipf 1.5, on paper.

    In place, rows come in so many tasks of the source; placing is Penstock's own, with full knowledge of the
    costs. An exchange takes 30 ms, and measures have a few percent of noise.
    """

    def __init__(
        self, seed, *, rows, mean, spread, channels=4, slots=4, sources=1, allowed=EVERY, noise=0.03
    ):
        self.chance = np.random.default_rng(seed)
        self.shares = zipf_shares(4096, 1.5)
        self.costs = self.chance.permutation(np.geomspace(1, spread, 4096))
        self.costs *= mean / float(self.costs @ self.shares)
        self.rows, self.channels, self.slots, self.sources = rows, channels, slots, sources
        self.allowed, self.noise, self.grouping, self.epoch = allowed, noise, allowed[0], 0
        self.sketch = MeanCost(0.0005, 0.05)
        self.sketch.update(np.arange(4096, dtype=np.uint64), self.costs)

    def next(self):
        values = draw(self.chance, self.shares, self.rows)
        each = self.costs[values]
        stays = self.grouping == "in place"
        count = self.sources if stays else self.channels
        at = np.arange(self.rows) % count
        if self.grouping == "by cost":
            hashes = values.astype(np.uint64)
            at = place_by_cost(hashes, self.chance.permutation(hashes), self.sketch, count, 0)
        tasks = np.bincount(at, each, count) * self.chance.normal(1, self.noise, count)
        mean = float(self.costs @ self.shares)
        deviation = float(np.sqrt((self.costs - mean) ** 2 @ self.shares)) / mean
        objective = Objective(self.slots, self.slots)
        seconds = makespan(tasks, self.slots) if stays else 0.03 + objective.seconds(tasks, tasks.sum())
        grouped = Grouped(self.grouping, self.allowed, tuple(tasks), 0.05 + seconds, mean, deviation)
        loads = tuple(
            ChannelLoad(place, int((at % self.channels == place).sum()), 0.0, 0, 0, 0, cpu_seconds=load)
            for place, load in enumerate(np.bincount(np.arange(count) % self.channels, tasks, self.channels))
        )
        stage = StageChannels(0, "map", "any", self.channels, loads, (1.0,) * 3, (1.2,) * 3, grouped=grouped)
        self.epoch += 1
        return Observation(self.epoch, (stage,), slots=self.slots, cores=float(self.slots), rows=self.rows)

    def run(self, policy, epochs):
        """The reasons of changes."""
        control, reasons = Controller({"grouping": policy}, Budget(Limits())), []
        for _ in range(epochs):
            control.observe(self.next())
            for each in (one.decision for one in control.decide(0.0) if one.carried_out and one.decision):
                reasons.append(each.reason)
                if isinstance(each, Rescale):
                    self.channels = each.channels
                else:
                    self.grouping = each.value
        return reasons

    @property
    def way(self):
        return self.grouping, self.channels


def test_by_itself_rows_go_by_cost_where_costs_differ_and_it_pays():
    world = Mapped(1, rows=200, mean=0.02, spread=100)
    world.run(GroupingPolicy(least=1), 30)
    assert world.way == ("by cost", 4)


def test_from_rows_in_turn_too():
    world = Mapped(1, rows=200, mean=0.02, spread=100, allowed=("round robin", "by cost"))
    world.run(GroupingPolicy(least=1), 30)
    assert world.way == ("by cost", 4)


def test_equal_costs_are_dealt_out_in_turn():
    world = Mapped(2, rows=4000, mean=0.001, spread=1.0)
    world.run(GroupingPolicy(least=1), 30)
    assert world.way == ("round robin", 4)


def test_three_channels_by_cost_take_the_place_of_four_in_turn_in_one_change():
    """Tasks are dear here, so that evenness is worth more than a fourth channel."""
    world = Mapped(1, rows=40, mean=0.02, spread=3000, allowed=("round robin", "by cost"))
    regrouped, rescaled = world.run(GroupingPolicy(least=1, cpu_price=20), 30)
    assert world.way == ("by cost", 3)
    assert regrouped == rescaled
    assert regrouped.startswith("rows by cost over 3 channels: an epoch takes ")


def test_channels_follow_the_load_up_and_down_and_rest_while_it_is_steady():
    world = Mapped(4, rows=20, mean=0.0002, spread=10, channels=1, slots=8, allowed=("round robin",))
    policy = GroupingPolicy(least=1)
    world.run(policy, 20)
    assert world.channels == 1
    world.rows = 8000
    world.run(policy, 10)
    assert world.channels == 8
    assert world.run(policy, 300) == []
    world.rows = 20
    world.run(policy, 30)
    assert world.channels <= 2


@pytest.mark.parametrize("seed", range(3))
def test_a_steady_load_comes_to_rest_whatever_the_noise(seed):
    world = Mapped(seed, rows=2000, mean=0.001, spread=10, slots=8, sources=8, noise=0.15)
    policy = GroupingPolicy(least=1)
    world.run(policy, 40)
    assert [each for each in world.run(policy, 300) if "a trial" not in each] == []
