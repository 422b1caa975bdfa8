"""What the controller does with policies that decide, fail, repeat themselves or ask for the impossible."""

import json
from dataclasses import dataclass, field, replace

import pytest

from control.simulated import controller, run, stage
from penstock.control.controller import MOST_FAILURES, Controller
from penstock.control.function_policy import FunctionPolicy
from penstock.control.limits import Budget, Limits
from penstock.control.observation import ChannelLoad, Moved, Observation, StageChannels
from penstock.control.outcomes import Outcomes
from penstock.control.proposal import Effect, Proposal
from penstock.control.rescale import Rescale
from penstock.control.ruling import OVERRULED
from penstock.errors import BadLimits, BadOption, BadRescale


def seen(epoch, *tuples, moved=None, at=None):
    loads = tuple(ChannelLoad(place, each, 1.0, 1, 1, 1) for place, each in enumerate(tuples or (1, 1)))
    given = StageChannels(0, "agg", "balanced", len(loads), loads, (1.0,) * 3, (1.2,) * 3, (), moved=moved)
    return Observation(epoch, (given,), committed=10.0 * epoch if at is None else at)


def asks(size=0.0, channels=2):
    return FunctionPolicy(
        lambda _: [Rescale(0, channels, reason="r", numbers={"bytes": size} if size else {})]
    )


def control_of(policies, limits=None, **given):
    return Controller(policies, Budget(limits or Limits()), **given)


def ask(control, *observations):
    found = []
    for each in observations:
        control.observe(each)
        found += control.decide(each.committed)
    return found


@dataclass
class Fails:
    """A policy that raises in `observe` or in `propose` in some epochs."""

    where: str
    epochs: range
    _epoch: int = field(default=0)

    def observe(self, given):
        self._epoch = given.epoch
        self._raise("observe")

    def propose(self, _):
        self._raise("propose")
        return [Proposal((Rescale(0, 4, reason="fine"),), urgent=True)]

    def to_json(self):
        return {}

    def resume(self, _):
        pass

    def _raise(self, where):
        if where == self.where and self._epoch in self.epochs:
            raise ZeroDivisionError("by zero")


@pytest.mark.parametrize("where", ["observe", "propose"])
def test_a_policy_that_fails_changes_nothing_and_is_told(where):
    found = ask(control_of({"mine": Fails(where, range(2))}), *(seen(epoch) for epoch in range(3)))
    assert [each.carried_out for each in found] == [False, False, True]
    assert found[0].words() == (
        "epoch 0, mine: the policy failed, the last plan is kept: ZeroDivisionError: by zero"
    )


@pytest.mark.parametrize("where", ["observe", "propose"])
def test_a_policy_that_keeps_failing_is_switched_off_until_the_next_start(where):
    control = control_of({"mine": Fails(where, range(9)), "other": asks()})
    found = ask(control, *(seen(epoch) for epoch in range(12)))
    failures = [each for each in found if each.policy == "mine"]
    assert len(failures) == MOST_FAILURES
    assert failures[-1].held.endswith("after 5 failures in a row it is switched off until the next start")
    assert sum(each.policy == "other" for each in found) == 12
    again = control_of({"mine": Fails(where, range(9))})
    again.resume(json.loads(json.dumps(control.to_json())))
    assert ask(again, seen(12)) == []
    again.started()
    assert ask(again, seen(13))[0].carried_out


def test_a_failing_policy_does_not_disturb_the_others():
    simulated, alone = stage(2, 1.0), stage(2, 1.0)
    both = control_of({"bad": FunctionPolicy(lambda _: 1 / 0), **controller(simulated).policies})
    rulings, busiest = run(simulated, both, 12)
    expected, same = run(alone, controller(alone), 12)
    assert busiest == same
    assert [each for each in rulings if each.policy == "layout"] == expected


def test_what_is_no_decision_is_a_failure():
    (found,) = ask(control_of({"mine": FunctionPolicy(lambda _: ["more"])}), seen(0))
    assert "TypeError: it decided str; give Rescale, Change, Scale or Pace" in found.held


