"""The columns that explain what rows cost are found, and only those."""

import json
from dataclasses import replace

import numpy as np
import pytest

from distribution.drawing import SETTINGS, no_sample
from penstock.distribution import Anywhere, Layout
from penstock.distribution.anywhere import AnyLayout
from penstock.distribution.cost_columns import CostColumns, RowCosts, explained
from penstock.distribution.distribution import Held

NAMES = ("id", "code", "place", "flag")


def rows(seed, cost, count=200, noise=0.1):
    """Rows with an identifier, 20 codes, 7 places and a flag; their costs have noise and a few outliers."""
    chance = np.random.default_rng(seed)
    values = {
        "id": chance.integers(1 << 60, size=count),
        "code": chance.zipf(1.5, count) % 20,
        "place": chance.integers(7, size=count),
        "flag": chance.integers(2, size=count),
    }
    costs = 1e-3 * cost(values) * chance.lognormal(0, noise, count)
    costs[chance.random(count) < 0.01] += 0.5
    hashes = np.column_stack([values[name] for name in NAMES]).astype(np.uint64)
    return RowCosts(hashes, costs, costs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("cost", "found"),
    [
        (lambda values: 1.0 + values["code"] ** 2, ("code",)),
        (lambda values: 1.0 + 9 * values["flag"], ("flag",)),
        (lambda values: 1.0 + 3 * values["place"] * values["flag"], ("flag", "place")),
        (lambda values: 1.0 + 0 * values["code"], ()),
        (lambda values: 1.0 + values["id"] % 100, ()),
    ],
)
def test_columns_are_found_where_they_explain_costs(seed, cost, found):
    columns = CostColumns(NAMES)
    for epoch in range(10):
        columns.update([rows(100 * seed + epoch, cost)])
    assert tuple(sorted(columns.found)) == found


def test_what_is_known_is_said():
    columns = CostColumns(NAMES)
    assert columns.why == "no row was measured yet"
    columns.update([rows(0, lambda values: 1.0 + values["code"], count=40)])
    assert columns.why == "only 40 rows were measured, and 96 are needed"
    columns.update([rows(1, lambda values: 1.0 + 0 * values["code"], count=100)])
    assert columns.why.startswith("no column explains 30% of what 140 rows cost: ")
    assert CostColumns(()).why == "no column has plain values that costs could go by"


def test_a_column_that_says_what_another_says_with_fewer_values_is_taken():
    wide = rows(3, lambda values: 1.0 + values["code"])
    costs = RowCosts(np.column_stack([wide.hashes[:, 1], wide.hashes[:, 1] // 2]), wide.wall, wide.cpu)
    columns = CostColumns(("code", "half"))
    columns.update([RowCosts(costs.hashes, 1.0 + costs.hashes[:, 1], 1.0 + costs.hashes[:, 1])])
    assert columns.found == ("half",)


def test_samples_are_seldom_once_enough_found_nothing_and_none_are_taken_once_found():
    columns = CostColumns(NAMES)
    assert all(columns.sampled(epoch) for epoch in range(9))
    columns.update([rows(1, lambda values: 1.0 + 0 * values["code"], count=600)])
    assert [columns.sampled(epoch) for epoch in range(9)] == [True, *[False] * 7, True]
    columns.update([rows(2, lambda values: 1.0 + values["code"] ** 3, count=2048)])
    assert columns.found == ("code",)
    assert not columns.sampled(8)
    assert not CostColumns(()).sampled(0)


def test_a_function_that_waits_is_judged_by_the_clock():
    waits = np.array([0.1, 0.9] * 50)
    costs = RowCosts(np.array([[1], [2]] * 50, np.uint64), waits, np.full(100, 1e-4))
    columns = CostColumns(("code",))
    columns.update([costs])
    assert columns.found == ("code",)
    assert columns.why == "code explains 100% of what 100 rows cost"


def test_what_never_comes_again_explains_nothing():
    chance = np.random.default_rng(1)
    assert explained(np.arange(500, dtype=np.uint64), chance.random(500)) == 0.0
    assert explained(np.zeros(500, np.uint64), np.ones(500)) == 0.0


DEALT = Anywhere(("round robin", "by cost"), candidates=NAMES)


def test_a_run_that_starts_again_goes_by_the_columns_of_its_last_plan():
    layout = AnyLayout(channels=2, grouping="round robin", by=("code",))
    stored = Layout.from_json(json.loads(json.dumps(layout.to_json())))
    assert stored == layout
    steering = DEALT.steering(SETTINGS, None)
    steering.resume(stored, None)
    assert steering.follow(stored, {}, Held(), no_sample).by == ("code",)
    assert list(steering.told(stored, stored)) == []


def test_without_control_no_columns_are_looked_for_and_given_ones_are_measured_where_rows_go_by_cost():
    off = replace(SETTINGS, adapts="off")
    ways = {
        DEALT: False,
        Anywhere(("in place", "round robin", "by cost"), ("code",)): False,
        Anywhere(("by cost",), ("code",)): True,
    }
    for distribution, measured in ways.items():
        steering = distribution.steering(off, None)
        steering.first(2, no_sample)
        assert steering.measures(0) is measured
        assert distribution.steering(SETTINGS, None).measures(0)
