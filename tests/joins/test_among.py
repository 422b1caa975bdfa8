"""No row whose key is wanted is missed, whatever its type, and few others pass."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.joins.among import among

RNG = np.random.default_rng(3)
TYPES = [pa.int64(), pa.int32(), pa.int8(), pa.uint64(), pa.uint16(), pa.date32(), pa.timestamp("us", "UTC")]


def typed(type_, values):
    return pa.array(values, pa.int64()).cast(pa.int32() if type_ == pa.date32() else type_).cast(type_)


@pytest.mark.parametrize("type_", [*TYPES, pa.string(), pa.decimal128(20, 0)], ids=str)
def test_every_wanted_row_passes(type_):
    kept = RNG.integers(0, 100, 50_000)
    column = pa.chunked_array([typed(type_, part) for part in np.array_split(kept, 3)])
    wanted = pa.chunked_array([typed(type_, [17, None, 99])])
    passed = among([column], [[wanted]])
    assert np.isin(np.flatnonzero((kept == 17) | (kept == 99)), passed).all()
    assert (np.diff(passed) > 0).all()


def test_few_others_pass():
    column, wanted = (pa.chunked_array([RNG.integers(0, 2**62, size)]) for size in (100_000, 1_000))
    assert len(among([column], [[wanted]])) < 100_000 / 4


def test_nothing_wanted_nothing_passes():
    assert among([pa.chunked_array([[1, 2]])], [[pa.chunked_array([], pa.int64())]]).tolist() == []
