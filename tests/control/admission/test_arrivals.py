import json

import numpy as np
import pytest

from control.admission.clusters import decided
from penstock.control.admission import (
    AdmissionSetup,
    Admit,
    Arrivals,
    DrainGate,
    Limits,
    Redirect,
    Seen,
    StartGate,
)

GATES = ("g1", "g2")


def seen(work, home, *, at=0.0, gates=GATES, capacity=100.0, **more):
    count = len(gates)
    streams = tuple(f"s{place}" for place in range(len(work)))
    every = (np.full(count, capacity), np.zeros(count), np.ones(count, bool))
    return Seen(at, streams, gates, np.array(home), np.array(work, float), *every, **more)


def arrivals(*streams, gates=GATES, **more):
    return Arrivals(1.0, streams, gates, np.full(len(gates), 100.0), **more)


def policy(strategy="drf-m", **limits):
    return AdmissionSetup(100.0, strategy, limits=Limits(**limits)).policy()


def observed(work, home, strategy="drf-m", **more):
    made = policy(strategy)
    made.observe(seen(work, home, **more))
    decided(made, 0.0)
    return made


def gates_of(decisions):
    return {each.stream: each.gate for each in decisions if isinstance(each, Admit)}


def test_an_arrival_goes_where_it_fits_best():
    made = observed([70.0, 30.0], [0, 1])
    found = made.admit(arrivals("new", declared={"expected_rate": np.array([25.0])}))
    assert gates_of(found) == {"new": "g1"}


def test_an_arrival_that_fits_nowhere_starts_a_gate_that_the_next_one_uses():
    made = observed([70.0, 80.0], [0, 1])
    declared = {"expected_rate": np.array([50.0])}
    first = made.admit(arrivals("a", declared=declared, startable=("g3",)))
    assert [type(each) for each in first] == [StartGate, Admit]
    second = made.admit(arrivals("b", gates=(*GATES, "g3"), declared=declared, startable=()))
    assert gates_of(first) | gates_of(second) == {"a": "g3", "b": "g3"}


def test_an_arrival_enters_where_the_most_is_free_if_no_gate_can_be_started():
    made = observed([90.0, 80.0], [0, 1])
    found = made.admit(arrivals("a", declared={"expected_rate": np.array([50.0])}, startable=()))
    assert [type(each) for each in found] == [Admit]
    assert gates_of(found) == {"a": "g2"}


def test_without_a_gate_nobody_is_admitted():
    assert policy().admit(arrivals("a", gates=(), startable=())) == []


def test_an_unknown_arrival_counts_as_the_mean_of_the_others():
    made = observed([60.0, 30.0], [0, 1])
    made.admit(arrivals("a"))
    assert made.to_json()["charged"] == pytest.approx({"g1": 60.0, "g2": 75.0})


def test_redirections_to_gates_that_cannot_be_started_are_left_out():
    overloaded = [90.0, 90.0]
    for startable, kinds in ((("g3",), [StartGate, Redirect]), ((), [])):
        made = policy("ard")
        made.observe(seen(overloaded, [0, 0], gates=("g1",), startable=startable))
        assert [type(each) for each in decided(made, 0.0)] == kinds


def test_the_least_number_of_gates_stays_with_its_streams():
    for least, kinds in ((1, {Redirect, DrainGate}), (2, set())):
        made = policy("ard", least_gates=least)
        made.observe(seen([10.0, 10.0], [0, 1]))
        assert {type(each) for each in decided(made, 0.0)} == kinds


def test_streams_of_a_gate_that_is_away_stay_there():
    for away, moved in ((False, 1), (True, 0)):
        made = policy("ard")
        made.observe(seen([90.0, 90.0, 5.0], [0, 0, 1], away=np.array([away, False])))
        assert sum(isinstance(each, Redirect) for each in decided(made, 0.0)) == moved


@pytest.mark.parametrize("strategy", ["drf-m", "penstock"])
def test_a_declared_rate_of_a_silent_stream_still_counts_after_a_minute(strategy):
    made = AdmissionSetup(1000.0, strategy, period=1.0).policy()
    declared = {"expected_rate": np.array([500.0, np.nan])}
    for second in range(61):
        made.observe(seen([0.0, 40.0], [0, 1], at=float(second), declared=declared))
        decided(made, float(second))
    assert made.expectations.rates_ahead(1)["s0"][0] == pytest.approx([500.0])


def test_the_state_of_arrivals_survives_a_restart():
    made = observed([60.0, 30.0], [0, 1])
    made.admit(arrivals("a"))
    again = policy()
    again.resume(json.loads(json.dumps(made.to_json())))
    assert again.admit(arrivals("b")) == made.admit(arrivals("b"))
