"""Runs behind gates: what they are told to expect, and gates that take no more than they do."""

import pytest

from ingest.paper_fleet import PaperController, look, told
from penstock.control.expected import QueryLoad
from penstock.ingest.directory.queries import Queries

CALM, LATE = QueryLoad(500, 0.001, 1.0), QueryLoad(9000, 0.001, 1.0)
RATES = {"a:1": {"r": 1500.0}, "b:1": {"r": 500.0, "q": 70.0}, "c:1": {"q": 10.0}}


def test_gates_take_what_a_run_takes_that_is_far_behind_until_it_has_caught_up():
    known = Queries()
    for load, limited in ((CALM, False), (LATE, True), (QueryLoad(3000, 0.001, 1.0), True), (CALM, False)):
        known.tell("r", "run", load, 0.0)
        found = known.intake(RATES, 1.0)
        assert bool(found) == limited
        if limited:
            assert {gate: rows for gate, (rows, _) in found.items()} == {"a:1": 750.0, "b:1": 250.0 + 140.0}
            assert "a run over r takes 1,000 rows/s and is" in found["a:1"][1]


def test_a_run_that_has_gone_limits_nothing():
    known = Queries()
    known.tell("r", "run", LATE, 0.0)
    assert known.intake(RATES, 10.0)
    assert known.intake(RATES, 60.0) == {}


def flowing(**more):
    """A controller whose two streams flow with 30 and 10 rows a second."""
    made = PaperController("a:1", capacity=100.0, **more)
    made.where(0.0, x=None, y=None)
    for period in range(5):
        rows = {"x": told(300 * period), "y": told(100 * period)}
        made.period(10.0 * period, look("a:1", **rows))
    return made


def test_a_run_hears_the_rates_to_expect_in_sum_and_by_stream():
    made = flowing()
    found = made.steering.query("r", "run", CALM, 40.0, by_stream=True)
    assert found.rates == pytest.approx([40.0] * 12, abs=0.01)
    assert found.streams["r/x"] == pytest.approx([30.0] * 12, abs=0.01)
    assert all(
        low <= rate <= high for low, rate, high in zip(found.lower, found.rates, found.upper, strict=True)
    )
    assert made.steering.query("other", "run", CALM, 40.0, by_stream=False) is None


def test_a_declared_rise_is_told_before_it_comes():
    made = PaperController("a:1", capacity=1000.0)
    made.where(0.0, x={"min_rate": 10, "max_rate": 500, "transition": "trend"})
    rows = 0
    for period in range(8):
        rows += 100 + 50 * period
        made.period(10.0 * period, look("a:1", x=told(rows)))
    found = made.steering.query("r", "run", CALM, 70.0, by_stream=False)
    assert found.rates[0] < found.rates[3] < found.rates[11] <= 500.0
    assert found.rate(70.0 + 35.0) > 1.2 * found.rates[0]


def test_no_gate_is_started_for_rows_that_a_run_cannot_take():
    made = flowing()
    made.steering.query("r", "run", LATE, 41.0, by_stream=False)
    made.period(50.0, look("a:1", x=told(1500), y=told(500)))
    assert made.steering.intake["a:1"][0] == 1000.0
    made.period(60.0, look("a:1", x=told(1800, waits=9000, oldest=30.0), y=told(600)))
    assert made.steering.waits["a:1"] == 0.0, "what waits there waits for the run"


def test_a_dry_run_limits_nothing():
    made = flowing(mode="observe")
    made.steering.query("r", "run", LATE, 41.0, by_stream=False)
    made.period(50.0, look("a:1", x=told(1500), y=told(500)))
    assert made.steering.intake == {}
