import numpy as np
import pytest

from ingest.paper_fleet import at, look, told
from penstock.control.admission import Price
from penstock.ingest.directory.measuring import Measuring

HOMES = {"r/x": "a:1", "r/y": "b:1"}


def work(measuring, now, *looks, homes=HOMES):
    return measuring.period(now, homes, at(now, *looks)).work.tolist()


def test_work_is_what_clients_were_given_and_not_what_gates_took():
    measuring = Measuring()
    work(measuring, 0.0, look("a:1", x=told(0)), look("b:1"))
    found = work(measuring, 10.0, look("a:1", x=told(300, waits=700)), look("b:1", y=told(50)))
    assert found == [100.0, 5.0]


def test_a_gate_that_does_not_answer_is_a_gap_and_then_the_mean_since():
    measuring = Measuring()
    work(measuring, 0.0, look("a:1", x=told(0)), look("b:1", y=told(0)))
    first = work(measuring, 10.0, look("a:1", x=told(100)))
    assert first[0] == 10.0
    assert np.isnan(first[1])
    assert work(measuring, 20.0, look("a:1", x=told(100)), look("b:1", y=told(400))) == [0.0, 20.0]


def test_a_stream_has_no_value_in_its_first_period():
    assert np.isnan(work(Measuring(), 0.0, look("a:1", x=told(900)), look("b:1"))).all()


def test_a_stream_that_moved_counts_once():
    measuring = Measuring()
    work(measuring, 0.0, look("a:1", x=told(100)), look("b:1"))
    moved = {"r/x": "b:1", "r/y": "b:1"}
    found = work(measuring, 10.0, look("a:1", x=told(100)), look("b:1", x=told(50, next_=150)), homes=moved)
    assert found == [5.0, 0.0]


def test_a_restarted_gate_does_not_count_backwards():
    measuring = Measuring(Price(batch=1.0, byte=0.0, row=0.0))
    homes = {"r/x": "a:1"}
    work(measuring, 0.0, look(x=told(1000, batches=10)), homes=homes)
    found = work(measuring, 10.0, look(life="2", x=told(100, next_=1100, batches=5)), homes=homes)
    assert found == pytest.approx([0.5])


def test_work_by_batches_and_what_a_declared_row_then_costs():
    measuring = Measuring(Price(batch=0.01, byte=0.0, row=0.0))
    homes = {"r/x": "a:1"}
    work(measuring, 0.0, look(x=told(0, batches=0)), homes=homes)
    assert work(measuring, 10.0, look(x=told(1000, batches=100)), homes=homes) == pytest.approx([0.1])
    assert measuring.row_costs(["r/x", "r/unknown"]) == pytest.approx([0.001, 0.001], rel=0.13)


def test_what_waits_is_told_for_each_stream():
    measuring = Measuring()
    measuring.period(0.0, {"r/x": "a:1"}, at(0.0, look(x=told(5, waits=3, kept=4, oldest=1.5))))
    known = measuring.streams["r/x"]
    assert (known.rate, known.client_rows, known.oldest_seconds, known.lag) == (None, 3, 1.5, 7)


def test_the_price_is_fitted_to_the_processor_time_of_gates():
    measuring = Measuring(Price(batch=1.0, byte=0.0, row=0.0), fitted=True)
    homes = {"r/x": "a:1"}
    for period in range(20):
        batches = 10 * period * period  # one that is busier in every period, at 2 ms a batch
        told_now = look(seconds=10.0 * period, cpu=0.002 * batches, x=told(9 * batches, batches=batches))
        found = work(measuring, 10.0 * period, told_now, homes=homes)
    assert found == pytest.approx([0.002 * 10 * (19 * 19 - 18 * 18) / 10])
