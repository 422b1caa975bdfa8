import numpy as np
import pytest

from penstock.control.admission import ARD, DRF_M, PAR, Admission, Expecting, ForecastIntervals, Packing
from penstock_lab.errors import BadSimulation
from penstock_lab.simulate import GateCosts, simulate_gates
from penstock_lab.workloads import rates_of


def course(planner, rows, costs=None, seed=0, declared=None):
    policy = Admission(planner, Expecting(), capacity=1000.0)
    return simulate_gates(policy, rows, costs or GateCosts(), np.random.default_rng(seed), declared=declared)


def test_steady_rates_that_fit_need_no_redirections():
    found = course(Packing(ARD), np.full((20, 8), 250.0))
    assert found.redirections.sum() == 0
    assert found.gates[1:].tolist() == [2] * 19
    assert found.optimal.tolist() == [2] * 20
    assert found.waiting.max() == 0


def test_a_queue_grows_by_what_is_above_the_capacity():
    # One stream of 1,100 rows/s alone: 100 rows/s more than the gate takes, for 10 s a period.
    found = course(Packing(ARD), np.full((4, 1), 1100.0))
    assert found.waiting == pytest.approx([0, 1, 2, 3])


def test_a_redirection_buffers_the_rows_of_its_pause():
    rows = np.array([[400.0, 500], [400, 500], [700, 500], [700, 500]])
    found = course(Packing(ARD), rows, GateCosts(redirect=0.5, start=3.0))
    assert found.redirections.tolist() == [0, 0, 0, 1]
    assert found.delay[3] == pytest.approx(3.5)
    # 3.5 s of 700 rows/s, and its share of the 2,000 rows that wait at the old gate.
    assert found.buffered[3] == pytest.approx(3.5 * 700 + 2000 * 7 / 12)


@pytest.mark.parametrize("seed", range(3))
def test_streams_of_a_failed_gate_are_admitted_again(seed):
    found = course(Packing(DRF_M), np.full((60, 20), 200.0), GateCosts(failure=0.05), seed)
    assert found.forced.sum() > 0
    assert (found.gates[1:] >= found.optimal[1:]).all()


def test_a_course_depends_on_its_seed_alone():
    made = rates_of("bursty", np.random.default_rng(3), 60)
    first, second = (course(ForecastIntervals(), made.rows, declared=made.declared) for _ in range(2))
    assert first.redirections.tolist() == second.redirections.tolist()
    assert first.gates.tolist() == second.gates.tolist()


def test_par_moves_most_streams_and_ours_few():
    made = rates_of("psfcw", np.random.default_rng(3), 100)
    par, ours = (
        course(each, made.rows, declared=made.declared).after(30)
        for each in (Packing(PAR), ForecastIntervals())
    )
    assert par.redirections.mean() > 30
    assert ours.redirections.mean() < 3


def test_no_periods_are_refused():
    with pytest.raises(BadSimulation, match="at least one"):
        course(Packing(ARD), [])
