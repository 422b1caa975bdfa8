"""Pacing: the bound is kept with few epochs, and where it cannot be kept there is no wait."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.control.bound import DEFAULT_BOUND
from penstock.control.observation import Moved, Observation
from penstock.control.scaling.pacing import EpochCost, Pacing, fit_cost, wait_before
from penstock.errors import BadScaling

_FIXED, _A_ROW = 0.15, 1e-6


def decided(pacing, now):
    return [change for each in pacing.propose(now) for change in each.changes]


def _taken(number: int, rows: int, started: float, committed: float, left: int = 0) -> Observation:
    return Observation(number, (), arrived=started, committed=committed, rows=rows, left=left)


def _run(rate: float, bound: float, *, seconds: float = 300.0, seed: int = 7) -> tuple[float, float]:
    """The share of rows within the bound and the busy share of the time, after a minute of learning."""
    rng = np.random.default_rng(seed)
    pacing, now, taken, late, rows_seen, busy = Pacing(bound), 0.0, 0.0, 0.0, 0.0, 0.0
    for number in range(100_000):
        if now > seconds:
            break
        rows = rate * (now - taken)
        end = now + (_FIXED + _A_ROW * rows) * (1 + rng.exponential(0.05))
        if now > 60:
            busy += end - now
            # Rows arrive evenly between two starts; those from before end - bound are late.
            late += min(max(end - bound - taken, 0.0), now - taken) * rate
            rows_seen += rows
        pacing.observe(_taken(number, int(rows), now, end))
        taken = now
        (pace,) = decided(pacing, end)
        now = end + pace.wait
    return 1 - late / rows_seen, busy / (seconds - 60)


@pytest.mark.parametrize("rate", [1_000, 20_000, 200_000])
@pytest.mark.parametrize("bound", [0.5, 2.0, 10.0])
def test_bound_is_kept_and_the_fixed_cost_is_shared(rate: float, bound: float) -> None:
    within, busy = _run(rate, bound)
    assert within >= 0.99, f"seed 7: {within}"
    # Every interval is at least a third of what the bound leaves, whose cost nothing can save.
    assert busy <= 3 * _FIXED / (0.9 * bound - _FIXED) + 1.2 * _A_ROW * rate


def test_without_a_bound_epochs_wait_only_once_a_run_is_busy() -> None:
    pacing, waits = Pacing(), []
    for second in range(40):
        pacing.observe(_taken(second, 1000, float(second), second + 0.5))
        (pace,) = decided(pacing, second + 0.5)
        waits.append(pace.wait)
    assert waits[:10] == [0.0] * 10
    assert all(0 < each < DEFAULT_BOUND for each in waits[20:])
    assert f"bound {DEFAULT_BOUND:.2f} s" in pace.reason


def test_rows_left_behind_are_taken_at_once() -> None:
    pacing = _learnt(10.0)
    pacing.observe(_taken(9, 100, 18.0, 18.2, left=5_000))
    (pace,) = decided(pacing, 18.2)
    assert pace.wait == 0
    assert "5,000 rows are left" in pace.reason


def test_a_bound_below_the_cost_gives_no_wait_and_says_so() -> None:
    (pace,) = decided(_learnt(0.1), 16.2)
    assert pace.wait == 0
    assert "even without a wait" in pace.reason


def test_epochs_that_move_state_say_nothing_of_the_cost() -> None:
    pacing = _learnt(5.0)
    (before,) = decided(pacing, 16.2)
    stage = SimpleNamespace(moved=Moved(0, 2, 3))
    pacing.observe(Observation(9, (stage,), arrived=18.0, committed=60.0, rows=100))  # type: ignore[arg-type]
    (after,) = decided(pacing, 60.0)
    assert after.numbers["fixed"] == before.numbers["fixed"]


def test_state_survives_a_restart() -> None:
    pacing = _learnt(5.0)
    again = Pacing(5.0)
    again.resume(json.loads(json.dumps(pacing.to_json())))
    assert decided(again, 16.2) == decided(pacing, 16.2)


def test_epochs_of_one_size_are_priced_by_the_row() -> None:
    assert fit_cost([(100, 1.0), (100, 1.0)], 0.98) == EpochCost(0.0, 0.01)


def test_wait_ends_where_the_goal_is_met() -> None:
    cost = EpochCost(0.2, 1e-4)
    wait = wait_before(cost, 5_000, 0.3, 1_500, 4.0)
    assert 0.3 + wait + cost.seconds(1_500 + 5_000 * wait) == pytest.approx(4.0)


@pytest.mark.parametrize("wrong", [{"bound": -1.0}, {"most": float("inf")}, {"margin": 0.0}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(BadScaling, match="give a"):
        Pacing(**wrong)


def _learnt(bound: float) -> Pacing:
    pacing = Pacing(bound)
    for number in range(9):
        rows = 100 * (1 + number % 3)
        pacing.observe(_taken(number, rows, 2.0 * number, 2.0 * number + 0.2 + rows * 1e-4))
    return pacing
