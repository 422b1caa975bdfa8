"""Curves: exact ones are recovered, the best of three wins, and extrapolation stays within bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.series import fed
from penstock.errors import BadForecast
from penstock.forecast import Regression, fit_curves

TIMES = np.array([3.0, 3.5, 5.0, 9.0, 9.25, 14.0])[:, None]
AHEAD = np.array([[15.0], [20.0]])
LINE, LOGARITHM, EXPONENTIAL = 0, 1, 2
EXACT = {
    LINE: lambda t: 40 + 7 * t,
    LOGARITHM: lambda t: 40 + 7 * np.log(t),
    EXPONENTIAL: lambda t: 40 * np.exp(0.07 * t),
}


@pytest.mark.parametrize("kind", EXACT)
def test_an_exact_curve_is_recovered_at_irregular_times(kind):
    values = EXACT[kind](TIMES - 2)  # t is 1 at the first value
    curves = fit_curves(TIMES, values)
    assert curves.kind.tolist() == [kind]
    np.testing.assert_allclose(curves.at(AHEAD), EXACT[kind](AHEAD - 2), rtol=1e-9)


@pytest.mark.parametrize("kind", EXACT)
def test_gaps_are_left_out(kind):
    values = EXACT[kind](TIMES - 2)
    values[3] = np.nan
    curves = fit_curves(TIMES, values)
    assert curves.kind.tolist() == [kind]
    np.testing.assert_allclose(curves.at(AHEAD), EXACT[kind](AHEAD - 2), rtol=1e-9)


def test_each_stream_has_its_own_curve():
    values = np.concatenate([curve(TIMES - 2) for curve in EXACT.values()], axis=1)
    assert fit_curves(TIMES, values).kind.tolist() == [LINE, LOGARITHM, EXPONENTIAL]


def test_residuals_are_compared_in_the_units_of_the_values():
    """In logarithms the exponential fits the small values best; in rates it misses the large one by far."""
    times = np.arange(8.0)[:, None]
    values = np.array([0.01, 1, 2, 3, 4, 5, 6, 7.0])[:, None]
    assert fit_curves(times, values).kind.tolist() == [LINE]


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=12), st.integers(0, 2**32))
def test_no_line_is_better_than_the_winner(values, seed):
    times = np.cumsum(np.random.default_rng(seed).uniform(0.1, 3, len(values)))
    y = np.array(values)
    curves = fit_curves(times[:, None], y[:, None])
    line = np.polynomial.Polynomial.fit(times, y, 1)(times)
    # Below 0 the curve is cut off, which can only bring it nearer to rates.
    residual = ((curves.at(times[:, None])[:, 0] - y) ** 2).sum()
    assert residual <= ((line - y) ** 2).sum() * (1 + 1e-6) + 1e-9 * (y**2).sum() + 1e-9


@pytest.mark.parametrize("values", [[5.0], [5.0, 7.0], [2.0, 4.0, 12.0]])
def test_fewer_than_four_values_give_their_mean(values):
    rates = fed(Regression(), np.array(values)[:, None])
    assert rates.predict(2)[0] == pytest.approx([np.mean(values)] * 2)


def test_an_exponential_needs_values_above_zero():
    growing = 2.0 ** np.arange(8)[:, None]
    assert fit_curves(np.arange(8.0)[:, None], growing).kind.tolist() == [EXPONENTIAL]
    growing[0] = 0
    assert fit_curves(np.arange(8.0)[:, None], growing).kind.tolist() != [EXPONENTIAL]


def test_extrapolation_is_bounded_except_as_in_the_paper():
    growing = 2.0 ** np.arange(8)[:, None]
    bounded, free = fed(Regression(), growing), fed(Regression.paper(), growing)
    assert bounded.predict(20).max() == 2 * 128
    assert free.predict(20)[0, -1] == pytest.approx(2.0**27)


def test_a_curve_goes_no_further_than_it_was_seen():
    rates = fed(Regression(most=100.0), 10 + np.arange(5.0)[:, None])
    assert rates.predict(8)[0] == pytest.approx([15, 16, 17, 18, 18, 18, 18, 18])


def test_only_the_last_values_count():
    values = np.concatenate([np.full(20, 500.0), 10 + 2 * np.arange(6)])[:, None]
    assert fed(Regression(window=6), values).predict(1)[0] == pytest.approx([22])


def test_a_rate_may_be_huge_and_the_curve_steep():
    free = fed(Regression.paper(window=4), np.array([[1e-9], [1.0], [1e9], [1e18]]))
    assert np.isfinite(free.predict(200)).all()


@pytest.mark.parametrize("given", [{"window": 3}, {"reach": 0.0}, {"most": 0.5}])
def test_settings_that_cannot_work_are_refused(given):
    with pytest.raises(BadForecast, match=next(iter(given))):
        Regression(**given)


@pytest.mark.parametrize("seed", range(3))
def test_common_times_and_no_gaps_give_the_same_curves_as_times_of_their_own(seed):
    rng = np.random.default_rng(seed)
    times, values = np.arange(12.0)[:, None], rng.uniform(1, 50, (12, 30))
    common = fit_curves(times, values)
    own = fit_curves(np.repeat(times, 30, axis=1), values)
    apart = fit_curves(np.repeat(times, 31, axis=1), np.column_stack([values, np.full(12, np.nan)]))
    for name in ("kind", "a", "b", "first", "last", "top"):
        assert getattr(common, name) == pytest.approx(getattr(own, name))
        assert getattr(common, name) == pytest.approx(getattr(apart, name)[:30])
