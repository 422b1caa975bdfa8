"""Random clusters and outlooks that tests of admission share."""

import numpy as np
from hypothesis import strategies as st

from penstock.control.admission import Cluster, Outlook

CAPACITY = 10.0


@st.composite
def clusters(draw):
    """Up to 40 streams on up to 8 gates, some new, some fixed, some gates closed or with a queue."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    streams, gates = draw(st.integers(1, 40)), draw(st.integers(1, 8))
    home = rng.integers(-1, gates, streams)
    cluster = Cluster(
        home,
        np.full(gates, CAPACITY),
        CAPACITY,
        rng.random(gates) < 0.85,
        np.where(rng.random(gates) < 0.2, 8.0, 0.0),
        rng.random(streams) < draw(st.sampled_from([1.0, 0.7])),
    )
    largest = draw(st.sampled_from([2.0, 6.0, 14.0]))
    last, later = rng.integers(0, int(4 * largest), (2, streams)) / 4
    declared = np.where(rng.random(streams) < 0.5, rng.integers(0, int(4 * largest), streams) / 4, np.nan)
    path = np.column_stack([last, (last + later) / 2, later])
    outlook = Outlook(last, last, later, declared, np.array([1, 2, 4]), path, last / 10)
    return cluster, outlook


class Never:
    """No period was seen."""

    def __init__(self, at):
        self.at = at


def decided(policy, now):
    """What an arbiter carries out of the policy's proposals."""
    policy.budget.observe(policy._seen or Never(now))
    return [each.decision for each in policy.controller().decide(now) if each.carried_out]
