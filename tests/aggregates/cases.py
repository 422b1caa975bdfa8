"""Every aggregate of the registry over every type that it takes, and what to expect of its results."""

import datetime as dt
import itertools
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.aggregates.aggregate import DEFINITIONS, Aggregate, resolve
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import PaneColumns
from penstock.errors import BadAggregate, WrongType
from penstock.expressions.schema import TIME, Schema
from penstock.expressions.types import arrow_type

UTC = dt.UTC
# Floats have few digits, so that sums in different orders differ by rounding only.
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-3, -2.5, 7.0, 1e12]
TIMES = [
    dt.datetime(1, 1, 1),  # noqa: DTZ001
    dt.datetime(1900, 1, 1),  # noqa: DTZ001
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    dt.datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
]
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [-128, 127, 0, 5],
    "smallint": [-(2**15), 2**15 - 1, 0, 5],
    "int": [-(2**31), 2**31 - 1, 0, 5],
    "bigint": [-(2**63), 2**63 - 1, 0, 5, -7],
    "float": FLOATS,
    "double": [*FLOATS, 5e-324, 0.1],
    "decimal(5,0)": [Decimal(99999), Decimal(-99999), Decimal(0), Decimal(7)],
    "decimal(12,3)": [Decimal("999999999.999"), Decimal("-0.001"), Decimal("0.000"), Decimal("17.250")],
    "decimal(38,10)": [Decimal(10) ** 20, -(Decimal(10) ** 20), Decimal("0.0000000001")],
    "decimal(38,38)": [Decimal("0.12345678901234567890123456789012345678"), Decimal("-1E-38"), Decimal(0)],
    "string": ["", "a", "b", "Ünï", "🜁", "\uffee", " ", "a" * 30],
    "binary": [b"", b"\x00", b"\xff", b"a"],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "timestamp": [each.replace(tzinfo=UTC) for each in TIMES],
    "timestamp_ntz": TIMES,
    "array<int>": [[], [1], [1, None], [None]],
    "array<double>": [[], [0.0], [-0.0], [math.nan, 1.5], [None]],
    "struct<x:string,y:float>": [{"x": "", "y": 0.0}, {"x": "", "y": -0.0}, {"x": None, "y": None}],
    "map<string,int>": [[], [("a", 1)], [("a", None)]],
}
RANDOM = {
    "tinyint": st.integers(-128, 127),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**40)),
    "decimal(5,0)": st.integers(-99_999, 99_999).map(Decimal),
    "date": st.dates(),
    "timestamp_ntz": st.datetimes(),
    "binary": st.binary(max_size=3),
    "double": st.integers(-10_000, 10_000).map(lambda n: n / 8),
    "decimal(12,3)": st.decimals(-(10**8), 10**8, places=3),
    "string": st.text(max_size=3).filter(lambda text: text.isprintable()),
}


def values(type_: str) -> st.SearchStrategy[Any]:
    """Nulls, the extremes of a type and ordinary values."""
    known = st.sampled_from(VALUES[type_])
    return st.one_of(st.none(), known, RANDOM.get(type_, known))


