"""What streams declare takes effect: jumps, trends, bursts and expected rates, over what is measured."""

import numpy as np
import pytest

from forecast.series import fed, mixed
from penstock.errors import BadForecast
from penstock.forecast import Holt, MetadataModel, population_defaults

JUMP = {"min_rate": 10, "max_rate": 100, "transition": "jump"}
TREND = {"min_rate": 10, "max_rate": 100, "transition": "trend"}


def declaring(given, values=(), seconds=1.0, **settings):
    """A forecaster of one stream that declared something and then sent some values."""
    rates = MetadataModel(seconds=seconds, **settings).start(1)
    rates.declare([0], given)
    for at, value in enumerate(values):
        rates.observe([value], at)
    return rates


def test_a_stream_that_declares_nothing_is_forecast_by_holt():
    values = mixed()
    assert np.array_equal(fed(MetadataModel(), values).predict(6), fed(Holt(), values).predict(6))


def test_a_silent_stream_keeps_the_rate_that_it_declared():
    rates = declaring({"expected_rate": 500}, [0.0] * 60)
    assert rates.predict(5)[0].tolist() == [500] * 5


# rate  100      ┌───┐         ┌───┐
#        10 ─────┘   └─────────┘   └───
#   period  0123 4567 89...           high for 4, low for 6


@pytest.mark.parametrize(
    "rhythm",
    [
        {"period": 10, "high_period": 4},
        {"period": 10, "low_period": 6},
        {"low_period": 6, "high_period": 4},
        {"period": 10, "low_period": 6, "high_period": 4},
    ],
)
def test_a_jump_is_foreseen_from_the_last_switch(rhythm):
    rates = declaring({**JUMP, **rhythm}, [10, 10, 10, 10, 100, 100])
    assert rates.predict(14)[0].tolist() == [100] * 2 + [10] * 6 + [100] * 4 + [10] * 2


def test_a_fall_gives_the_phase_as_well():
    rates = declaring({**JUMP, "period": 10, "high_period": 4}, [100, 100, 10])
    assert rates.predict(10)[0].tolist() == [10] * 5 + [100] * 4 + [10]


def test_a_declared_phase_needs_no_history_and_is_in_seconds():
    rates = declaring({**JUMP, "period": 100, "high_period": 40, "phase": 20}, [10.0], seconds=10.0)
    assert rates.predict(8)[0].tolist() == [10, 100, 100, 100, 100, 10, 10, 10]


def test_before_the_first_switch_the_present_level_stays():
    assert declaring({**JUMP, "period": 10}, [97.0]).predict(20)[0].tolist() == [100] * 20
    assert declaring({**JUMP, "period": 10}, [12.0]).predict(20)[0].tolist() == [10] * 20


def test_a_switch_that_is_late_is_expected_next():
    rates = declaring({**JUMP, "period": 10, "high_period": 4}, [10, 100, 100, 100, 100, 100, 100])
    assert rates.predict(7)[0].tolist() == [10] * 6 + [100]


def test_a_gap_over_a_switch_does_not_lose_the_phase():
    rates = declaring(
        {**JUMP, "period": 10, "high_period": 4}, [10, 100, 100, np.nan, np.nan, np.nan, np.nan]
    )
    assert rates.predict(5)[0].tolist() == [10, 10, 10, 10, 100]


