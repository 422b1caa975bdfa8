import numpy as np
import pytest

from penstock.sketches import ValueCosts

VALUES = np.array([3, 2**63 + 5, 17], np.uint64)


def fed(rows, wall, cpu):
    costs = ValueCosts()
    costs.update(VALUES, *(np.array(each, float) for each in (rows, wall, cpu)))
    return costs


def test_costs_are_those_of_the_processor_unless_the_function_waits():
    busy, waiting = fed([1, 2, 1], [2, 4, 8], [1, 4, 8]), fed([1, 2, 1], [2, 4, 8], [0.1, 0.1, 0.1])
    assert (busy.clock, busy.means.means(VALUES).tolist()) == ("cpu", [1, 2, 8])
    assert (waiting.clock, waiting.means.means(VALUES).tolist()) == ("wall", [2, 2, 8])


def test_a_merged_sketch_knows_what_each_has_seen_and_forgets_slowly():
    old, new = fed([10, 0, 0], [10, 0, 0], [10, 0, 0]), fed([9, 1, 0], [27, 5, 0], [27, 5, 0])
    old.fade(0.9)
    old.merge(new)
    assert old.means.means(VALUES[:2]) == pytest.approx([2.0, 5.0])
    for _ in range(1100):
        old.fade(0.5)
    assert old.means.counts.matrix.sum() == 0
    assert np.isfinite(old.means.means(VALUES)).all()


def test_the_deviation_is_that_of_rows():
    costs = fed([6, 2, 2], [6, 8, 2], [6, 8, 2])
    each = np.repeat([1.0, 4.0, 1.0], [6, 2, 2])
    assert costs.mean == pytest.approx(each.mean())
    assert costs.deviation == pytest.approx(each.std() / each.mean())
    assert fed([1, 1, 1], [2, 2, 2], [2, 2, 2]).deviation == pytest.approx(0)
    assert ValueCosts().deviation == 0


def test_drift_is_the_part_of_the_cost_of_rows_that_another_sketch_does_not_tell():
    before, after = fed([1, 1, 2], [1, 2, 2], [1, 2, 2]), fed([1, 1, 1], [1, 3, 1], [1, 3, 1])
    assert before.drift(before) == 0
    assert after.drift(before) == pytest.approx(1 / 5)
    assert after.drift(ValueCosts()) == np.inf


def test_a_rare_value_that_is_new_hardly_drifts():
    before, after = fed([99, 0, 0], [99, 0, 0], [99, 0, 0]), fed([99, 1, 0], [99, 3, 0], [99, 3, 0])
    assert after.drift(before) == pytest.approx(2 / 102)


def test_bytes_give_the_same_sketch():
    costs = fed([1, 2, 3], [4, 5, 6], [7, 8, 9])
    again = ValueCosts.from_bytes(costs.to_bytes())
    assert again.to_bytes() == costs.to_bytes()
    assert again.means.means(VALUES).tolist() == costs.means.means(VALUES).tolist()
