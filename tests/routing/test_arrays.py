import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock.errors import BadRouting
from penstock.routing.arrays import RouteArrays, route_arrays

hashes = st.integers(0, 2**64 - 1)


@given(st.dictionaries(hashes, st.integers(0, 9), max_size=40), st.lists(hashes), st.integers(0, 10))
def test_arrays_are_the_table_and_else_the_cell(table, others, bits):
    cells = np.random.default_rng(bits).integers(0, 10, 1 << bits)
    routed = route_arrays(
        np.array(list(table), np.uint64), np.array(list(table.values()), np.int32), cells, 10
    )
    asked = [*table, *others]
    expected = [table.get(each, cells[each >> (64 - bits)]) for each in asked]
    assert routed.route(np.array(asked, np.uint64)).tolist() == expected


@pytest.mark.parametrize("size", [1, 50, 4096, 20_000])
def test_tables_are_small_and_complete(size):
    rng = np.random.default_rng(size)
    keys = rng.integers(0, 2**64, size, dtype=np.uint64)
    targets = rng.integers(0, 100, size, dtype=np.int32)
    routed = route_arrays(keys, targets, np.zeros(16_384, np.int32), 100)
    np.testing.assert_array_equal(routed.route(keys), targets)
    assert routed.slots <= max(8, 4 * size)


@given(arrays(np.uint64, st.integers(0, 40_000), elements=hashes, fill=hashes))
def test_chunks_leave_no_seam(asked):
    cells = np.arange(1024, dtype=np.int32)
    routed = route_arrays(asked[:1], np.array([7], np.int32)[: len(asked)], cells, 1024)
    expected = np.where(asked == asked[:1], 7, cells[asked >> np.uint64(54)])
    np.testing.assert_array_equal(routed.route(asked), expected)


def test_a_number_of_cells_that_is_no_power_of_two_is_refused():
    with pytest.raises(BadRouting, match="3 cells; give a power of two"):
        route_arrays(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(3, np.int32), 1)


def test_foreign_and_cut_bytes_are_refused():
    whole = route_arrays(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(8, np.int32), 1).to_bytes()
    with pytest.raises(BadRouting, match="cut off"):
        RouteArrays.from_bytes(whole[:-1])
    with pytest.raises(BadRouting, match="not a 'route-arrays'"):
        RouteArrays.from_bytes(b"something else")
