import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import (
    PARTITIONINGS,
    Frequencies,
    Goal,
    Growth,
    HashPair,
    first_router,
    next_router,
    step_toward,
)

HASHES = np.random.default_rng(5).integers(0, 2**64, 20_000, dtype=np.uint64)
NAMES = st.sampled_from(PARTITIONINGS)


@given(NAMES, NAMES, st.integers(1, 9), st.integers(1, 9), st.floats(0.02, 1.5), st.integers(0, 5))
def test_steps_lead_to_the_target_and_each_moves_its_share(name, other, before, after, share, hot):
    known = Frequencies(HASHES[:hot], np.linspace(0.2, 0.01, hot))
    now, target = (
        first_router(name, before),
        next_router(other, first_router(other, before), known, after, Goal()),
    )
    old = now
    for _ in range(200):
        then = step_toward(now, target, known, growth=Growth.LINEAR, share=share, domain=20_000)
        moved = now.route(HASHES) != then.route(HASHES)
        heaviest = known.shares.max(initial=0.0)
        # Of the state, the keys that are not known have what the known ones leave.
        assert moved[hot:].mean() * (1 - known.shares.sum()) <= share + 0.03 + heaviest
        switched = then.route(HASHES) == target.route(HASHES)
        assert (switched | (then.route(HASHES) == old.route(HASHES))).all()
        now = then
        if now is target:
            return
    pytest.fail(f"{share} a step has not led to the target in 200 steps")


def test_hot_keys_move_first():
    known = Frequencies(np.sort(HASHES[:8]), np.array([0.01, 0.05, 0.02, 0.12, 0.03, 0.1, 0.04, 0.02]))
    ring = first_router("uniform", 2).ring
    keys, here = np.sort(HASHES[:8]), np.zeros(8, np.int32)
    before, after = HashPair(keys, here, ring), HashPair(keys, here + np.int32(1), ring)
    moved = []
    while before is not after:
        then = step_toward(before, after, known, growth=Growth.LINEAR, share=0.05, domain=1000)
        moved += known.hashes[before.route(known.hashes) != then.route(known.hashes)].tolist()
        before = then
    assert moved[:4] == known.hashes[:4].tolist()


def test_a_step_that_moves_nothing_is_refused():
    router = first_router("uniform", 2)
    with pytest.raises(BadRouting, match="more than 0"):
        step_toward(
            router, router, Frequencies(HASHES[:0], np.zeros(0)), growth=Growth.LINEAR, share=0, domain=9
        )
