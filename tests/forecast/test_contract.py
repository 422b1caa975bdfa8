"""What every forecaster in the registry promises; a new one is tested by its line there."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.series import fed, mixed, with_gaps
from penstock.errors import BadForecast
from penstock.forecast import FORECASTERS, LEADS, forecaster

over_all = pytest.mark.parametrize("name", FORECASTERS)
RATES = with_gaps(mixed())
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def answers(one, horizon=10):
    return np.stack([one.predict(horizon), *one.intervals(horizon, 0.8)])


@over_all
def test_means_and_bounds_are_streams_by_periods_and_in_order(name):
    means, lower, upper = answers(fed(name, RATES), horizon=13)
    assert means.shape == lower.shape == upper.shape == (24, 13)
    assert (lower >= 0).all()
    assert (lower <= upper).all()
    assert np.isfinite(upper).all()


@over_all
def test_a_wider_level_has_wider_bounds(name):
    rates = fed(name, RATES)
    (low, high), (lower, higher) = rates.intervals(5, 0.5), rates.intervals(5, 0.95)
    assert (lower <= low).all()
    assert (high <= higher).all()


@over_all
def test_of_a_stream_without_values_nothing_is_known(name):
    rates = forecaster(name, 2)
    assert np.isnan(answers(rates)).all()
    rates.observe([np.nan, 5.0], 0)
    assert np.isnan(rates.predict(3)[0]).all()
    assert rates.predict(3)[1] == pytest.approx([5, 5, 5])


@over_all
@pytest.mark.parametrize("rate", [0.0, 0.1, 7.0, 1e9])
def test_a_constant_rate_is_forecast_as_it_is(name, rate):
    rates = fed(name, np.full((40, 1), rate))
    np.testing.assert_allclose(answers(rates), rate, rtol=1e-6, atol=1e-12)


@over_all
def test_rates_are_never_negative(name):
    falling = np.maximum(1000 - 100 * np.arange(14.0), 0)[:, None]
    for length in range(1, len(falling)):
        assert (answers(fed(name, falling[:length]), horizon=20) >= 0).all()


@over_all
def test_a_gap_is_no_zero_and_moves_the_forecast_by_a_period(name):
    rates = fed(name, RATES)
    before = rates.predict(8)
    rates.observe(np.full(24, np.nan), 60)
    rates.observe(np.full(24, np.nan), 61)
    np.testing.assert_allclose(rates.predict(6), before[:, 2:], **CLOSE)


@over_all
def test_a_gap_of_one_stream_is_no_matter_of_others(name):
    holes = RATES.copy()
    holes[30:40, 3] = np.nan
    others = np.arange(24) != 3
    assert np.array_equal(answers(fed(name, holes))[:, others], answers(fed(name, RATES))[:, others])


@over_all
def test_blocks_of_streams_give_what_all_give_together(name, monkeypatch):
    together = fed(name, RATES)
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["penstock.forecast.forecaster"], "_BLOCK", 5)
    in_blocks = fed(name, RATES)
    np.testing.assert_allclose(answers(in_blocks), answers(together), **CLOSE)
    for mine, other in zip(in_blocks.arrays(), together.arrays(), strict=True):
        np.testing.assert_allclose(mine, other, **CLOSE)


@over_all
def test_periods_that_are_left_out_are_gaps(name):
    noted, left_out = fed(name, RATES[:40]), fed(name, RATES[:40])
    for at in (40, 41, 42):
        noted.observe(np.full(24, np.nan), at)
    for at in (43, 44):
        noted.observe(RATES[at], at)
        left_out.observe(RATES[at], at)
    assert np.array_equal(answers(noted), answers(left_out))


@over_all
def test_after_a_long_silence_a_forecast_is_sane(name):
    rates = fed(name, RATES)
    rates.observe(np.full(24, 40.0), 10**6)
    means, lower, upper = answers(rates)
    assert np.isfinite(upper).all()
    assert (means <= 3 * np.nanmax(RATES)).all()
    assert (lower <= upper).all()


@over_all
def test_all_at_once_is_one_by_one(name):
    together = answers(fed(name, RATES))
    for stream in (0, 5, 10, 23):
        alone = answers(fed(name, RATES[:, stream : stream + 1]))[:, 0]
        np.testing.assert_allclose(alone, together[:, stream], **CLOSE)


@over_all
def test_the_order_of_streams_is_no_matter(name):
    order = np.random.default_rng(8).permutation(24)
    np.testing.assert_allclose(
        answers(fed(name, RATES[:, order])), answers(fed(name, RATES))[:, order], **CLOSE
    )


@over_all
def test_the_same_values_give_the_same_bits(name):
    assert fed(name, RATES).to_bytes() == fed(name, RATES).to_bytes()


@over_all
@pytest.mark.parametrize("cut", [0, 1, 33])
def test_a_restart_changes_no_bit(name, cut):
    whole = fed(name, RATES)
    resumed = FORECASTERS[name].resume(fed(name, RATES[:cut]).to_bytes())
    for at in range(cut, len(RATES)):
        resumed.observe(RATES[at], at)
    assert resumed.to_bytes() == whole.to_bytes()
    assert np.array_equal(answers(resumed), answers(whole))


@over_all
def test_dropped_streams_leave_no_trace(name):
    rates, gone = fed(name, RATES[:30]), [0, 7, 7, 23]
    rates.drop(gone)
    others = np.delete(RATES, gone, axis=1)
    for at in range(30, 60):
        rates.observe(others[at], at)
    assert rates.streams == 21
    np.testing.assert_allclose(answers(rates), answers(fed(name, others)), **CLOSE)


@over_all
def test_new_streams_start_from_nothing(name):
    rates = fed(name, RATES[:30])
    rates.grow(24)
    assert np.isnan(rates.predict(2)[24:]).all()
    for at in range(30, 60):
        rates.observe(np.concatenate([RATES[at], RATES[at]]), at)
    np.testing.assert_allclose(answers(rates)[:, :24], answers(fed(name, RATES)), **CLOSE)
    np.testing.assert_allclose(answers(rates)[:, 24:], answers(fed(name, RATES[30:], first=30)), **CLOSE)


@over_all
def test_all_streams_may_go(name):
    rates = fed(name, RATES[:5])
    rates.drop(np.arange(24))
    rates.observe([], 5)
    assert answers(rates).shape == (3, 0, 10)


@over_all
def test_bounds_hold_as_often_as_they_say(name):
    """400 streams of noise, five looks each: 2,000 truths at each lead, which are not quite independent."""
    rates = np.random.default_rng(11).normal(100, 10, (110, 400))
    watched, hits = fed(name, rates[:64]), {0.5: np.zeros(8), 0.9: np.zeros(8)}
    for at in range(64, 97):
        watched.observe(rates[at], at)
        if at % 8 == 0:
            truth = rates[at + 1 : at + 9].T
            for level in hits:
                lower, upper = watched.intervals(8, level)
                hits[level] += ((lower <= truth) & (truth <= upper)).mean(axis=0) / 5
    for level, counted in hits.items():
        assert counted.min() > level - 0.05
        # A spread never falls with the lead, so bounds may be too wide, the more the further.
        assert counted[0] < level + 0.05


@over_all
def test_scores_are_errors_of_the_forecasts_that_were_made(name):
    """The spread one period ahead, from forecasts written down outside."""
    rates, errors = forecaster(name, 24), []
    for at, row in enumerate([*RATES[:16], mixed()[0]]):  # the last period has no gap
        if at:
            errors.append(row - rates.predict(1)[:, 0])
        rates.observe(row, at)
    squares, weights = np.zeros(24), np.zeros(24)
    for error in errors:
        scored = ~np.isnan(error)
        squares[scored] = squares[scored] * (29 / 30) + error[scored] ** 2
        weights[scored] = weights[scored] * (29 / 30) + 1
    np.testing.assert_allclose(rates.spread_at(np.array([1]))[0], np.sqrt(squares / weights), rtol=1e-9)


@over_all
def test_spreads_grow_with_the_lead(name):
    spread = fed(name, RATES).spread_at(np.arange(1, 3 * max(LEADS)))
    assert (np.diff(spread, axis=0) >= -1e-9 * spread[1:]).all()


@over_all
def test_bounds_widen_in_a_gap(name):
    rates = fed(name, mixed())
    before = rates.spread_at(np.arange(3, 12))
    rates.observe(np.full(24, np.nan), 60)
    rates.observe(np.full(24, np.nan), 61)
    np.testing.assert_allclose(rates.spread_at(np.arange(1, 10)), before, rtol=1e-9)


@over_all
@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(*[st.one_of(st.just(np.nan), st.floats(0, 1e12), st.just(0.0))] * 2),
        min_size=1,
        max_size=20,
    )
)
def test_any_rates_give_numbers_that_are_not_negative(name, rows):
    found = answers(fed(name, np.array(rows)))
    known = ~np.isnan(np.array(rows)).all(axis=0)
    assert np.isfinite(found[:, known]).all()
    assert (found[:, known] >= 0).all()
    assert np.isnan(found[:, ~known]).all()


@over_all
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda rates: rates.observe([1.0], 5), "shape"),
        (lambda rates: rates.observe([1.0, -1.0], 5), "negative"),
        (lambda rates: rates.observe([1.0, np.inf], 5), "infinite"),
        (lambda rates: rates.observe([1.0, 1.0], 4), "rising order"),
        (lambda rates: rates.observe([1.0, 1.0], np.nan), "number of the period"),
        (lambda rates: rates.predict(0), "horizon=0"),
        (lambda rates: rates.intervals(3, 1.0), "level=1.0"),
        (lambda rates: rates.drop([2]), "stream 2 of 2"),
        (lambda rates: rates.grow(-1), "0 or more"),
        (lambda rates: rates.load(b"junk"), "not a"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(name, call, said):
    rates = fed(name, np.full((5, 2), 3.0))
    before = rates.to_bytes()
    with pytest.raises(BadForecast, match=said):
        call(rates)
    assert rates.to_bytes() == before


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(BadForecast, match="holt"):
        forecaster("hold", 1)


def test_a_state_of_other_settings_is_refused():
    data = fed("last", RATES).to_bytes()
    with pytest.raises(BadForecast, match="window=1"):
        FORECASTERS["mean"].resume(data)