def test_a_stage_follows_the_first_of_two_decisions():
    found = ask(control_of({"one": asks(channels=3), "two": asks(channels=4)}), seen(0))
    assert [each.held for each in found] == ["", "a proposal for the same setting is worth more"]


def test_what_cannot_be_met_is_held_back():
    def check(_):
        raise BadRescale("stage 0 does not exist")

    (found,) = ask(control_of({"one": asks()}, check=check), seen(0))
    assert found.held == "it cannot be met: stage 0 does not exist"


def test_modes():
    (found,) = ask(control_of({"one": asks()}, mode="observe"), seen(0))
    assert found.held == "dry run"
    assert ask(control_of({"one": asks()}, mode="off"), seen(0)) == []
    with pytest.raises(BadOption, match="on, observe, off"):
        control_of({}, mode="dry")


def test_the_least_interval_is_kept():
    limits = Limits(least_interval=25)
    found = ask(control_of({"one": asks()}, limits), *(seen(epoch) for epoch in range(7)))
    assert [each.epoch for each in found if each.carried_out] == [0, 3, 6]
    assert found[1].held == "the stage changed 10.00 s ago, at least 25.00 s have to be in between"


def test_bytes_of_the_last_hour_are_limited():
    moved = Moved(0, 2, 2, rows=1, bytes=1_900_000_000)
    control = control_of({"one": asks(size=2e8)}, Limits(most_bytes_an_hour=2e9))
    found = ask(control, seen(0, moved=moved, at=0.0), seen(1, at=60.0), seen(2, at=3_700.0))
    assert [each.held for each in found] == [
        "1.9 GB moved in the last hour, 200.0 MB more, limit 2.0 GB",
        "",
    ]


def test_what_is_expected_to_move_counts_until_it_has_moved():
    control = control_of({"one": asks(size=6e8)}, Limits(most_bytes_an_hour=1e9))
    moved = Moved(0, 2, 2, rows=1, bytes=100)
    found = ask(control, seen(0), seen(1), seen(2, moved=moved))
    assert [bool(each.held) for each in found] == [False, True, False]


def test_stages_and_hours_are_excluded():
    (found,) = ask(control_of({"one": asks()}, Limits(excluded_stages=[0])), seen(0))
    assert found.held == "stage 0 is excluded"
    night = Limits(excluded_hours=[(22, 6)])
    for hour, held in ((21.9, False), (22.0, True), (2.0, True), (6.0, False)):
        (found,) = ask(control_of({"one": asks()}, night), seen(0, at=86_400 * 9 + hour * 3600))
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

    class Counts:
        def __init__(self):
            self.calls = 0

        def __call__(self, _):
            self.calls += 1
            return [Rescale(0, self.calls)]

        def to_json(self):
            return {"calls": self.calls}

        def resume(self, value):
            self.calls = value["calls"]

    def make():
        return control_of({"mine": FunctionPolicy(Counts())}, limits)

    whole, first, second = make(), make(), make()
    expected = ask(whole, *given)
    begun = ask(first, *given[:5])
    second.resume(json.loads(json.dumps(first.to_json())))
    assert begun + ask(second, *given[5:]) == expected
    assert {each.carried_out for each in expected} == {True, False}


@dataclass
class Proposes:
    """A policy that proposes the same in every epoch, with a cause that lasts."""

    effect: dict
    changes: tuple = (Rescale(0, 4, reason="r"),)
    _epochs: int = field(default=0)

    def observe(self, _):
        self._epochs += 1

    def propose(self, _):
        return [Proposal(self.changes, Effect(**self.effect, lasted=self._epochs), "r")]

    def to_json(self):
        return {}

    def resume(self, _):
        pass


