import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import penstock.query as ps
from penstock.aggregates.sets import Sets, numbered
from penstock.operators.windows.compiling import compile_windows

VALUES = st.lists(st.lists(st.sampled_from([0.0, -0.0, math.nan, 1.5, math.inf]), max_size=5), max_size=8)


def plain(values):
    """A set in which both zeros are one and NaN equals itself."""
    return {"NaN" if math.isnan(value) else value + 0.0 for value in values}


@given(lists=VALUES, data=st.data())
def test_merges_are_unions(lists, data):
    loaded = Sets(pa.float64()).load([pa.array(lists, pa.list_(pa.float64()))])
    cells = data.draw(st.lists(st.integers(0, 2), min_size=len(lists), max_size=len(lists)))
    wanted = [
        plain(v for cell, each in zip(cells, lists, strict=True) if cell == c for v in each) for c in range(3)
    ]
    scattered = loaded.merge.scatter(3, np.array(cells, np.int64), loaded.lanes)
    (found,) = loaded.store(scattered)
    assert [len(each or []) for each in found.to_pylist()] == [len(each) for each in wanted]
    assert [plain(each or []) for each in found.to_pylist()] == wanted
    rolled = tuple(np.roll(lane, 1) for lane in scattered)
    loaded.merge.combine(scattered, rolled, rolled)
    (both,) = loaded.store(rolled)
    assert [plain(each or []) for each in both.to_pylist()] == [wanted[c] | wanted[c - 1] for c in range(3)]
    assert [len(each or []) for each in both.to_pylist()] == [
        len(wanted[c] | wanted[c - 1]) for c in range(3)
    ]


def test_nested_values_are_equal_where_their_members_are():
    type_ = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.string())])
    rows = [
        {"a": [0.0, None], "b": ""},
        {"a": [-0.0, None], "b": ""},
        {"a": [0.0], "b": ""},
        {"a": [], "b": None},
        {"a": None, "b": None},
        {"a": [math.nan], "b": "x"},
        {"a": [math.nan], "b": "x"},
        {"a": [0.0, None], "b": None},
    ]
    numbers, distinct = numbered(pa.array(rows, type_))
    assert numbers.tolist() == [0, 0, 1, 2, 3, 4, 4, 5]
    assert len(distinct) == 6


def test_slices_are_numbered_by_what_they_hold():
    column = pa.array([["a"], ["b", "c"], ["a"], ["b", "c"]])
    assert numbered(column.slice(1))[0].tolist() == [0, 1, 0]


def test_sets_that_spark_collected_are_merged_with_those_of_segments():
    stream = ps.stream("s", "time timestamp, k string, n int", time="time")
    query = stream.group_by("k").window("10 seconds").agg(kinds=ps.count_distinct("n"))
    kernel = compile_windows(query.operator, "timestamp")
    keys, panes, sets = ["a", "b"], [0, 0], [[1, 2], [3]]
    spelled = pa.list_(pa.field("element", pa.int32(), nullable=False))
    columns = [pa.array(keys), pa.array(panes), pa.array([2, 1]), pa.array(sets, spelled)]
    sent = pa.Table.from_arrays(columns, names=kernel.partials.names)
    received = kernel.received(sent)
    assert received.schema == kernel.partials
    stored = pa.Table.from_pylist(
        [dict(zip(kernel.partials.names, ("a", 0, 1, [2, 5]), strict=True))], kernel.partials
    )
    found = kernel.combined([received, stored], 1)
    assert [sorted(each) for each in found[kernel.partials.names[-1]].to_pylist()] == [[1, 2, 5], [3]]
