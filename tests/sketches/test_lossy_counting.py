import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.sketches.lossy_counting import LossyCounting
from penstock.sketches.runs import Runs


def by_definition(items, window):
    """Count and error of each item in memory, item by item."""
    memory = {}
    for seen, item in enumerate(items, 1):
        number = (seen - 1) // window + 1
        count, error = memory.get(item, (0, number - 1))
        memory[item] = (count + 1, error)
        if seen % window == 0:
            memory = {each: held for each, held in memory.items() if sum(held) > number}
    return memory


def in_memory(counter):
    items = counter.items()
    return dict(zip(items.hashes.tolist(), zip(items.counts, items.errors, strict=True), strict=True))


@given(
    st.lists(st.integers(0, 12) | st.integers(0, 3), max_size=300),
    st.integers(2, 12),
    st.lists(st.integers(0, 300), max_size=4),
)
def test_batches_give_what_the_definition_gives(items, window, cuts):
    counter = LossyCounting(1 / window)
    assert counter.window == window
    for batch in np.split(np.array(items, np.uint64), sorted(cuts)):
        counter.update(batch)
    assert in_memory(counter) == by_definition(items, window)
    assert counter.total == len(items)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), max_size=12), max_size=4),
    st.integers(2, 12),
)
def test_runs_give_what_their_items_give(batches, window):
    counter, items = LossyCounting(1 / window), []
    for batch in batches:
        hashes, counts = np.array(batch, np.int64).reshape(-1, 2).T
        items += np.repeat(hashes, counts).tolist()
        counter.update(Runs(hashes.astype(np.uint64), counts))
    assert in_memory(counter) == by_definition(items, window)
    assert in_memory(LossyCounting.from_bytes(counter.to_bytes())) == in_memory(counter)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12), st.integers(2, 12))
def test_others_take_the_room_of_items_that_come_once(batches, window):
    counter, items, strangers = LossyCounting(1 / window), [], 1000
    for count, others in batches:
        counter.update(Runs(np.array([5], np.uint64), np.array([count]), others))
        items += [5] * count + list(range(strangers, strangers + others))
        strangers += others
    expected = {each: held for each, held in by_definition(items, window).items() if each < 1000}
    assert (in_memory(counter), counter.total) == (expected, len(items))


def test_a_long_stream_in_blocks_gives_what_the_definition_gives():
    items = np.random.default_rng(4).zipf(1.3, 100_003).astype(np.uint64)
    counter = LossyCounting(0.01)
    counter.update(items)
    assert in_memory(counter) == by_definition(items.tolist(), 100)


@pytest.mark.parametrize("seed", range(3))
def test_frequent_items_are_all_found_and_no_rare_ones(seed):
    items = np.random.default_rng(seed).zipf(1.2, 200_000).astype(np.uint64)
    counter = LossyCounting(0.001)
    counter.update(items)
    values, counts = np.unique(items, return_counts=True)
    found = counter.frequent(0.01)
    assert set(values[counts >= 0.01 * len(items)]) <= set(found.hashes)
    assert set(found.hashes) <= set(values[counts >= (0.01 - 0.001) * len(items)])


def test_default_setting_keeps_a_few_thousand_of_a_million_items():
    # N = 10, alpha = 1.2, sigma = 0.1: delta = sigma * theta / N, and epsilon a tenth of it.
    delta = 0.1 * 0.2 / (1 + 1.2 / 9) / 10
    cumulative = np.cumsum(1 / np.arange(1, 10**6 + 1))
    drawn = np.random.default_rng(6).random(2_000_000) * cumulative[-1]
    counter = LossyCounting(delta / 10)
    counter.update(np.searchsorted(cumulative, drawn).astype(np.uint64))
    assert 2000 < len(counter.items()) < 4000  # [003] Fig. 9: about 2,500
    assert 35 < len(counter.frequent(delta)) < 60  # about 50


def test_counters_of_other_precision_do_not_merge():
    with pytest.raises(BadRouting, match="give both the same"):
        LossyCounting(0.1).merge(LossyCounting(0.2))


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 1e-9])
def test_precision_that_cannot_be_is_refused(epsilon):
    with pytest.raises(BadRouting, match=f"epsilon is {epsilon}"):
        LossyCounting(epsilon)


def test_a_support_below_the_precision_is_refused():
    with pytest.raises(BadRouting, match=r"support is 0.05; give 0.1"):
        LossyCounting(0.1).frequent(0.05)
