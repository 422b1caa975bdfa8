"""What every aggregate of the registry promises, over every type that it takes.

A new aggregate is covered as soon as it is registered: `cases` finds it, its options and its types.
`test_spark.py` holds its values and types against Spark's.
"""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from aggregates.cases import Case, cases, same, scale_of, table_of, values
from penstock.aggregates import __all__ as exported
from penstock.aggregates.aggregate import DEFINITIONS
from penstock.aggregates.sql_calls import aggregate_of
from penstock.errors import AggregateOverflow
from penstock.expressions.parsing import parse_scalar
from penstock.expressions.schema import TIME

CASES = cases()
LIFTABLE = [case for case in CASES if case.liftable]
GROUPS, PANES = 3, 4
# Hundreds of cases: a failure is replayed by its blob rather than shrunk.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def rows_of(case: Case):
    columns = {name: values(type_) for name, type_ in zip(case.aggregate.arguments, case.types, strict=True)}
    return st.lists(
        st.tuples(
            st.integers(0, GROUPS - 1),
            st.integers(0, 3),
            st.fixed_dictionaries({TIME: st.integers(0, 3), **columns}),
        ),
        min_size=1,
        max_size=14,
    )


def read_back(columns):
    """Columns after a way through a file."""
    batch = pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(columns))])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_all().combine_chunks().to_batches()[0].columns


@pytest.mark.parametrize("case", LIFTABLE, ids=str)
@settings(max_examples=6, phases=PHASES)
@given(data=st.data())
def test_any_split_into_panes_in_any_order_equals_one_pass(case, data):
    rows = data.draw(rows_of(case))
    names = dict(zip(case.aggregate.arguments, case.types, strict=True))
    table = table_of([row for _, _, row in rows], names)
    # Groups without a tuple are never delivered, so only those with one are numbered.
    present, groups = np.unique([group for group, _, _ in rows], return_inverse=True)
    cells, at = np.unique(groups * PANES + [pane for _, pane, _ in rows], return_inverse=True)
    order = np.array(data.draw(st.permutations(range(len(cells)))), np.int64)
    lowered, count = case.lowered, len(present)
    try:
        whole = lowered.finished(lowered.formed(table, groups, count))
        panes = lowered.formed(table, at, len(cells))
        stored = [read_back([column.take(pa.array(order)) for column in held]) for held in panes]
        home = cells[order] // PANES
        merged = lowered.merged(stored, home, count)
        blocks = combined(lowered, stored, home, count, data.draw(st.integers(0, len(order))))
        again = lowered.merged([read_back(held) for held in merged], np.arange(count), count)
    except AggregateOverflow:
        # A sum that does not fit is an error, in whichever pane it shows.
        assume(False)
    scale = scale_of([table[name].to_pylist() for name in names])
    for found in (merged, blocks, again):
        assert same(lowered.finished(found), whole, scale)


def combined(lowered, columns, groups, count, cut):
    """Partials in two blocks that are combined cell by cell, between identities, as sliding windows do it."""
    found = []
    for partial, column in zip(lowered.partials, columns, strict=True):
        loaded = partial.kind.load(column)
        merge = loaded.merge
        sides = [
            (groups[part], [lane[part] for lane in loaded.lanes]) for part in (slice(cut), slice(cut, None))
        ]
        left, right = (merge.scatter(count, at, tuple(lanes)) for at, lanes in sides)
        merge.combine(merge.identity(count), left, left)
        merge.combine(left, right, left)
        merge.combine(left, merge.identity(count), left)
        found.append(loaded.store(left))
    return found


@pytest.mark.parametrize("name", DEFINITIONS)
def test_it_is_exported_documented_and_has_an_example(name):
    definition = DEFINITIONS[name]
    assert name in exported
    assert definition.construct.__name__ == name
    assert definition.gives
    assert ">>>" in (definition.construct.__doc__ or "")


def test_no_two_share_a_name_in_sql():
    names = [each for found in DEFINITIONS.values() for each in found.sql_names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "sql_name"), [(name, each) for name, found in DEFINITIONS.items() for each in found.sql_names]
)
def test_every_sql_name_gives_the_aggregate(name, sql_name):
    definition = DEFINITIONS[name]
    columns = list("xyz"[: len(definition.takes)])
    numbers = [1] * definition.numbers.get(sql_name, (0, 0))[0]
    found = aggregate_of(parse_scalar(f"{sql_name}({', '.join(map(str, columns + numbers))})"), {})
    assert found == definition.construct(*columns, *numbers)
