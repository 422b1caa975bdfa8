import pytest

from penstock.demo.rhythm import activity, rush


@pytest.mark.parametrize("peak", [8 * 60, 17 * 60 + 30])
def test_a_rush_hour_is_full_at_its_peak(peak):
    assert rush(peak) == 1.0


def test_midnight_has_no_seam():
    assert activity(0) == pytest.approx(activity(24 * 60 - 1), rel=0.01)


def test_the_night_is_quiet():
    assert activity(3 * 60) < 0.2 * activity(8 * 60)
