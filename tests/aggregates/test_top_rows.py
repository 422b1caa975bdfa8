"""The first rows of groups: sorted, cut, merged in any order, with ties or without."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates.cases import Lowering
from penstock.aggregates.aggregate import resolve
from penstock.aggregates.partials import PaneColumns
from penstock.aggregates.top_rows import top_rows
from penstock.expressions.schema import TIME, Schema

SCHEMA = Schema.parse("x double, tags array<int>")
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from([None, 1.0, 2.0, -0.0, 0.0, float("inf")]),
        st.sampled_from([None, [], [1], [1, None]]),
    ),
    min_size=1,
    max_size=20,
)


def lowered(n, *, down, ties):
    found = resolve("r", top_rows(n, [("x", down)], ["x", "tags"], ties=ties), SCHEMA)
    pane = PaneColumns(f"`{TIME}`")
    return Lowering(pane, *found.definition.lower(found.arguments, pane))


def expected(rows, n, *, down, ties):
    """Nulls are the least values; equal rows go by time, then by content."""

    def key(row):
        value = (row[2] is not None, (row[2] or 0.0) + 0.0)
        return tuple(-each for each in value) if down else value

    ordered = sorted(rows, key=lambda row: (key(row), row[1], repr(row[3]) if row[3] is not None else ""))
    ranks = [1 + sum(key(one) < key(row) for one in ordered) for row in ordered]
    numbers = ranks if ties else range(1, len(ordered) + 1)
    return [(row[2], row[3], number) for row, number in zip(ordered, numbers, strict=True) if number <= n]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("down", [False, True])
@settings(max_examples=30)
@given(rows=ROWS, n=st.integers(1, 4), cut=st.integers(0, 20))
def test_rows_formed_apart_and_merged_are_those_of_a_sort(ties, down, rows, n, cut):
    form = lowered(n, down=down, ties=ties)
    columns = {
        TIME: pa.array([row[1] for row in rows], pa.int64()),
        "x": pa.array([row[2] for row in rows], pa.float64()),
        "tags": pa.array([row[3] for row in rows], pa.list_(pa.int32())),
    }
    table = pa.table(columns)
    present, groups = np.unique([row[0] for row in rows], return_inverse=True)
    cells, at = np.unique(groups * 2 + (np.arange(len(rows)) < cut), return_inverse=True)
    parts = form.formed(table, at, len(cells))
    found = form.finished(form.merged(parts, cells // 2, len(present)))
    for place, group in enumerate(present):
        wanted = expected([row for row in rows if row[0] == group], n, down=down, ties=ties)
        assert [(row["x"], row["tags"], row["rank"]) for row in found[place]] == wanted
