import math

import pytest

from penstock_lab.bench.paired import in_turn, mean_of, ratio_of


def test_the_interval_is_that_of_students_t():
    # Mean 1.5, standard deviation 1 over four values, t of three degrees 3.182: half of it is 3.182 / 2.
    found = mean_of([0.5, 0.5, 2.0 + math.sqrt(0.5), 3.0 - math.sqrt(0.5)])
    assert found.mean == pytest.approx(1.5)
    deviation = math.sqrt((2 * 1.0 + (0.5 + math.sqrt(0.5)) ** 2 + (1.5 - math.sqrt(0.5)) ** 2) / 3)
    assert found.high - found.mean == pytest.approx(3.182 * deviation / 2)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    assert found.count == 4


def test_pairs_that_agree_have_no_interval():
    found = ratio_of([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_swapping_the_ways_gives_the_reciprocal():
    on, off = [1.0, 1.3, 0.9, 1.2], [1.1, 1.1, 1.0, 1.0]
    one, other = ratio_of(on, off), ratio_of(off, on)
    assert (one.mean, one.low, one.high) == pytest.approx((1 / other.mean, 1 / other.high, 1 / other.low))


def test_a_slow_machine_does_not_change_a_ratio():
    calm = ratio_of([1.0, 1.1, 1.2], [1.0, 1.0, 1.0])
    slowed = ratio_of([1.0, 5.5, 2.4], [1.0, 5.0, 2.0])
    assert slowed.mean == pytest.approx(calm.mean)
    assert slowed.high == pytest.approx(calm.high)


def test_one_measurement_has_no_interval():
    with pytest.raises(ValueError, match="two or more"):
        mean_of([1.0])


def test_each_way_comes_first_equally_often():
    firsts = [first for first, _ in in_turn(6, "on", "off")]
    assert firsts.count("on") == firsts.count("off") == 3
