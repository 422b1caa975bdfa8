import numpy as np
import pytest

from penstock.control.admission import Price, fit_price
from penstock.errors import BadAdmission


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("true", [(2e-4, 3e-9, 1e-7), (1e-4, 0.0, 2e-7), (0.0, 1e-9, 0.0)])
def test_costs_are_found_from_busy_gates(true, seed):
    rng = np.random.default_rng(seed)
    counts = np.column_stack(
        [rng.uniform(10, 500, 200), rng.uniform(1e5, 1e7, 200), rng.uniform(1e3, 1e5, 200)]
    )
    busy = counts @ true * rng.normal(1, 0.01, 200)
    found = fit_price(busy, *counts.T)
    assert found.of(*counts.T) == pytest.approx(counts @ true, rel=0.05, abs=0.01 * busy.max())
    assert min(found.batch, found.byte, found.row) >= 0


def test_rows_alone_are_a_special_case():
    work = Price.per_row(1000).of(np.array([7.0]), np.array([1e6]), np.array([500.0]))
    assert work == pytest.approx([0.5])


def test_the_same_rows_in_small_batches_cost_more():
    price = Price(batch=1e-4, byte=0.0, row=1e-8)
    small, large = price.of(np.array([100.0, 1.0]), np.zeros(2), np.array([1e4, 1e4]))
    assert small > 10 * large


def test_idle_gates_teach_nothing():
    with pytest.raises(BadAdmission, match="busy"):
        fit_price(np.zeros(3), np.ones(3), np.ones(3), np.ones(3))