@dataclass(frozen=True)
class Case:
    """One aggregate with its options over arguments of given types."""

    aggregate: Aggregate
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.aggregate} over {', '.join(self.types)}".replace("`", "")

    @property
    def definition(self) -> Any:
        return self.aggregate.definition

    @cached_property
    def resolved(self) -> Any:
        names = dict(zip(self.aggregate.arguments, self.types, strict=True))
        return resolve(
            "result", self.aggregate, Schema.parse(", ".join(f"{n} {t}" for n, t in names.items()))
        )

    @cached_property
    def lowered(self) -> "Lowering":
        pane = PaneColumns(f"`{TIME}`")
        finish, type_ = self.definition.lower(self.resolved.arguments, pane)
        return Lowering(pane, finish, type_)

    @property
    def liftable(self) -> bool:
        return all(partial.lift for partial in self.lowered.partials)


@dataclass(frozen=True)
class Lowering:
    pane: PaneColumns
    finish: Any
    type: Any

    @property
    def partials(self) -> tuple[Any, ...]:
        return tuple(self.pane.partials.values())

    def inputs(self, table: pa.Table) -> pa.RecordBatch:
        """What a channel is sent of raw rows."""
        given = {
            each.name: table[each.sql.replace("`", "")].combine_chunks() for each in self.pane.inputs.values()
        }
        # A query without inputs still sends its rows.
        given.setdefault(TIME, table[TIME].combine_chunks())
        return pa.RecordBatch.from_arrays(list(given.values()), names=list(given))

    def formed(self, table: pa.Table, groups: np.ndarray, count: int) -> list[list[pa.Array]]:
        """The columns of every partial, formed from raw rows."""
        rows = self.inputs(table)
        return [partial.formed(rows, groups, count) for partial in self.partials]

    def merged(self, columns: list[list[pa.Array]], groups: np.ndarray, count: int) -> list[list[pa.Array]]:
        """Stored partials of each group, loaded, merged and stored again."""
        found = []
        for partial, column in zip(self.partials, columns, strict=True):
            loaded = partial.kind.load(column)
            found.append(loaded.store(loaded.merge.scatter(count, groups, loaded.lanes)))
        return found

    def finished(self, columns: list[list[pa.Array]]) -> list[Any]:
        """The results."""
        named = {
            name: column
            for partial, held in zip(self.partials, columns, strict=True)
            for name, column in zip(partial.columns, held, strict=True)
        }
        found = self.finish(named)
        assert found.type == self.type, (found.type, self.type)
        return found.to_pylist()


def cases() -> list[Case]:
    """Everything that the registry offers; what refuses a type is left out."""
    found = []
    for definition in DEFINITIONS.values():
        count = len(definition.takes)
        combinations = [(each,) for each in VALUES] if count == 1 else pairs()
        if definition.variadic:
            combinations += pairs()
        for options, types in itertools.product(definition.examples, combinations):
            case = Case(definition.construct(*map(column_of, types, "ab"), **options), types)
            try:
                case.resolved  # noqa: B018 -- refuses what it does not take
            except WrongType:
                continue
            found.append(case)
    return found + modified_cases(found)


def modified_cases(plain: list[Case]) -> list[Case]:
    """Every aggregate with a FILTER, and with a DISTINCT beside it where it takes one."""
    found = []
    for name in DEFINITIONS:
        own = [case for case in plain if case.definition.name == name]
        case = next((each for each in own if each.types[0] in {"double", "string"}), own[0])
        condition = column_of("boolean", "b")
        for distinct in (False, True):
            aggregate = modified(case.aggregate, condition, distinct)
            more = Case(aggregate, (*case.types, "boolean"))
            try:
                more.resolved  # noqa: B018 -- refuses what it does not take
            except BadAggregate:
                continue
            found.append(more)
    return list(dict.fromkeys(found))


def pairs() -> list[tuple[str, str]]:
    """Types of two arguments: each with itself, and some that are mixed."""
    return [*((each, each) for each in VALUES), ("string", "double"), ("double", "bigint"), ("int", "float")]


def column_of(type_: str, argument: str = "a") -> str:
    """The column with values of a type, for the first or the second argument."""
    return f"{argument}_{''.join(filter(str.isalnum, type_))}"


def table_of(rows: list[dict[str, Any]], names: dict[str, str]) -> pa.Table:
    """Rows as Arrow, with their event time."""
    schema = pa.schema([(TIME, pa.int64()), *((name, arrow_type(type_)) for name, type_ in names.items())])
    return pa.Table.from_pylist(rows, schema=schema)


def same(one: Any, other: Any, scale: float | None = None) -> bool:
    """Whether two results are equal; with a scale, up to the rounding of sums of values up to it."""
    if isinstance(one, float) and isinstance(other, float):
        if scale is not None and math.isfinite(one) and math.isfinite(other):
            return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-9 * max(1.0, scale))
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair, scale) for pair in zip(one, other, strict=True))
    return bool(one == other)


def scale_of(columns: list[list[Any]]) -> float:
    """The square of the largest number among values, by which the rounding of a variance goes."""
    numbers = [float(v) for column in columns for v in column if isinstance(v, (int, float, Decimal))]
    largest = max((abs(n) for n in numbers if math.isfinite(n)), default=0.0)
    return largest * largest
