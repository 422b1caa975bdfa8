import numpy as np
import pytest

from penstock.errors import BadRouting
from sketches.sketches import COUNTERS, EPSILON, MERGEABLE, SKETCHES

STREAM = np.random.default_rng(8).zipf(1.3, 100_000).astype(np.uint64) % np.uint64(5000)
TRUTH = np.bincount(STREAM.astype(int), minlength=5000)
EVERY = np.arange(5000, dtype=np.uint64)
over_all = pytest.mark.parametrize("name", SKETCHES)
over_mergeable = pytest.mark.parametrize("name", MERGEABLE)
over_counters = pytest.mark.parametrize("name", COUNTERS)


def fed(name, *streams):
    sketch = SKETCHES[name]()
    for stream in streams:
        sketch.update(stream)
    return sketch


def bounds(sketch):
    """The lowest and highest count that each item may have had, as the sketch has it."""
    if hasattr(sketch, "estimate"):
        highest = sketch.estimate(EVERY)
        return highest - EPSILON * sketch.total, highest
    items, places = sketch.items(), sketch.items().hashes.astype(int)
    lowest, highest = np.zeros(len(EVERY)), np.full(len(EVERY), EPSILON * items.total)
    lowest[places], highest[places] = items.counts, items.counts + items.errors
    return lowest, highest


@over_all
def test_equal_streams_give_equal_bytes(name):
    assert fed(name, STREAM).to_bytes() == fed(name, STREAM).to_bytes()


@over_all
def test_the_truth_is_within_the_bounds(name):
    lowest, highest = bounds(fed(name, STREAM))
    assert (lowest <= TRUTH).all()
    assert (highest >= TRUTH).all()
    assert (highest - lowest <= EPSILON * len(STREAM) + 1e-6).all()


@over_mergeable
def test_a_merged_sketch_keeps_the_bounds_of_the_union(name):
    merged = fed(name, STREAM[:33_333])
    merged.merge(fed(name, STREAM[33_333:90_001]))
    merged.merge(fed(name, STREAM[90_001:]))
    lowest, highest = bounds(merged)
    assert merged.total == len(STREAM)
    assert (lowest <= TRUTH).all()
    assert (highest >= TRUTH).all()
    assert (highest - lowest <= EPSILON * len(STREAM) + 1e-6).all()


@over_mergeable
def test_merging_an_empty_sketch_changes_nothing(name):
    one, other = fed(name, STREAM), fed(name)
    one.merge(fed(name))
    other.merge(fed(name, STREAM))
    assert one.to_bytes() == fed(name, STREAM).to_bytes()
    for mine, whole in zip(bounds(other), bounds(one), strict=True):
        np.testing.assert_array_equal(mine, whole)


@over_all
def test_a_sketch_read_from_bytes_goes_on_as_the_first(name):
    first = fed(name, STREAM[:12_345])
    second = type(first).from_bytes(first.to_bytes())
    assert second.to_bytes() == first.to_bytes()
    first.update(STREAM[12_345:])
    second.update(STREAM[12_345:])
    assert second.to_bytes() == first.to_bytes()


@over_all
def test_bytes_of_something_else_are_refused(name):
    other = "count-min" if name != "count-min" else "lossy counting"
    with pytest.raises(BadRouting, match="read them with the class that wrote them"):
        type(SKETCHES[name]()).from_bytes(fed(other).to_bytes())


@over_all
def test_an_empty_sketch_knows_of_nothing_and_empty_input_changes_nothing(name):
    sketch = fed(name, STREAM[:0])
    assert sketch.to_bytes() == type(sketch).from_bytes(sketch.to_bytes()).to_bytes()
    assert all((bound == 0).all() for bound in bounds(sketch))


@over_counters
def test_frequent_items_are_all_found_and_no_rare_ones(name):
    found = fed(name, STREAM).frequent(0.02)
    assert set(EVERY[0.02 * len(STREAM) <= TRUTH]) <= set(found.hashes)
    assert set(found.hashes) <= set(EVERY[(0.02 - EPSILON) * len(STREAM) <= TRUTH])
    assert (np.diff(found.counts) <= 0).all()


@over_all
def test_input_is_not_kept_but_copied(name):
    stream = STREAM.copy()
    sketch = fed(name, stream)
    stream[:] = 1
    assert sketch.to_bytes() == fed(name, STREAM).to_bytes()
