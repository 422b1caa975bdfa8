import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.admission import best_fit
from penstock.errors import BadAdmission
from penstock_lab.algorithms.bin_bounds import fewest_bins, lower_bound

sizes = st.lists(st.integers(1, 100), min_size=1, max_size=11).map(lambda each: np.array(each, float))


@given(sizes)
def test_the_bound_lies_below_the_least_and_packings_above(items):
    least = fewest_bins(items, 100.0)
    assert lower_bound(items, 100.0) <= least
    assert lower_bound(items, 100.0) >= 2 / 3 * least
    assert lower_bound(items, 100.0) >= np.ceil(items.sum() / 100)
    assert least <= best_fit(np.sort(items)[::-1], [], 100.0)[1] <= 11 / 9 * least + 1


def exhaustive(items, capacity):
    """Every way to put items into bins."""
    best = len(items)

    def put(at, bins):
        nonlocal best
        if len(bins) >= best:
            return
        if at == len(items):
            best = len(bins)
            return
        for number in range(len(bins)):
            if bins[number] + items[at] <= capacity:
                put(at + 1, [*bins[:number], bins[number] + items[at], *bins[number + 1 :]])
        put(at + 1, [*bins, items[at]])

    put(0, [])
    return best


@given(st.lists(st.integers(1, 20), min_size=1, max_size=7))
def test_the_exact_solver_agrees_with_trying_everything(items):
    assert fewest_bins(np.array(items, float), 20.0) == exhaustive(items, 20)


def test_three_halves_of_a_bin_waste_the_rest():
    assert lower_bound(np.array([60.0, 60, 60, 50]), 100.0) == 4
    assert lower_bound(np.array([60.0, 60, 60, 40]), 100.0) == 3


def test_items_above_a_bin_count_as_one():
    assert lower_bound(np.array([250.0, 20]), 100.0) == fewest_bins(np.array([250.0, 20]), 100.0) == 2


def test_large_cases_are_refused():
    with pytest.raises(BadAdmission, match="at most 40"):
        fewest_bins(np.full(41, 3.0), 10.0)


@given(st.lists(st.integers(1, 90), max_size=30), st.lists(st.integers(0, 100), max_size=6))
def test_the_best_fit_is_the_fullest_bin_with_room(items, free):
    chosen, count = best_fit([float(each) for each in items], [float(each) for each in free], 100.0)
    space = dict(enumerate(map(float, free)))
    for item, number in zip(items, chosen, strict=True):
        fitting = [each for each in space if space[each] >= item]
        assert number == min(fitting, key=lambda each: (space[each], each), default=len(space))
        space[number] = space.get(number, 100.0) - item
    assert count == len(space)
