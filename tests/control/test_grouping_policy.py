"""An exchange is switched on where it pays, and off where it does not."""

import json

from penstock.control.grouping_policy import GroupingPolicy
from penstock.control.observation import ChannelLoad, Grouped, Observation, StageChannels
from penstock.control.recording import Recording, controller_line, differences, epoch_line
from penstock.control.setup import Setup

EVERY = ("in place", "round robin", "by cost")


def seen(epoch, tasks, seconds, grouping="in place", *, deviation=2.0, allowed=EVERY):
    """An epoch of 1,000 rows on four slots and channels."""
    channels = tuple(ChannelLoad(place, 250, 0.25, 0, 0, 0) for place in range(4))
    grouped = Grouped(grouping, allowed, tuple(tasks), seconds, 1e-3, deviation)
    stage = StageChannels(0, "map", "balanced", 4, channels, (1.0,) * 3, (1.2,) * 3, (), grouped=grouped)
    return Observation(epoch, (stage,), slots=4, rows=1000)


def followed(policy, world, epochs=12):
    """The groupings of epochs in a world where each takes what `world` says: tasks, and seconds on top."""
    grouping, ways, reasons = "in place", [], []
    for epoch in range(epochs):
        ways.append(grouping)
        tasks, beyond, deviation = world[grouping]
        policy.observe(seen(epoch, tasks, max(tasks) + beyond, grouping, deviation=deviation))
        for wish in policy.decide(0.0):
            assert (wish.setting, wish.words()) == ("grouping", f"rows {wish.value}")
            grouping = wish.value
            reasons.append(wish.reason)
    return ways, reasons


def test_rows_are_placed_by_cost_where_tasks_of_the_source_are_uneven():
    uneven = {"in place": ([4, 1, 1, 2], 0.1, 2.0), "by cost": ([2.02, 2, 2, 2], 0.4, 2.0)}
    ways, (reason,) = followed(GroupingPolicy(), uneven)
    assert ways == ["in place"] * 3 + ["by cost"] * 9
    assert reason.startswith("rows by cost: an epoch takes 2.")
    assert "instead of 4.10 s; the fullest slot has 1.0" in reason


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
    assert "rows in place: an epoch takes 2.97 s instead of 3.10 s" in reasons[-1]


def test_one_slow_epoch_changes_nothing():
    policy, found = GroupingPolicy(), []
    for epoch in range(30):
        slow = 9.0 if epoch % 10 == 5 else 2.1
        policy.observe(seen(epoch, [2.0, 2, 2, 2], slow, deviation=0.1))
        found += policy.decide(0.0)
    assert found == []


def test_now_and_then_an_epoch_without_the_exchange_tells_whether_it_still_pays():
    world = {"in place": ([4, 1, 1, 2], 0.1, 2.0), "by cost": ([2.02, 2, 2, 2], 0.2, 2.0)}
    ways, reasons = followed(GroupingPolicy(), world, 140)
    assert ways[3:].count("in place") == 2
    assert reasons[1].startswith("a trial: no epoch has run without the exchange for 64")


def test_a_stage_with_one_grouping_is_left_alone():
    policy = GroupingPolicy()
    for epoch in range(9):
        policy.observe(seen(epoch, [4, 1, 1, 2], 5.0, "round robin", allowed=("round robin",)))
        assert policy.decide(0.0) == []


def test_it_decides_the_same_after_a_restart_and_in_a_replay():
    setup = Setup({"grouping": {}})
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
    assert told[0]["decision"]["kind"] == "grouping"
    assert differences(recording, {}.get) == []
