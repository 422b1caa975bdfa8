import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.sketches.sliding_counting import SlidingCounting

# Items 0 ... 24 with W = 10 and three counters; = is built, # is in use:
#   LC1  ###############                in use from the start, as nothing is older
#   LC2       ==========#####
#   LC3            ==========#####
#   LC1                 ==========


def test_three_counters_take_turns():
    sliding, sizes = SlidingCounting(0.1, window=10), []
    for item in range(26):
        sliding.update(np.array([item], np.uint64))
        sizes.append(sliding.current.total)
    assert sizes == [*range(1, 16), *range(11, 16), *range(11, 16), 11]


@given(st.integers(2, 6), st.integers(6, 60), st.lists(st.integers(0, 50), max_size=20))
def test_the_counter_in_use_covers_between_w_and_its_upper_range(counters, window, batches):
    sliding, seen = SlidingCounting(0.1, window, counters), 0
    for size in batches:
        sliding.update(np.arange(size, dtype=np.uint64))
        seen += size
        used = sliding.current.total
        assert min(seen, sliding.window) <= used <= sliding.window * (1 + 1 / (counters - 1))


def test_the_counter_in_use_has_counted_the_most_recent_items():
    items, sliding = (
        np.random.default_rng(1).integers(0, 9, 1234, dtype=np.uint64),
        SlidingCounting(0.001, 100),
    )
    sliding.update(items)
    recent = items[-sliding.current.total :]
    expected = dict(zip(*np.unique(recent, return_counts=True), strict=True))
    assert dict(zip(sliding.items().hashes, sliding.items().counts, strict=True)) == expected


@pytest.mark.parametrize(("window", "counters"), [(10, 1), (1, 3)])
def test_what_cannot_slide_is_refused(window, counters):
    with pytest.raises(BadRouting, match="; give"):
        SlidingCounting(0.1, window, counters)
