"""What the skew policy promises, on simulated stages: when it moves, when not, and what it reaches."""

import json

import numpy as np
import pytest

from control.simulated import UNIFORM, controller, run, stage
from penstock.control.limits import Limits
from penstock.control.observation import Observation
from penstock.control.skew import SkewPolicy, SkewSettings

SEEDS = range(2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("letters", ["LLL", "CLL"])
@pytest.mark.parametrize("skew", [0.9, 1.0, 1.2])
def test_a_hot_set_that_is_exchanged_is_even_again_within_ten_epochs(seed, letters, skew):
    simulated = stage(seed, skew, 50_000, letters=letters, seconds=4.0)
    _, busiest = run(simulated, controller(simulated), 36, exchanges=(12, 24))
    best = simulated.least_busiest
    for end in (10, 22, 34):
        assert busiest[end] <= (1.15 if best == 1.0 else 1.05 * best), (seed, busiest)
    assert len(simulated.moves) <= 6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", [0.02, 0.3])
@pytest.mark.parametrize("slots", [2, 8])
def test_a_quiet_uniform_stream_never_moves(seed, noise, slots):
    simulated = stage(seed, UNIFORM, 2_000, noise=noise, slots=slots, tuples=50_000, tracked=128)
    rulings, _ = run(simulated, controller(simulated), 300)
    assert rulings == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("skew", [1.0, 1.4])
def test_stationary_input_comes_to_rest(seed, skew):
    simulated = stage(seed, skew, 2_000, noise=0.15, tuples=50_000, tracked=128)
    rulings, _ = run(simulated, controller(simulated), 500)
    assert len(rulings) <= 4
    assert all(each.epoch < 200 for each in rulings), [each.epoch for each in rulings]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("skew", [0.8, 1.0, 1.4])
def test_stationary_input_stays_at_rest_over_ten_thousand_epochs(seed, skew):
    simulated = stage(seed, skew, 2_000, noise=0.15, tuples=50_000, tracked=128)
    rulings, _ = run(simulated, controller(simulated), 10_000)
    assert len(rulings) <= 6
    assert all(each.epoch < 1_000 for each in rulings), [each.epoch for each in rulings]


@pytest.mark.parametrize("seed", range(6))
def test_no_move_without_a_predicted_gain_above_its_price(seed):
    random = np.random.default_rng(seed)
    given = {
        "letters": str(random.choice(["LLL", "CLL", "LQL", "CCL"])),
        "slots": int(random.integers(1, 9)),
        "seconds": float(10 ** random.uniform(-3, 1)),
        "noise": float(random.uniform(0, 0.3)),
        "state": float(10 ** random.uniform(4, 10)),
        "overhead": float(random.uniform(0, 0.9)),
    }
    simulated = stage(seed, float(random.uniform(0, 1.5)), 5_000, tracked=256, **given)
    rulings, _ = run(simulated, controller(simulated), 120, exchanges=range(0, 120, 30))
    for each in rulings:
        numbers = each.decision.numbers
        assert numbers["gain"] > numbers["price"] > 0, (given, each.words())


def test_cheap_epochs_are_not_worth_a_move():
    simulated = stage(1, 1.0, seconds=0.001, state=1e9)
    rulings, _ = run(simulated, controller(simulated), 200)
    assert rulings == []


@pytest.mark.parametrize("seed", SEEDS)
def test_bursts_are_not_chased(seed):
    """Hot sets that last four epochs: moves cost at most about what standing still would."""
    simulated = stage(seed, 1.0, seconds=0.5, noise=0.1, seconds_a_move=0.3)
    run(simulated, controller(simulated), 120, exchanges=range(0, 120, 4))
    assert len(simulated.moves) <= 12


@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_replay_byte_for_byte_also_from_a_state_saved_in_the_middle(seed):
    simulated = stage(seed, 1.1)
    control, seen, told, states = controller(simulated), [], [], []
    for epoch in range(40):
        if epoch == 20:
            simulated.exchange()
        states.append(json.dumps(control.to_json()))
        each = simulated.next()
        seen.append(json.dumps(each.to_json()))
        control.observe(each)
        found = control.decide(each.committed)
        simulated.follow([ruling.decision for ruling in found if ruling.carried_out])
        told.append(json.dumps([ruling.to_json() for ruling in found]))
    assert sum(each != "[]" for each in told) >= 2
    for start in (0, 13, 23):
        again = controller(simulated)
        again.resume(json.loads(states[start]))
        for epoch in range(start, 40):
            each = Observation.from_json(json.loads(seen[epoch]))
            again.observe(each)
            assert json.dumps([ruling.to_json() for ruling in again.decide(each.committed)]) == told[epoch]


def test_a_hot_key_is_split_where_the_operator_allows_it():
    simulated = stage(1, 1.3, 2_000, splits=True, noise=0.05)
    rulings, busiest = run(simulated, controller(simulated), 6)
    assert rulings[0].decision.setting == "sub-keys"
    assert rulings[0].decision.value is not None
    assert rulings[0].decision.reason.startswith("split: the busiest channel has ")
    assert busiest[-1] <= 1.1
    assert simulated.moves == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("copied", "skew"), [("both", 1.0), ("right", 1.2)])
def test_hot_keys_of_a_join_get_grids_and_lose_them_when_others_are_hot(seed, copied, skew):
    simulated = stage(seed, skew, letters="LQL", copied=copied, seconds=4.0)
    rulings, busiest = run(simulated, controller(simulated), 36, exchanges=(12, 24))
    for end in (10, 22, 34):
        # A piece of a key on a grid, or a whole key next to it, has up to a quarter of a fair share.
        assert busiest[end] <= 1.2, (seed, [each.words() for each in rulings], busiest)
    spreads = [each.decision.spread for each in rulings if each.decision.spread is not None]
    assert spreads[0].grids.keys().isdisjoint(spreads[-1].grids)
    assert len(simulated.moves) <= 8


@pytest.mark.parametrize("seed", SEEDS)
def test_grids_come_to_rest_on_stationary_input(seed):
    simulated = stage(seed, 1.1, 2_000, letters="LQL", copied="both", noise=0.15, tracked=128)
    rulings, _ = run(simulated, controller(simulated), 400)
    assert len(rulings) <= 4
    assert all(each.epoch < 200 for each in rulings), [each.epoch for each in rulings]


def test_a_reason_says_it_in_numbers():
    simulated = stage(2, 1.0)
    rulings, _ = run(simulated, controller(simulated), 12)
    reason = rulings[0].decision.reason
    for words in ("time of the busiest channel was ", " for ", "moving ", " costs ", " saves ", " an epoch"):
        assert words in reason


def test_a_dry_run_tells_and_does_nothing():
    simulated = stage(2, 1.0)
    rulings, busiest = run(simulated, controller(simulated, mode="observe"), 60)
    assert {each.held for each in rulings} == {"dry run"}
    assert 1 <= len(rulings) <= 6
    assert simulated.moves == []
    assert len(set(busiest)) == 1


def test_limits_hold_moves_back():
    simulated = stage(2, 1.0)
    rulings, _ = run(simulated, controller(simulated, limits=Limits(most_bytes_an_hour=1_000)), 40)
    assert rulings
    assert all(each.held.endswith("limit 1.0 kB") for each in rulings)
    assert simulated.moves == []


def test_other_tolerances_are_the_settings():
    simulated = stage(2, 1.0)
    policy = SkewPolicy(simulated.find, SkewSettings(alpha=100.0))
    for _ in range(20):
        policy.observe(simulated.next())
        assert policy.decide(0.0) == []
