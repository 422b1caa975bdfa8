"""Closing windows from shared panes against recalculating every window from its tuples."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.aggregates.kinds import Count, Fold
from penstock.aggregates.var import Moments
from penstock.operators.windows.sliding import Partials, close_windows
from penstock.routing import CumulatingPanes, SlidingPanes

KINDS = {
    "sum of bigint": (Fold("sum", pa.int64()), sum),
    "sum of double": (Fold("sum", pa.float64()), sum),
    "min of double": (Fold("min", pa.float64()), min),
    "max of string": (Fold("max", pa.string()), max),
    "min of decimal": (Fold("min", pa.decimal128(12, 2)), min),
    "sum of decimal": (Fold("sum", pa.decimal128(20, 2)), sum),
    "or of bits": (Fold("bit_or", pa.int64()), lambda v: int(np.bitwise_or.reduce(v))),
    "all of booleans": (Fold("bool_and", pa.bool_()), all),
}


def values(kind, draw):
    type_ = kind.type
    if pa.types.is_string(type_):
        return draw(st.text(max_size=3))
    if pa.types.is_boolean(type_):
        return draw(st.booleans())
    if pa.types.is_decimal(type_):
        return draw(st.decimals(-999, 999, places=2))
    if pa.types.is_floating(type_):
        return float(draw(st.integers(-1000, 1000)))
    return draw(st.integers(-1000, 1000))


@st.composite
def cases(draw, kind):
    phase = draw(st.integers(-3, 3))
    if draw(st.booleans()):
        windows = SlidingPanes(draw(st.integers(1, 12)), draw(st.integers(1, 15)), phase)
    else:
        windows = CumulatingPanes(draw(st.integers(1, 3)), draw(st.integers(1, 5)), phase)
    rows = draw(st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 3)), max_size=25))
    return windows, rows, [values(kind, draw) for _ in rows]


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_every_window_equals_its_recalculation(name, data):
    kind, fold = KINDS[name]
    windows, rows, column = data.draw(cases(kind))
    pane = np.array([row[0] for row in rows], np.int64)
    key = np.array([row[1] for row in rows], np.int64)
    count = Count().load([pa.array(np.ones(len(rows), np.int64))])
    loaded = kind.load([pa.array(column, kind.type)])
    held = Partials(pane, key, (count.lanes, loaded.lanes))

    found = {}
    for closed in close_windows(windows, -100, 100, held, (count.merge, loaded.merge)):
        results = loaded.store(closed.lanes[1])[0].to_pylist()
        for window, each, value in zip(closed.window.tolist(), closed.key.tolist(), results, strict=True):
            assert (window, each) not in found
            found[window, each] = value

    expected = {}
    for window in range(-100, 100):
        inside = range(windows.start(window), windows.end(window))
        for each in set(key.tolist()):
            members = [v for (p, k), v in zip(rows, column, strict=True) if p in inside and k == each]
            if members:
                expected[window, each] = fold(members)
    assert found == expected


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.one_of(st.none(), st.floats(-100, 100))), min_size=1, max_size=30
    )
)
def test_variance_agrees_with_numpy(rows):
    pane = np.array([row[0] for row in rows])
    value = np.array([np.nan if row[1] is None else row[1] for row in rows])
    valid = ~np.isnan(value)
    columns = [pa.array(valid.astype(float)), pa.array(np.nan_to_num(value)), pa.array(np.zeros(len(rows)))]
    loaded, count = Moments().load(columns), Count().load([pa.array(np.ones(len(rows), np.int64))])
    held = Partials(pane, np.zeros(len(rows), np.int64), (count.lanes, loaded.lanes))
    for closed in close_windows(SlidingPanes(3, 1), -10, 10, held, (count.merge, loaded.merge)):
        for window, n, _, squares in zip(closed.window, *closed.lanes[1], strict=True):
            inside = value[(pane >= window) & (pane < window + 3) & valid]
            assert n == len(inside)
            assert squares == pytest.approx(np.var(inside) * n if n else 0, abs=1e-6)


def test_sum_beyond_64_bits_is_an_error_and_not_a_wrap():
    from penstock.errors import AggregateOverflow

    loaded = Fold("sum", pa.int64()).load([pa.array([2**62, 2**62])])
    lanes = loaded.merge.scatter(1, np.zeros(2, np.int64), loaded.lanes)
    with pytest.raises(AggregateOverflow, match="cast the column"):
        loaded.store(lanes)


def test_sum_that_only_passes_beyond_64_bits_on_the_way_is_exact():
    loaded = Fold("sum", pa.int64()).load([pa.array([2**62, 2**62, -(2**62) - 5])])
    lanes = loaded.merge.scatter(1, np.zeros(3, np.int64), loaded.lanes)
    assert loaded.store(lanes)[0].to_pylist() == [2**62 - 5]
