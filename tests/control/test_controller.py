"""What the controller does with policies that decide, fail, repeat themselves or ask for the impossible."""

import json
from dataclasses import dataclass, field

import pytest

from control.simulated import controller, run, stage
from penstock.control.controller import MOST_FAILURES, Controller
from penstock.control.function_policy import FunctionPolicy
from penstock.control.limits import Limits
from penstock.control.observation import ChannelLoad, Moved, Observation, StageChannels
from penstock.control.rebalance_when import rebalance_when
from penstock.control.rescale import Rescale
from penstock.errors import BadLimits, BadOption, BadRescale


def seen(epoch, *tuples, moved=None, at=None):
    loads = tuple(ChannelLoad(place, each, 1.0, 1, 1, 1) for place, each in enumerate(tuples or (1, 1)))
    given = StageChannels(0, "agg", "balanced", len(loads), loads, (1.0,) * 3, (1.2,) * 3, (), moved=moved)
    return Observation(epoch, (given,), committed=10.0 * epoch if at is None else at)


def asks(size=0.0, channels=2):
    return FunctionPolicy(
        lambda _: [Rescale(0, channels, reason="r", numbers={"bytes": size} if size else {})]
    )


def ask(control, *observations):
    found = []
    for each in observations:
        control.observe(each)
        found += control.decide(each.committed)
    return found


@dataclass
class Fails:
    """A policy that raises in `observe` or in `decide` in some epochs."""

    where: str
    epochs: range
    _epoch: int = field(default=0)

    def observe(self, given):
        self._epoch = given.epoch
        self._raise("observe")

    def decide(self, _):
        self._raise("decide")
        return [Rescale(0, 4, reason="fine")]

    def to_json(self):
        return {}

    def resume(self, _):
        pass

    def _raise(self, where):
        if where == self.where and self._epoch in self.epochs:
            raise ZeroDivisionError("by zero")


@pytest.mark.parametrize("where", ["observe", "decide"])
def test_a_policy_that_fails_changes_nothing_and_is_told(where):
    found = ask(Controller({"mine": Fails(where, range(2))}), *(seen(epoch) for epoch in range(3)))
    assert [each.carried_out for each in found] == [False, False, True]
    assert found[0].words() == (
        "epoch 0, mine: the policy failed, the last plan is kept: ZeroDivisionError: by zero"
    )


@pytest.mark.parametrize("where", ["observe", "decide"])
def test_a_policy_that_keeps_failing_is_switched_off_until_the_next_start(where):
    control = Controller({"mine": Fails(where, range(9)), "other": asks()})
    found = ask(control, *(seen(epoch) for epoch in range(12)))
    failures = [each for each in found if each.policy == "mine"]
    assert len(failures) == MOST_FAILURES
    assert failures[-1].held.endswith("after 5 failures in a row it is switched off until the next start")
    assert sum(each.policy == "other" for each in found) == 12
    again = Controller({"mine": Fails(where, range(9))})
    again.resume(json.loads(json.dumps(control.to_json())))
    assert ask(again, seen(12)) == []
    again.started()
    assert ask(again, seen(13))[0].carried_out


def test_a_failing_policy_does_not_disturb_the_others():
    simulated, alone = stage(2, 1.0), stage(2, 1.0)
    both = Controller({"bad": FunctionPolicy(lambda _: 1 / 0), **controller(simulated).policies})
    rulings, busiest = run(simulated, both, 12)
    expected, same = run(alone, controller(alone), 12)
    assert busiest == same
    assert [each for each in rulings if each.policy == "skew"] == expected


def test_what_is_no_decision_is_a_failure():
    (found,) = ask(Controller({"mine": FunctionPolicy(lambda _: ["more"])}), seen(0))
    assert "TypeError: it decided str; give Rescale, Change or Scale" in found.held


def test_a_stage_follows_the_first_of_two_decisions():
    found = ask(Controller({"one": asks(channels=3), "two": asks(channels=4)}), seen(0))
    assert [each.held for each in found] == ["", "another decision for this stage comes first"]


def test_what_cannot_be_met_is_held_back():
    def check(_):
        raise BadRescale("stage 0 does not exist")

    (found,) = ask(Controller({"one": asks()}, check=check), seen(0))
    assert found.held == "it cannot be met: stage 0 does not exist"


def test_modes():
    (found,) = ask(Controller({"one": asks()}, mode="observe"), seen(0))
    assert found.held == "dry run"
    assert ask(Controller({"one": asks()}, mode="off"), seen(0)) == []
    with pytest.raises(BadOption, match="on, observe, off"):
        Controller({}, mode="dry")


def test_the_least_interval_is_kept():
    limits = Limits(least_interval=25)
    found = ask(Controller({"one": asks()}, limits), *(seen(epoch) for epoch in range(7)))
    assert [each.epoch for each in found if each.carried_out] == [0, 3, 6]
    assert found[1].held == "the stage changed 10.00 s ago, at least 25.00 s have to be in between"


def test_bytes_of_the_last_hour_are_limited():
    moved = Moved(0, 2, 2, rows=1, bytes=1_900_000_000)
    control = Controller({"one": asks(size=2e8)}, Limits(most_bytes_an_hour=2e9))
    found = ask(control, seen(0, moved=moved, at=0.0), seen(1, at=60.0), seen(2, at=3_700.0))
    assert [each.held for each in found] == [
        *["1.9 GB moved in the last hour, 200.0 MB more, limit 2.0 GB"] * 2,
        "",
    ]


def test_what_is_expected_to_move_counts_until_it_has_moved():
    control = Controller({"one": asks(size=6e8)}, Limits(most_bytes_an_hour=1e9))
    moved = Moved(0, 2, 2, rows=1, bytes=100)
    found = ask(control, seen(0), seen(1), seen(2, moved=moved))
    assert [bool(each.held) for each in found] == [False, True, False]


def test_stages_and_hours_are_excluded():
    (found,) = ask(Controller({"one": asks()}, Limits(excluded_stages=[0])), seen(0))
    assert found.held == "stage 0 is excluded"
    night = Limits(excluded_hours=[(22, 6)])
    for hour, held in ((21.9, False), (22.0, True), (2.0, True), (6.0, False)):
        (found,) = ask(Controller({"one": asks()}, night), seen(0, at=86_400 * 9 + hour * 3600))
        assert bool(found.held) == held


@pytest.mark.parametrize(
    "given",
    [
        {"least_interval": -1},
        {"least_interval": float("nan")},
        {"most_bytes_an_hour": True},
        {"excluded_stages": "0"},
        {"excluded_stages": [-1]},
        {"excluded_hours": [(1, 25)]},
        {"excluded_hours": [(1, 1)]},
        {"excluded_hours": [1]},
        {"excluded_hours": 5},
    ],
)
def test_limits_that_mean_nothing_are_refused(given):
    with pytest.raises(BadLimits, match=next(iter(given))):
        Limits(**given)


def test_controller_limits_and_functions_go_on_after_a_restart():
    limits = Limits(least_interval=45)
    given = [seen(epoch, 900, 500) for epoch in range(12)]

    def make():
        return Controller({"mine": FunctionPolicy(rebalance_when(1.2, epochs=2, pause=2))}, limits)

    whole, first, second = make(), make(), make()
    expected = ask(whole, *given)
    begun = ask(first, *given[:5])
    second.resume(json.loads(json.dumps(first.to_json())))
    assert begun + ask(second, *given[5:]) == expected
    assert {each.carried_out for each in expected} == {True, False}