def test_how_long_levels_last_is_measured_if_nobody_says():
    values = np.where(np.arange(43) // 7 % 2, 100.0, 10.0)
    rates = declaring({"transition": "jump"}, values)
    assert rates.predict(14)[0] == pytest.approx([10] * 6 + [100] * 7 + [10], rel=0.05)


def test_a_trend_stays_within_its_bounds():
    rates = declaring(TREND, np.linspace(10, 95, 18))
    assert rates.predict(10)[0, -1] == 100
    assert declaring(TREND, np.linspace(95, 12, 18)).predict(10)[0, -1] == 10
    lower, upper = rates.intervals(10, 0.9)
    assert lower.min() >= 10
    assert upper.max() <= 100


def triangle(period, phase, times, noise=0.0):
    place = np.mod(times - phase, period) / period
    wave = 10 + 90 * np.where(place < 0.5, 2 * place, 2 - 2 * place)
    return np.clip(wave + np.random.default_rng(5).normal(0, noise, len(times)), 0, None)


@pytest.mark.parametrize("phase", [0, 5, 13])
@pytest.mark.parametrize("gap", [None, slice(30, 37)])
def test_a_trend_with_a_period_turns_in_time(phase, gap):
    times = np.arange(100)
    truth, seen = triangle(24, phase, times), triangle(24, phase, times, noise=3)
    if gap:
        seen[gap] = np.nan
    errors, plain = [], []
    rates = declaring({**TREND, "period": 24}, seen[:60])
    line = fed(Holt(), seen[:60, None])
    for at in range(60, 90):
        rates.observe([seen[at]], at)
        line.observe([seen[at]], at)
        errors.append(abs(rates.predict(8)[0, 7] - truth[at + 8]))
        plain.append(abs(line.predict(8)[0, 7] - truth[at + 8]))
    assert np.mean(errors) < 5
    assert np.mean(errors) < 0.3 * np.mean(plain)


def test_a_trend_that_does_not_keep_its_period_is_forecast_by_holt():
    values = np.concatenate([triangle(24, 0, np.arange(60)), np.full(60, 70.0)])
    assert declaring({**TREND, "period": 24}, values).predict(6)[0] == pytest.approx([70] * 6, abs=3)


def test_bursts_count_with_their_peak_or_their_mean():
    given = {"burst_peak": 300, "burst_share": 0.25, "min_rate": 20}
    assert declaring(given, [20.0] * 5).predict(2)[0].tolist() == [300, 300]
    assert declaring(given, [20.0] * 5, bursts="mean").predict(2)[0].tolist() == [90, 90]
    assert declaring({**given, "burst_share": 0}, [20.0] * 5).predict(1)[0].tolist() == [20]


def test_a_greatest_rate_alone_is_a_bound_and_no_forecast():
    assert declaring({"max_rate": 50}, [20.0] * 9).predict(1)[0].tolist() == [20]
    assert declaring({"max_rate": 50}, [80.0] * 9).predict(1)[0].tolist() == [50]


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ({"expected_rate": 30, "min_rate": 10, "max_rate": 90}, 30),
        ({"min_rate": 10, "max_rate": 90}, 50),
        ({"max_rate": 90}, 90),
        ({**JUMP, "expected_rate": 40}, 40),
        ({}, 25),
    ],
)
def test_a_stream_that_sent_nothing_is_expected_to_do_as_declared_or_as_others(given, rate):
    rates = declaring(given)
    rates.assume({"expected_rate": 25})
    assert rates.predict(2)[0].tolist() == [rate, rate]


def test_defaults_are_averages_of_what_is_declared_or_measured():
    rates = MetadataModel(seconds=10.0).start(4)
    rates.declare([0, 1], {"max_rate": [100, 300], "transition": ["trend", "trend"], "period": 600})
    rates.declare([2], {"transition": "jump", "burst_share": 0.5, "burst_peak": 900, "phase": 7})
    for at in range(20):
        rates.observe([0.0, 40.0, 20.0, np.nan], at)
    found = population_defaults(rates)
    assert found["expected_rate"] == pytest.approx(20)
    assert found["max_rate"] == pytest.approx((100 + 300 + 20) / 3)
    assert found["period"] == pytest.approx(600)
    assert found["transition"] == "trend"
    assert found["burst_peak"] == 900
    assert "phase" not in found
    rates.assume(found)
    assert rates.predict(1)[3, 0] == pytest.approx(20)


def test_rhythm_and_transition_are_measured_for_the_population():
    rates = MetadataModel(seconds=2.0).start(2)
    slow = triangle(20, 0, np.arange(100))
    for at in range(100):
        rates.observe([100.0 if at // 5 % 2 else 10.0, slow[at]], at)
    rates.drop([1])
    found = population_defaults(rates)
    assert found.pop("transition") == "jump"
    assert found == pytest.approx(
        {
            "max_rate": 100,
            "min_rate": 10,
            "expected_rate": 55,
            "period": 20,
            "low_period": 10,
            "high_period": 10,
        },
        abs=1.5,  # extremes come back to the mean by and by
    )


def test_a_slow_change_is_measured_as_a_trend():
    values = triangle(40, 0, np.arange(120))
    assert population_defaults(declaring({}, values))["transition"] == "trend"


def test_a_new_declaration_takes_the_place_of_the_old_one():
    rates = declaring({"expected_rate": 500}, [20.0] * 9)
    rates.declare([0], {"max_rate": 90})
    assert rates.predict(1)[0].tolist() == [20]


def test_what_was_declared_survives_a_restart_and_moves_with_its_stream():
    rates = declaring({**JUMP, "period": 10, "high_period": 4}, [10, 100, 100])
    resumed = MetadataModel().resume(rates.to_bytes())
    assert np.array_equal(resumed.predict(12), rates.predict(12))
    resumed.grow(1)
    resumed.declare([1], {"expected_rate": 7})
    resumed.drop([0])
    assert resumed.predict(1).tolist() == [[7]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": 5}, "no characteristic 'rate'"),
        ({"transition": "leap"}, "'leap'"),
        ({"max_rate": -5}, "max_rate=-5"),
        ({"max_rate": np.inf}, "max_rate=inf"),
    ],
)
def test_what_cannot_be_declared_is_refused(given, said):
    with pytest.raises(BadForecast, match=said):
        declaring(given)


@pytest.mark.parametrize("given", [{"seconds": 0.0}, {"bursts": "most"}])
def test_settings_that_cannot_work_are_refused(given):
    with pytest.raises(BadForecast, match=next(iter(given))):
        MetadataModel(**given)
