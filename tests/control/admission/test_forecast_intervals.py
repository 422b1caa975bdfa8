"""What Penstock's own strategy does that the published ones do not.

Streams 0 and 1 are high first and low later, 2 and 3 the other way round; a gate holds a pair of opposites:

period   1..4   6..64
0, 1     6      3
2, 3     3      6
"""

import numpy as np
import pytest

from penstock.control.admission import Cluster, ForecastIntervals, Outlook

LEADS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 20, 26, 32, 38, 44, 50, 56, 64])


def swinging(high_first, high, low, turn=4):
    first = np.where(turn >= LEADS, high, low)
    second = np.where(turn >= LEADS, low, high)
    return np.array([first if each else second for each in high_first], np.float64)


def outlook(path, spread=0.0, *, speaks=False):
    now = path[:, 0]
    declared = now if speaks else np.full(len(path), np.nan)
    return Outlook(now, now, now, declared, LEADS, path, np.full(len(path), spread))


def planned(home, path, gates=2, capacity=10.0, spread=0.0, *, speaks=False, **rules):
    cluster = Cluster.of(np.array(home), np.full(gates, capacity), capacity)
    return ForecastIntervals(**rules).plan(cluster, outlook(path, spread, speaks=speaks), 1000)


def test_opposites_come_to_share_a_gate_before_anything_is_overloaded():
    path = swinging([1, 1, 0, 0], 6, 3)
    path[:, 0:4] = 4.5  # nothing is overloaded yet
    found = planned([0, 0, 1, 1], path)
    assert sorted(found.home[:2]) == sorted(found.home[2:]) == [0, 1]
    assert set(found.why.values()) == {"settled"}
    assert found.gates == 2


def test_what_is_within_the_error_of_a_forecast_is_not_settled():
    path = swinging([1, 1, 0, 0], 6, 3)
    path[:, 0:4] = 4.5
    found = planned([0, 0, 1, 1], path, spread=10.0)
    assert found.home.tolist() == [0, 0, 1, 1]


def test_nothing_is_settled_while_the_total_falls():
    path = swinging([1, 1, 0, 0], 6, 3)
    path[:, 0:4] = 4.5
    path[:, 10:] *= 0.5
    found = planned([0, 0, 1, 1], path, price=100.0, worth=0.0)
    assert found.home.tolist() == [0, 0, 1, 1]


def test_strain_far_ahead_waits_until_it_is_near():
    # The strain of 1.6 gate-periods is at the last lead; 0.05 of it count there, and 0.5 pay for a move.
    path = np.full((4, len(LEADS)), 4.5)
    path[:, -1] = [6, 6, 3, 3]
    assert planned([0, 0, 1, 1], path).home.tolist() == [0, 0, 1, 1]
    path[:, 4:8] = path[:, -1:]
    assert planned([0, 0, 1, 1], path).home.tolist() != [0, 0, 1, 1]


@pytest.mark.parametrize(("speaks", "gates"), [(True, 1), (False, 2)])
def test_streams_that_declare_nothing_leave_room_for_the_errors_of_forecasts(speaks, gates):
    # Three streams have 9.6 of 10; half a standard error of the three is 1.7.
    path = np.full((3, len(LEADS)), 3.2)
    found = planned([-1, -1, -1], path, gates=0, spread=2.0, speaks=speaks)
    assert found.gates == gates


def test_two_streams_change_places_rather_than_a_gate_is_started():
    # Gate 0 has 6.25 + 6.25 of 10, gate 1 has 3.5 + 3.5: no stream of 6.25 fits there, an exchange does.
    path = np.repeat(np.array([[6.25], [6.25], [3.5], [3.5]]), len(LEADS), axis=1)
    found = planned([0, 0, 1, 1], path)
    assert found.gates == 2
    assert np.bincount(found.home, weights=path[:, 0]).tolist() == [9.75, 9.75]
    assert found.why[0] == "overloaded"


def test_a_gate_is_started_when_the_total_needs_it():
    path = np.repeat(np.array([[6.5], [6.5], [6.5]]), len(LEADS), axis=1)
    found = planned([0, 0, 1], path)
    assert found.gates == 3
    assert len(set(found.home.tolist())) == 3


def test_the_largest_stream_leaves_a_gate_whose_load_goes_on_rising():
    # 13 of 10 now. Without the first or the third stream it is relieved, without the first for good.
    path = np.array([[6.0] * 4 + [9.0] * 12, [2.0] * 16, [5.0] * 16])
    found = planned([0, 0, 0], path, gates=1)
    assert found.home.tolist() == [1, 0, 0]


def test_of_many_gates_another_part_is_tried_each_time():
    # 300 gates; only those from 200 on have room. One of the first is overloaded by several streams.
    load = np.where(np.arange(300) < 200, 9.9, 2.0)
    home = np.concatenate([np.arange(300), [0, 0, 0]])
    path = np.repeat(np.append(load, [3.0, 3.0, 3.0])[:, None], len(LEADS), axis=1)
    found = planned(home, path, gates=300, price=1e9)
    assert found.gates == 300
    assert (found.home[300:] >= 200).all()


@pytest.mark.parametrize("wrong", [{"lag": -1}, {"worth": -0.1}, {"doubt": -1}, {"reach": 0}, {"fill": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(Exception, match=next(iter(wrong))):
        ForecastIntervals(**wrong)
