import numpy as np
import pytest

import penstock as ps
from penstock_lab.bench.channel_steps import Seen, Step, over_ideal, steps_of
from penstock_lab.bench.channels import FIXED, FOLLOWING, FULL, WAYS, _checks
from penstock_lab.bench.ramp_source import Tuples
from penstock_lab.bench.ramps import Ramps
from penstock_lab.bench.under_load import Load, UnderLoad, run_under_load

TINY = Load(corners=((0, 0.2), (1, 0.2)), watched=((0.2, 0.4),), keys=20)


def seen(*numbers, moved=()):
    moves = dict(moved)
    return tuple(Seen(float(at), at, each, 100, moves.get(at, 0)) for at, each in enumerate(numbers))


def test_a_step_moves_what_even_channels_need():
    #  epoch     0  1  2  3
    #  channels  1  2  2  8
    epochs = seen(1, 2, 2, 8, moved={1: 50, 3: 90})
    assert steps_of(epochs) == [Step(1, 1, 2, 50, 100), Step(3, 2, 8, 90, 100)]
    assert [round(each.over_ideal, 2) for each in steps_of(epochs)] == [1.0, 1.2]


def test_what_is_left_of_a_step_belongs_to_it():
    #  epoch     0  1   2   3  4
    #  moved        30  20  0  10    the last for another reason
    assert steps_of(seen(4, 8, 8, 8, 8, moved={1: 30, 2: 20, 4: 10})) == [Step(1, 4, 8, 50, 100)]


def test_the_ideal_is_the_same_up_and_down():
    assert over_ideal(2, 8, 75, 100) == over_ideal(8, 2, 75, 100) == 1


def ran(numbers, low, missing=0):
    return UnderLoad(0.0, seen(*numbers), 1.0, low, 10, missing, ())


def test_checks_of_a_run_that_follows():
    up = ran([1, 2, 5, 2, 1], 0.6)
    found = _checks(FULL, {FOLLOWING: [up], FIXED: [ran([8, 8], 1.0)]}, ran([3] * 400, 0.0))
    values = [each.value for each in found]
    assert values == [0, 1, 5, 1, 0.0, 0.6, 0]
    assert all(each.ok for each in found)


def test_changes_count_once_the_steady_load_has_settled():
    both = {FOLLOWING: [ran([1, 5, 1], 0.6)], FIXED: [ran([8], 1.0)]}
    early, late = [1] * 10 + [3] * 390, [3] * 300 + [4] * 100
    assert _checks(FULL, both, ran(early, 0.0))[-1].value == 0
    assert _checks(FULL, both, ran(late, 0.0))[-1].value == 1


def test_tuples_do_not_depend_on_how_they_are_cut():
    tuples = Tuples(Ramps(0, ((0, 100), (10, 100))), keys=5, seed=7)
    whole = tuples.table(0, 100)
    assert whole.slice(40, 20).to_pylist() == tuples.table(40, 60).to_pylist()
    assert (np.diff(whole["time"].cast("int64").to_numpy()) > 0).all()


def test_a_run_under_load_is_compared_with_a_batch(spark):
    found = run_under_load(spark, TINY, {"channels": 2}, seed=7)
    assert found.missing == 0
    assert found.rows == 200
    assert {each.channels for each in found.seen} == {2}
    assert found.watched_cpu_s >= 0


def test_a_run_follows_the_load_by_itself(spark):
    try:
        found = run_under_load(spark, TINY, WAYS[FOLLOWING], seed=7)
    except ps.errors.BadOption as error:
        pytest.skip(f"the number of channels is fixed: {error}")
    assert found.missing == 0
    assert found.seen[0].channels == 1
