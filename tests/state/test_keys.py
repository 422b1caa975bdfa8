from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.state import find, newest, number_keys, ordered
from penstock.state.keys import same_keys

# Few hashes, of which some differ only in their low bits, and more keys than hashes.
KEYS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]), st.sampled_from(["a", "b", None])))


def table(rows):
    return pa.table({"k": pa.array([key for _, key in rows], pa.string())})


def hashes_of(rows):
    return np.array([hashed for hashed, _ in rows], np.uint64)


@given(KEYS, st.data())
def test_rows_are_in_order_of_hash_key_and_time(rows, data):
    times = np.array([data.draw(st.integers(0, 3)) for _ in rows], np.int64)
    found = ordered(hashes_of(rows), times, table(rows))
    assert sorted(found.order.tolist()) == list(range(len(rows)))
    in_order = [(*rows[place], times[place]) for place in found.order]
    assert [hashed for hashed, _, _ in in_order] == sorted(hashed for hashed, _ in rows)
    firsts = [in_order[place][:2] for place in found.first]
    assert len(set(firsts)) == len(firsts) == len(set(rows))
    for group, (hashed, key, _) in zip(found.groups, in_order, strict=True):
        assert firsts[group] == (hashed, key)
    for one, other in pairwise(in_order):
        assert one[:2] != other[:2] or one[2] <= other[2]


@given(KEYS, KEYS)
def test_keys_are_found_where_they_are(kept, wanted):
    kept = sorted(set(kept), key=lambda each: each[0])
    found = find(hashes_of(kept), table(kept), hashes_of(wanted), table(wanted))
    assert found.tolist() == [kept.index(each) if each in kept else -1 for each in wanted]


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_the_newest_version_of_every_key_is_left(versions):
    tables, expected = [], {}
    for age, given_rows in enumerate(versions):
        rows = list(dict.fromkeys(given_rows))
        hashes = pa.array(hashes_of(rows).view(np.int64))
        ages = pa.array([age] * len(rows), pa.int64())
        tables.append(table(rows).append_column("h", hashes).append_column("age", ages))
        expected |= dict.fromkeys(rows, age)
    found = newest(tables, "h", ["k"])
    hashes = found["h"].to_numpy().view(np.uint64).tolist()
    assert hashes == sorted(hashes)
    keys = zip(hashes, found["k"].to_pylist(), strict=True)
    assert dict(zip(keys, found["age"].to_pylist(), strict=True)) == expected


def test_zeros_and_nans_are_one_key_each():
    nan, other_nan = float("nan"), float(np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0])
    keys = pa.table({"d": [0.0, -0.0, nan, other_nan, None, None]})
    numbers, distinct = number_keys(keys.columns, keys.num_rows)
    assert numbers.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(distinct[0]) == 3
    assert same_keys(keys.slice(0, 5), keys.slice(1)).tolist() == [True, False, True, False, True]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2), st.booleans())))
def test_numbers_are_those_of_distinct_keys(rows):
    columns = [pa.chunked_array([pa.array([row[place] for row in rows], kind)]) for place, kind in
               enumerate((pa.string(), pa.int64(), pa.bool_()))]  # fmt: skip
    numbers, distinct = number_keys(columns, len(rows))
    keys = list(zip(*(column.to_pylist() for column in distinct), strict=True))
    assert [keys[number] for number in numbers] == rows
    assert len(set(keys)) == len(keys)
