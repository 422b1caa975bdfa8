import json

import numpy as np
import pytest

from ingest.paper_fleet import at, look, told
from penstock.control.admission import CORE
from penstock.control.admission.capacity import HEADROOM
from penstock.ingest.directory.measuring import Ability, Measuring

HOMES = {"r/x": "a:1", "r/y": "b:1"}


def rates(measuring, now, *looks, homes=HOMES):
    return measuring.period(now, homes, at(now, *looks)).rates.tolist()


def test_work_is_what_clients_were_given_and_not_what_gates_took():
    measuring = Measuring(1000.0)
    rates(measuring, 0.0, look("a:1", x=told(0)), look("b:1"))
    found = rates(measuring, 10.0, look("a:1", x=told(300, waits=700)), look("b:1", y=told(50)))
    assert found == [100.0, 5.0]


def test_a_gate_that_does_not_answer_is_a_gap_and_then_the_mean_since():
    measuring = Measuring(1000.0)
    rates(measuring, 0.0, look("a:1", x=told(0)), look("b:1", y=told(0)))
    first = rates(measuring, 10.0, look("a:1", x=told(100)))
    assert first[0] == 10.0
    assert np.isnan(first[1])
    assert rates(measuring, 20.0, look("a:1", x=told(100)), look("b:1", y=told(400))) == [0.0, 20.0]


def test_a_stream_has_no_value_in_its_first_period():
    assert np.isnan(rates(Measuring(1000.0), 0.0, look("a:1", x=told(900)), look("b:1"))).all()


def test_a_stream_that_moved_counts_once():
    measuring = Measuring(1000.0)
    rates(measuring, 0.0, look("a:1", x=told(100)), look("b:1"))
    moved = {"r/x": "b:1", "r/y": "b:1"}
    found = rates(measuring, 10.0, look("a:1", x=told(100)), look("b:1", x=told(50, next_=150)), homes=moved)
    assert found == [5.0, 0.0]


def test_what_waits_is_told_for_each_stream():
    measuring = Measuring(1000.0)
    measuring.period(0.0, {"r/x": "a:1"}, at(0.0, look(x=told(5, waits=3, kept=4, oldest=1.5))))
    known = measuring.streams["r/x"]
    assert (known.rate, known.client_rows, known.oldest_seconds, known.lag) == (None, 3, 1.5, 7)


def test_a_declared_rate_is_charged_within_a_factor_of_two_of_what_it_costs_later():
    measuring, homes, charged = Measuring(), {"r/x": "a:1"}, []
    abilities = {"a:1": Ability(cores=2.0)}
    for second in range(25):  # 500 rows and 20 batches a second, which take 5 ms of the processor
        count = {"batches": 20 * second, "size": 50_000 * second}
        told_now = look(seconds=100.0 + second, cpu=0.005 * second, x=told(500 * second, **count))
        found = measuring.period(float(second), homes, at(float(second), told_now), abilities)
        charged.append(float(found.costs.work(np.array([500.0]))[0]) / measuring.capacity_of("a:1"))
    assert charged == pytest.approx([charged[-1]] * len(charged), rel=1.0)
    assert max(charged) < 2 * min(charged)


def busy(measuring, period, *, gate="a:1", batches=200, cpu=0.3, waits=0, oldest=0.0, abilities=None):
    """A gate with one stream, so many batches of ten rows a second, and processor time a second."""
    rows, batches = 10 * batches * period, batches * period
    said = told(rows, batches=batches, size=1000 * batches, waits=waits, oldest=oldest)
    told_now = look(gate, seconds=100.0 + period, cpu=cpu * period, x=said)
    return measuring.period(float(period), {"r/x": gate}, at(float(period), told_now), abilities or {})


def test_what_gates_measured_becomes_the_price_and_their_capacity():
    measuring = Measuring()
    for period in range(1, 30):
        found = busy(measuring, period, cpu=0.35)
    work = float(found.costs.work(np.array([2000.0]))[0])
    assert work / measuring.capacity_of("a:1") == pytest.approx(0.35 / CORE / HEADROOM, rel=0.02)
    assert measuring.capacity_of("new") == pytest.approx(measuring.capacity_of("a:1"))


def test_a_gate_that_is_limited_in_rows_is_full_with_them_from_the_beginning():
    measuring, abilities = Measuring(), {"a:1": Ability(rows=1000.0)}
    declared = measuring.costs(["r/new"], abilities).work(np.array([500.0]))
    assert declared / measuring.capacity_of("a:1") == pytest.approx(0.5 / HEADROOM, rel=0.1)
    found = busy(measuring, 1, batches=80, cpu=0.01, abilities=abilities)
    found = busy(measuring, 2, batches=80, cpu=0.01, abilities=abilities)
    assert found.costs.work(np.array([800.0])) / measuring.capacity_of("a:1") == pytest.approx(
        0.8 / HEADROOM, rel=0.05
    )


def test_a_gate_where_rows_wait_can_do_no_more_than_it_does():
    measuring = Measuring(bound=5.0)
    for period in range(1, 20):
        found = busy(measuring, period, cpu=0.2, waits=100_000, oldest=9.0)
    work = float(found.costs.work(np.array([2000.0]))[0])
    assert work / measuring.capacity_of("a:1") == pytest.approx(1 / HEADROOM, rel=0.05)
    assert found.waiting["a:1"] == 9.0


def test_a_gate_that_does_more_than_was_thought_can_do_it():
    measuring = Measuring()
    for period in range(1, 20):
        found = busy(measuring, period, cpu=0.95)
    assert HEADROOM * found.costs.work(np.array([2000.0])) <= 1.001 * measuring.capacity_of("a:1")


def test_what_was_learnt_survives_a_restart():
    measuring = Measuring()
    for period in range(1, 20):
        busy(measuring, period, cpu=0.35)
    again = Measuring()
    again.resume(json.loads(json.dumps(measuring.to_json())))
    assert again.capacity_of("a:1") == pytest.approx(measuring.capacity_of("a:1"))


def test_the_share_of_a_gate_counts_until_it_is_measured():
    measuring, shares = Measuring(), {"a:1": 3.0, "large": 2.0}
    assert measuring.capacity_of("large", shares) == pytest.approx(2 * HEADROOM)
    for period in range(1, 4):
        busy(measuring, period)
    own = measuring.capacity_of("a:1")
    assert measuring.capacity_of("a:1", shares) == own
    assert measuring.capacity_of("large", shares) == pytest.approx(own / 3 * 2)
    assert Measuring(100.0).capacity_of("large", shares) == 200.0
