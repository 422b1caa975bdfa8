import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing.displacement import displace, probe


@pytest.mark.parametrize(("keys", "groups"), [(1, 1), (200, 7), (4096, 1024), (4096, 16_384)])
def test_no_two_keys_share_a_slot(keys, groups):
    rng = np.random.default_rng(keys + groups)
    hashes, group = rng.integers(0, 2**64, keys, dtype=np.uint64), rng.integers(0, groups, keys)
    found = displace(hashes, group, groups)
    slots = probe(hashes, found.fold, found.slots) ^ found.displacements[group]
    assert len(np.unique(slots)) == keys
    assert 0 <= slots.min() <= slots.max() < found.slots


def test_keys_that_are_no_hashes_are_refused_if_no_fold_tells_them_apart():
    bits = np.arange(8**3, dtype=np.uint64)
    digits = [(bits >> np.uint64(3 * place)) & np.uint64(7) for place in range(3)]
    spread = digits[0] | digits[1] << np.uint64(20) | digits[2] << np.uint64(45)
    with pytest.raises(BadRouting, match="give 64-bit hashes of the keys"):
        displace(spread, np.zeros(len(spread), np.int64), 1)
