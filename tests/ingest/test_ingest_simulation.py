"""Seeded histories of producers, gates, a controller and readers; a failure prints how to replay its own."""

import os
import sys
from collections import Counter

import pytest

from ingest.ingest_simulation import IngestSimulation

STEPS = 110
SOAKED = 20_000


def histories(seeds, steps):
    counts = Counter()
    for seed in seeds:
        simulation = IngestSimulation(seed)
        try:
            simulation.run(steps)
        except BaseException:
            sys.stdout.write(f"IngestSimulation({seed}).run({steps})\n")
            raise
        counts += simulation.counts
    return counts


def test_acknowledged_rows_are_read_once_in_order_or_an_error_is_raised():
    """500 histories, the same in every run."""
    counts = histories(range(500), STEPS)
    assert counts["acknowledged"] > 4_000
    for kind in ("read", "promised", "taken over", "wiped", "restored", "refilled", "errors"):
        assert counts[kind] > 0, f"no history met: {kind}"


@pytest.mark.soak
def test_acknowledged_rows_are_read_once_in_order_in_many_histories():
    """20,000 histories from a seed of the day's own; PENSTOCK_SEED repeats one."""
    first = int(os.environ.get("PENSTOCK_SEED") or int.from_bytes(os.urandom(5), "big"))
    sys.stdout.write(f"PENSTOCK_SEED={first}\n")
    counts = histories(range(first, first + SOAKED), 3 * STEPS)
    sys.stdout.write(f"{SOAKED:,} histories: {dict(counts)}\n")
