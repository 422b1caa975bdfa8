import sys

import pytest

from ingest.gate_simulation import Simulation

STEPS = 600


@pytest.mark.parametrize("seed", range(25))
def test_acknowledged_rows_are_stored_once_in_order_whatever_fails(seed):
    sys.stdout.write(f"seed {seed}\n")
    simulation = Simulation(seed)
    simulation.run(STEPS)
    for stream in simulation.streams:
        assert stream.outbox.acknowledged == stream.outbox.next


def test_the_simulation_meets_every_kind_of_trouble():
    simulation = Simulation(seed=3)
    simulation.run(4 * STEPS)
    counts = [gate.counts + gate.state.counts for gate in simulation.gates.values()]
    assert all(gate.lives > 1 for gate in simulation.gates.values())
    for each in ("rows", "duplicates", "waits", "redirected", "failed writes"):
        assert sum(count[each] for count in counts) > 0, each
