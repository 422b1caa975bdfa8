"""The certificate of every aggregate: its values and types against Spark's batch queries, column for column.

Groups hold edge values, random values and values that overflow, of every type that an aggregate takes. Each
result is formed in three ways: in the channel from raw rows, there from panes, and from what Spark's map side
combines. A new aggregate is covered as soon as it is registered; without an `agreement` it fails.
"""

import datetime as dt
import math
import os
import random
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from aggregates.cases import VALUES, Case, cases, column_of, same, scale_of, table_of
from penstock.aggregates.aggregate import DEFINITIONS, Agreement
from penstock.errors import AggregateOverflow
from penstock.expressions.schema import TIME
from penstock.expressions.types import arrow_type
from sessions import interpreting

CASES = cases()
TYPES = list(VALUES)
SEED = int(os.environ.get("AGGREGATES_SEED", "7"))
HUGE, NINES = 1.7976931348623157e308, "9" * 38
WIDE = {
    "tinyint": (-128, 127),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
    "float": (-3.4028234663852886e38, 3.4028234663852886e38),
    "double": (-HUGE, HUGE),
    "decimal(5,0)": (Decimal(-99_999), Decimal(99_999)),
    "decimal(12,3)": (Decimal("-999999999.999"), Decimal("999999999.999")),
    "decimal(38,10)": (Decimal(f"-{NINES}E-10"), Decimal(f"{NINES}E-10")),
    "decimal(38,38)": (Decimal(f"-{NINES}E-38"), Decimal(f"{NINES}E-38")),
    "date": (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
}
# Below one even if forty of them are added: this type has no room for more.
SUMMABLE = {
    "decimal(38,38)": [Decimal("0.01234567890123456789012345678901234567"), Decimal("-1E-38"), Decimal(0)]
}


def test_every_aggregate_says_how_it_agrees_with_spark():
    assert {
        name for name, found in DEFINITIONS.items() if not isinstance(found.agreement, Agreement)
    } == set()
    # An estimate states its error, a choice which one it is.
    assert all(
        found.detail
        for found in DEFINITIONS.values()
        if found.agreement in {Agreement.ESTIMATE, Agreement.CHOSEN}
    )
    assert {case.definition.name for case in CASES} == set(DEFINITIONS)


class Rows:
    """Groups of rows, each with a value of every type for the first and for the second argument."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rows = []

    def group(self, size, choose):
        """Another group; `choose` gives the value of a type in a row."""
        number = self.rows[-1]["g"] + 1 if self.rows else 0
        for place in range(size):
            held = {column_of(type_, a): choose(type_, place) for type_ in TYPES for a in "ab"}
            row = {"g": number, "pane": self.random.randrange(3), TIME: self.random.randrange(5)}
            self.rows.append({**row, **held})

    def ordinary(self, type_, _place):
        """Edge values, but none that overflows a sum or makes it depend on the order."""
        plain = [v for v in SUMMABLE.get(type_, VALUES[type_]) if not isinstance(v, float) or abs(v) < 1e9]
        return self.random.choice([None, *(v for v in plain if type_ != "bigint" or abs(v) < 2**40)])

    def special(self, type_, place):
        if type_ in {"float", "double"}:
            return self.random.choice([None, *VALUES[type_]])
        return self.ordinary(type_, place)

    def drawn(self, type_, place):
        """A random value of the type, a null, or an edge value."""
        chance = self.random.random()
        if chance < 0.3:
            return None if chance < 0.1 else self.ordinary(type_, place)
        return self._random(type_)

    def _random(self, type_):  # noqa: PLR0911 -- one for each type
        draw = self.random
        if type_ in WIDE and isinstance(WIDE[type_][0], int):
            return draw.randrange(WIDE[type_][0], WIDE[type_][1]) >> (20 if type_ == "bigint" else 0)
        if type_ == "double":
            return draw.choice(
                [draw.gauss(0, 1e3), draw.uniform(-1, 1), math.ldexp(draw.random(), draw.randrange(-40, 40))]
            )
        if type_ == "float":
            return struct.unpack("f", struct.pack("f", draw.gauss(0, 1e3)))[0]
        if type_.startswith("decimal"):
            kind = arrow_type(type_)
            digits = min(kind.precision, 30)
            return Decimal(f"{draw.randrange(-(10**digits) + 1, 10**digits)}E-{kind.scale}")
        if type_ == "string":
            return "".join(draw.choices("ab ü🜁\u00e9z", k=draw.randrange(4)))
        if type_ == "binary":
            return draw.randbytes(draw.randrange(3))
        if type_ == "date":
            return dt.date(1, 1, 1) + dt.timedelta(days=draw.randrange(3_652_058))
        if type_.startswith("timestamp"):
            moment = dt.datetime(1, 1, 2) + dt.timedelta(microseconds=draw.randrange(300_000_000_000_000_000))  # noqa: DTZ001
            return moment.replace(tzinfo=dt.UTC) if type_ == "timestamp" else moment
        if type_ == "array<int>":
            return [draw.choice([None, 1, 2]) for _ in range(draw.randrange(3))]
        return draw.choice(VALUES[type_])

    def table(self):
        """As Arrow."""
        table = table_of(self.rows, {column_of(type_, a): type_ for type_ in TYPES for a in "ab"})
        for name in ("g", "pane"):
            table = table.append_column(name, pa.array([row[name] for row in self.rows]))
        return table


def edge_and_random_rows(seed, groups):
    rows = Rows(seed)
    rows.group(40, rows.ordinary)
    rows.group(12, rows.special)
    rows.group(3, lambda _type, _place: None)
    rows.group(1, rows.ordinary)
    rows.group(5, lambda type_, _place: VALUES[type_][-1])
    for number in range(max(map(len, VALUES.values()))):
        rows.group(1, lambda type_, _place, number=number: VALUES[type_][number % len(VALUES[type_])])
    for _ in range(groups):
        rows.group(rows.random.randrange(1, 13), rows.drawn)
    return rows.table()


def wide_rows():
    """The greatest values of each type, the least ones, and one of both; each row in a pane of its own."""
    rows = Rows(SEED)
    for sides in ((1, 1, 1), (0, 0, 0), (0, 1)):
        rows.group(
            len(sides),
            lambda type_, place, sides=sides: (
                WIDE[type_][sides[place]] if type_ in WIDE else rows.ordinary(type_, place)
            ),
        )
    for number, row in enumerate(rows.rows):
        row["pane"] = number
    return rows.table()


class Batch:
    """Rows in Spark, what it gives over whole groups, with types, and what its map side combines."""

    def __init__(self, spark, name, table):
        self.spark, self.name, self.table = spark, name, table
        self.groups = table["g"].to_numpy()
        columns = [f"{column_of(type_, a)} {type_}" for type_ in TYPES for a in "ab"]
        # Without a schema, times without a zone would come to have one.
        schema = ", ".join([f"{TIME} bigint", *columns, "g bigint", "pane bigint"])
        spark.createDataFrame(table, schema).createOrReplaceTempView(name)

    def results(self, chosen, where="true"):
        """What Spark gives for these cases: groups in rows, one column for each; and the types."""
        texts = [spark_text(case) for case in chosen]
        # Spark repeats the rows for each DISTINCT beside others, so those have queries of their own.
        apart = [place for place, text in enumerate(texts) if "DISTINCT" in text]
        tables, types = [], {}
        for places in ([p for p in range(len(texts)) if p not in apart], apart):
            if places:
                listed = ", ".join(f"{texts[place]} AS r{place}" for place in places)
                found = self.spark.sql(
                    f"SELECT g, {listed} FROM {self.name} WHERE {where} GROUP BY g ORDER BY g"
                )
                types |= {field.name: field.dataType.simpleString() for field in found.schema}
                tables.append(found.toArrow())
        columns = {name: table[name].to_pylist() for table in tables for name in table.column_names}
        return [columns[f"r{place}"] for place in range(len(texts))], [
            types[f"r{p}"] for p in range(len(texts))
        ]

    def combined(self, chosen):
        """The partials of these cases as the map side delivers them."""
        texts = {
            f"c{place}_{name}": text
            for place, case in enumerate(chosen)
            for partial in case.lowered.partials
            for name, text in zip(partial.wire, partial.combine, strict=True)
        }
        # A pane has the count of its tuples in each case; one is enough.
        listed = ", ".join(f"{text} AS {name}" for name, text in texts.items())
        return self.spark.sql(f"SELECT g, pane, {listed} FROM {self.name} GROUP BY g, pane").toArrow()

    def inside(self, case, group):
        """The values of a case's arguments in a group."""
        held = pa.array(np.flatnonzero(self.groups == group))
        return [self.table[name].take(held).to_pylist() for name in case.aggregate.arguments]


def spark_text(case):
    return case.definition.spark_sql([f"`{each}`" for each in case.aggregate.arguments], f"`{TIME}`")


def received(case, number, partials):
    """The partials of a case as the map side delivers them, in no particular order."""
    order = list(range(partials.num_rows))
    random.Random(SEED + number).shuffle(order)
    shuffled = partials.take(pa.array(order))
    prefix = f"c{number}_"
    names = [name for name in shuffled.column_names if name.startswith(prefix)]
    own = shuffled.select(names).rename_columns([name.removeprefix(prefix) for name in names])
    columns = [
        [column.cast(type_) for column, type_ in zip(partial.received(own), partial.kind.types, strict=True)]
        for partial in case.lowered.partials
    ]
    return columns, shuffled["g"].to_numpy()


def found_by(case, number, batch, partials, count):
    """The results of all groups by the way in which they were formed."""
    lowered = case.lowered
    columns, home = received(case, number, partials)
    found = {"map side": lowered.finished(lowered.merged(columns, home, count))}
    if case.liftable:
        found["channel"] = lowered.finished(lowered.formed(batch.table, batch.groups, count))
        cells, at = np.unique(batch.groups * 100 + batch.table["pane"].to_numpy(), return_inverse=True)
        panes = lowered.formed(batch.table, at, len(cells))
        found["panes"] = lowered.finished(lowered.merged(panes, cells // 100, count))
    return found


def fault(case: Case, found, expected, inside):
    """What is wrong with a result, in words; None if nothing is."""
    definition = case.definition
    if definition.estimates(inside):
        off = definition.measured_error(found, inside)
        return None if off <= definition.error_bound else f"off by {off}"
    rounded = definition.agreement is Agreement.ROUNDED and case.resolved.type == "double"
    scale = scale_of(inside) if rounded else None
    return None if same(found, expected, scale) else f"Spark gives {expected!r}"


def compare(batch, chosen):
    """Every fault of these cases over all groups of a batch."""
    expected, types = batch.results(chosen)
    partials = batch.combined(chosen)
    faults = []
    for number, case in enumerate(chosen):
        if case.resolved.type != types[number]:
            faults.append((str(case), "type", case.resolved.type, types[number]))
        count = len(expected[number])
        for way, values in found_by(case, number, batch, partials, count).items():
            for group in range(count):
                inside = batch.inside(case, group)
                if words := fault(case, values[group], expected[number][group], inside):
                    faults.append((str(case), way, group, values[group], words, inside))
    return faults


@pytest.fixture(scope="module")
def edges(spark):
    with interpreting(spark):
        yield Batch(spark, "edges", edge_and_random_rows(SEED, groups=25))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_values_and_types_are_those_of_a_batch_query(name, edges):
    chosen = [case for case in CASES if case.definition.name == name]
    assert compare(edges, chosen) == [], f"AGGREGATES_SEED={SEED}"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
def test_values_and_types_are_those_of_batch_queries_over_many_random_groups(spark, seed):
    with interpreting(spark):
        batch = Batch(spark, "many", edge_and_random_rows(seed, groups=300))
        for name in DEFINITIONS:
            chosen = [case for case in CASES if case.definition.name == name]
            assert compare(batch, chosen) == [], f"AGGREGATES_SEED={seed}"


@pytest.fixture(scope="module")
def wide(spark):
    with interpreting(spark):
        yield Batch(spark, "wide", wide_rows())


def finished(case, batch, group):
    """The result of one group, formed in its panes; AggregateOverflow if it does not fit."""
    table = batch.table.filter(pa.array(batch.groups == group))
    lowered, panes = case.lowered, np.arange(table.num_rows)
    return lowered.finished(lowered.merged(lowered.formed(table, panes, len(panes)), panes * 0, 1))[0]


def test_what_overflows_in_spark_raises_and_the_rest_is_equal(wide):
    """Sums and means leave the range of their type; each pane by itself is within it."""
    raised = []
    for group in range(3):
        fitting = []
        for case in (case for case in CASES if case.liftable):
            try:
                fitting.append((case, finished(case, wide, group)))
            except AggregateOverflow:
                raised.append((case, group))
        expected, _ = wide.results([case for case, _ in fitting], f"g = {group}")
        faults = [
            (str(case), group, found, words)
            for (case, found), (value,) in zip(fitting, expected, strict=True)
            if (words := fault(case, found, value, wide.inside(case, group)))
        ]
        assert faults == []
    for case, group in raised:
        with pytest.raises(Exception, match=r"OVERFLOW|OUT_OF_RANGE"):
            wide.results([case], f"g = {group}")
    assert {(case.definition.name, case.types[0]) for case, _ in raised} == {
        ("sum", "bigint"),
        ("sum", "decimal(38,10)"),
        ("sum", "decimal(38,38)"),
        ("avg", "decimal(38,10)"),
        ("avg", "decimal(38,38)"),
    }