def test_a_proposal_is_carried_out_once_what_it_would_have_saved_exceeds_its_price():
    found = ask(
        control_of({"one": Proposes({"seconds": 0.1, "price": 0.35})}), *(seen(each) for each in range(4))
    )
    assert [each.carried_out for each in found] == [False, True]
    assert found[0].held.startswith("not worth its price of 350.0 ms yet: 100.0 ms an epoch for 1 epochs")
    assert found[1].epoch == 3


def test_processor_time_has_a_price():
    spends = Proposes({"seconds": 0.1, "cpu": -2.0})
    assert not any(each.carried_out for each in ask(control_of({"one": spends}), *map(seen, range(9))))


def test_of_two_proposals_for_a_setting_the_more_valuable_one_is_taken():
    small, large = Proposes({"seconds": 0.1}), Proposes({"seconds": 0.2}, (Rescale(0, 5, reason="r"),))
    found = ask(control_of({"small": small, "large": large}), seen(0))
    assert {each.policy: each.carried_out for each in found} == {"small": False, "large": True}


def test_changes_of_a_proposal_are_made_together_or_not_at_all():
    both = Proposes({"seconds": 1.0}, (Rescale(0, 4, reason="r"), Rescale(1, 2, reason="r")))
    found = ask(control_of({"one": both}, Limits(excluded_stages=[1])), seen(0))
    assert [each.held for each in found] == ["stage 1 is excluded"] * 2


def test_a_policy_whose_changes_bring_little_is_trusted_less():
    def cost(epoch, seconds):
        loads = tuple(ChannelLoad(place, 100, seconds, 1, 1, 1) for place in range(2))
        given = StageChannels(0, "agg", "balanced", 2, loads, (1.0,) * 3, (1.2,) * 3, ())
        return Observation(epoch, (given,), committed=float(epoch), slots=2, cores=2.0)

    control = control_of({"one": Proposes({"seconds": 0.5})})
    for epoch in range(8):
        control.observe(cost(epoch, 1.0 if epoch < 1 else 0.95))
        if epoch == 0:
            assert control.decide(float(epoch))[0].carried_out
    (outcome,) = control.outcomes.done
    assert (outcome.policy, outcome.stage, outcome.predicted) == ("one", 0, 0.5)
    assert 0.04 < outcome.measured < 0.06
    assert 0.5 < control.outcomes.trust("one", 0) < 0.6


def two_stages(epoch):
    (one,) = seen(epoch).stages
    return Observation(epoch, (one, replace(one, stage=1)), committed=10.0 * epoch)


def test_what_is_carried_out_counts_for_the_next_proposal_of_the_same_epoch():
    moves = {
        name: Proposes({"seconds": 1.0}, (Rescale(number, 4, reason="r", numbers={"bytes": 1.5e9}),))
        for number, name in enumerate(("one", "other"))
    }
    found = ask(control_of(moves, Limits(most_bytes_an_hour=2e9)), two_stages(0))
    assert sorted(each.carried_out for each in found) == [False, True]


def test_a_request_of_the_user_holds_all_changes_of_a_proposal_back_and_none_is_counted():
    def check(change):
        return OVERRULED if change.stage == 1 else ""

    both = Proposes({"seconds": 1.0}, (Rescale(0, 4, reason="r"), Rescale(1, 2, reason="r")))
    control = control_of({"one": both}, Limits(least_interval=25), check=check)
    assert [each.held for each in ask(control, two_stages(0))] == [OVERRULED] * 2
    control.check = None
    assert all(each.carried_out for each in ask(control, two_stages(1)))


def test_a_dry_run_tells_every_decision():
    control = control_of(
        {"one": FunctionPolicy(lambda given: [Rescale(0, 2 + given.epoch % 2)])}, mode="observe"
    )
    found = ask(control, *map(seen, range(6)))
    assert [each.decision.channels for each in found] == [2, 3]


def test_one_outcome_does_not_ruin_trust():
    outcomes = Outcomes()
    outcomes.observe({0: (1.0, 100)})
    outcomes.took("one", [0], 0.05, 0)
    for _ in range(6):
        outcomes.observe({0: (2.0, 100)})
    assert outcomes.trust("one", 0) == 0.5
