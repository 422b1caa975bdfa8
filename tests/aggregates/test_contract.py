"""What every aggregate of the registry promises, over every type that it takes.

A new aggregate is covered as soon as it is registered: `cases` finds it, its options and its types.
"""

import io
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from aggregates.cases import VALUES, Case, cases, column_of, same, scale_of, table_of, values
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


# Spark: one query for what a batch gives, one for what the map side combines, over all cases together.

FEW = random.Random(7)


def spark_rows():
    """Ordinary values, nulls, specials, one row, equal rows, and each extreme by itself."""
    types = {
        type_: strategy for case in CASES for type_, strategy in zip(case.types, case.types, strict=True)
    }

    def row(group, choose):
        held = {column_of(type_, argument): choose(type_) for type_ in types for argument in "ab"}
        return {"g": group, "pane": FEW.randrange(3), TIME: FEW.randrange(5), **held}

    def ordinary(type_):
        pool = [v for v in VALUES[type_] if not isinstance(v, float) or abs(v) < 1e9]
        pool = [v for v in pool if type_ != "bigint" or abs(v) < 2**40]
        return FEW.choice([None, *pool])

    def special(type_):
        return FEW.choice([None, *VALUES[type_]]) if type_ in {"float", "double"} else ordinary(type_)

    rows = [row(0, ordinary) for _ in range(40)] + [row(1, special) for _ in range(12)]
    rows += [row(2, lambda _type: None) for _ in range(3)] + [row(3, ordinary)]
    rows += [row(4, lambda type_: VALUES[type_][-1]) for _ in range(5)]
    rows += [
        row(5 + place, lambda type_, place=place: VALUES[type_][place % len(VALUES[type_])])
        for place in range(5)
    ]
    return rows, {column_of(type_, argument): type_ for type_ in types for argument in "ab"}


@pytest.fixture(scope="module")
def batch(spark):
    """The raw rows, what Spark gives over whole groups with its types, and what its map side combines."""
    rows, names = spark_rows()
    table = table_of(rows, names)
    places = pa.table({"g": [row["g"] for row in rows], "pane": [row["pane"] for row in rows]})
    for name in places.column_names:
        table = table.append_column(name, places[name])
    # Without a schema, times without a zone would come to have one.
    schema = ", ".join([f"{TIME} bigint", *(f"{n} {t}" for n, t in names.items()), "g bigint", "pane bigint"])
    spark.createDataFrame(table, schema).createOrReplaceTempView("contract")
    exact = {
        f"r{place}": text
        for place, case in enumerate(CASES)
        if (
            text := case.definition.spark_sql([f"`{each}`" for each in case.aggregate.arguments], f"`{TIME}`")
        )
    }
    chosen = ", ".join(f"{text} AS {name}" for name, text in exact.items())
    results = spark.sql(f"SELECT g, {chosen} FROM contract GROUP BY g ORDER BY g")
    combined = ", ".join(
        f"{text} AS c{place}_{name}"
        for place, case in enumerate(CASES)
        for partial in case.lowered.partials
        for name, text in zip(partial.wire, partial.combine, strict=True)
    )
    partials = spark.sql(f"SELECT g, pane, {combined} FROM contract GROUP BY g, pane")
    types = {field.name: field.dataType.simpleString() for field in results.schema}
    return table, results.toArrow(), types, partials.toArrow()


def received(case, partials):
    """The partials of a case as the map side delivers them, in no particular order."""
    order = list(range(partials.num_rows))
    FEW.shuffle(order)
    shuffled = partials.take(pa.array(order))
    prefix = f"c{CASES.index(case)}_"
    names = [name for name in shuffled.column_names if name.startswith(prefix)]
    own = shuffled.select(names).rename_columns([name.removeprefix(prefix) for name in names])
    columns = [
        [column.cast(type_) for column, type_ in zip(partial.received(own), partial.kind.types, strict=True)]
        for partial in case.lowered.partials
    ]
    return columns, shuffled["g"].to_numpy()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_equals_a_batch_query_of_spark(case, batch):
    table, results, _, partials = batch
    lowered, count = case.lowered, results.num_rows
    groups = table["g"].to_numpy()
    columns, home = received(case, partials)
    found = {"map": lowered.finished(lowered.merged(columns, home, count))}
    if case.liftable:
        found["channel"] = lowered.finished(lowered.formed(table, groups, count))
    given_values = [table[name].to_pylist() for name in case.aggregate.arguments]
    name = f"r{CASES.index(case)}"
    for where, each in found.items():
        for group in range(count):
            inside = [
                [v for v, g in zip(column, groups, strict=True) if g == group] for column in given_values
            ]
            if name in results.column_names:
                expected = results[name][group].as_py()
                assert same(each[group], expected, scale_of(inside)), (
                    where,
                    group,
                    each[group],
                    expected,
                    inside,
                )
            else:
                off = case.definition.measured_error(each[group], inside)
                assert off <= case.definition.error_bound, (where, group, each[group], inside)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_type_is_that_of_spark_or_documented(case, batch):
    _, _, types, _ = batch
    name = f"r{CASES.index(case)}"
    if not case.definition.differs and name in types:
        assert case.resolved.type == types[name]
