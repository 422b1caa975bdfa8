"""Equal keys get equal numbers, and no row with a wanted key is missed, whatever the type."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from penstock.operators.joins.keys import comparable, may_have_key, number_by_new

RNG = np.random.default_rng(3)
TYPES = [pa.int64(), pa.int32(), pa.int8(), pa.uint64(), pa.uint16(), pa.date32(), pa.timestamp("us", "UTC")]
KEYS = {
    "bigint": (pa.int64(), [1, 2, None]),
    "string": (pa.string(), ["a", "", None]),
    "binary": (pa.binary(), [b"a", b"", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
    "wide decimal": (pa.decimal256(40, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
    "date": (pa.date32(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1), None]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
    "double": (pa.float64(), [float("nan"), 0.0, None]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_type_of_key_is_numbered(kind):
    type_, values = KEYS[kind]
    new = pa.table({"k": pa.array(values, type_)})
    kept = pa.table({"k": pa.array(values[::-1], type_)})
    columns = [comparable([table["k"]], (type_,)) for table in (new, kept)]
    ((ours,), (theirs,)) = number_by_new(columns[:1], columns[1:])
    assert ours.tolist() == [*range(len(values) - 1), -1]
    assert theirs.tolist() == ours.tolist()[::-1]


def test_keys_of_different_types_meet_in_the_common_one():
    one = comparable([pa.table({"k": pa.array([7], pa.int32())})["k"]], (pa.int64(),))
    other = comparable([pa.table({"k": pa.array([7], pa.int64())})["k"]], (pa.int64(),))
    assert number_by_new([one], [other])[1][0].tolist() == [0]


def test_both_zeros_are_one_key():
    zeros = comparable([pa.table({"k": [0.0, -0.0]})["k"]], (pa.float64(),))
    assert number_by_new([zeros], [])[0][0].tolist() == [0, 0]


@pytest.mark.parametrize("width", [32, 64])
def test_nans_of_all_bits_are_one_key(width):
    bits = [0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFFFFFFF, 0x7F800001]
    if width == 64:
        bits = [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1, 2**64 - 1, (0x7FF0 << 48) + 1]
    values = pa.array(np.array(bits, f"u{width // 8}").view(f"f{width // 8}"))
    nans = comparable([pa.table({"k": values})["k"]], (values.type,))
    assert number_by_new([nans], [nans]) == ([pytest.approx([0] * 5)], [pytest.approx([0] * 5)])
    assert may_have_key(nans, [nans]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_integers_that_span_more_than_half_of_their_type_keep_apart(type_):
    most = 2 ** min(type_.bit_width - 1, 15) - 1
    values = [-most - 1, most, 0, None, 1, -1]
    (column,) = comparable([pa.table({"k": pa.array(values, type_)})["k"]], (type_,))
    (new,), (kept,) = number_by_new([[column]], [[column]])
    assert new.tolist() == kept.tolist()
    assert sorted(new.tolist()) == [-1, *sorted(set(new.tolist()) - {-1})]


def test_a_null_in_one_of_many_columns_matches_nothing():
    columns = [pa.chunked_array([[1, 1, None]]), pa.chunked_array([["a", None, "a"]])]
    assert number_by_new([columns], [])[0][0].tolist() == [0, -1, -1]


def typed(type_, values):
    return pa.array(values, pa.int64()).cast(pa.int32() if type_ == pa.date32() else type_).cast(type_)


@pytest.mark.parametrize("type_", [*TYPES, pa.string(), pa.decimal128(20, 0)], ids=str)
def test_every_wanted_row_passes(type_):
    kept = RNG.integers(0, 100, 50_000)
    column = pa.chunked_array([typed(type_, part) for part in np.array_split(kept, 3)])
    wanted = pa.chunked_array([typed(type_, [17, None, 99])])
    passed = may_have_key([column], [[wanted]])
    assert np.isin(np.flatnonzero((kept == 17) | (kept == 99)), passed).all()
    assert (np.diff(passed) > 0).all()


def test_few_others_pass():
    column, wanted = (pa.chunked_array([RNG.integers(0, 2**62, size)]) for size in (100_000, 1_000))
    assert len(may_have_key([column], [[wanted]])) < 100_000 / 4


def test_nothing_wanted_nothing_passes():
    assert may_have_key([pa.chunked_array([[1, 2]])], [[pa.chunked_array([], pa.int64())]]).tolist() == []
