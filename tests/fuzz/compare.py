"""Results as multisets: values canonical, doubles that are not exact with a tolerance, changes folded."""

import math
from collections import Counter
from decimal import Decimal

import pyarrow as pa

from fuzz.program import Column
from penstock.expressions.types import arrow_type, from_arrow


class Different(AssertionError):  # noqa: N818 -- what was found, as a word
    """The product and an oracle, or two runs of the product, do not agree."""


def plain_rows(table: pa.Table, columns: tuple[Column, ...]) -> list[tuple]:
    """The columns by name, whatever the letter case, as tuples of canonical values."""
    places = {name.lower(): place for place, name in enumerate(table.column_names)}
    missing = [each.name for each in columns if each.name.lower() not in places]
    if missing:
        raise Different(f"no column {missing} in {table.column_names}")
    arrays = [table.column(places[each.name.lower()]) for each in columns]
    lists = [[canonical(value) for value in listed(each)] for each in arrays]
    return list(zip(*lists, strict=True)) if lists else []


def listed(array: pa.ChunkedArray) -> list:
    """Times as numbers, since Python's end with the year 9999."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_date(array.type):
        return array.cast(pa.int32()).to_pylist()
    return array.to_pylist()


def canonical(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, list):
        return tuple(canonical(each) for each in value)
    if isinstance(value, dict):
        return tuple(canonical(each) for each in value.values())
    return value


def check_types(table: pa.Table, columns: tuple[Column, ...]) -> None:
    places = {name.lower(): place for place, name in enumerate(table.column_names)}
    for each in columns:
        found = table.schema.field(places[each.name.lower()]).type
        if from_arrow(found) != from_arrow(arrow_type(each.type)):
            raise Different(f"{each.name} is {from_arrow(found)}, not {each.type}")


def folded(table: pa.Table, columns: tuple[Column, ...]) -> list[tuple]:
    """What the changes of an updating result add up to."""
    changes = table.column("change").to_pylist()
    rows: Counter = Counter()
    exact = [each.exact for each in columns]
    for change, row in zip(changes, plain_rows(table, columns), strict=True):
        # The row that is taken back may differ from the one that was delivered in last digits.
        key = tuple(value if sharp else rounded(value) for value, sharp in zip(row, exact, strict=True))
        rows[key] += -1 if change == "retract" else 1
    wrong = [row for row, count in rows.items() if count < 0]
    if wrong:
        raise Different(f"{wrong[:3]} was taken back more often than given")
    return list(rows.elements())


def rounded(value):
    return float(f"{value:.7g}") + 0.0 if isinstance(value, float) and math.isfinite(value) else value


def assert_same(found: list[tuple], expected: list[tuple], columns: tuple[Column, ...], what: str) -> None:
    exact = [each.exact for each in columns]
    if all(exact):
        left, right = Counter(found), Counter(expected)
        if left != right:
            raise Different(f"{what}: lacking {few(right - left)}, too many {few(left - right)}")
        return

    def key(row):
        return repr(
            tuple(value if sharp else rounded(value) for value, sharp in zip(row, exact, strict=True))
        )

    left, right = sorted(found, key=key), sorted(expected, key=key)
    if len(left) == len(right) and all(close(*pair, exact) for pair in zip(left, right, strict=True)):
        return
    lacking = Counter(map(key, right)) - Counter(map(key, left))
    extra = Counter(map(key, left)) - Counter(map(key, right))
    raise Different(f"{what}: lacking {few(lacking)}, too many {few(extra)}")


def close(one: tuple, other: tuple, exact: list[bool]) -> bool:
    for a, b, sharp in zip(one, other, exact, strict=True):
        if a == b:
            continue
        if sharp or not (isinstance(a, float) and isinstance(b, float)):
            return False
        if not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6):
            return False
    return True


def few(rows: Counter) -> str:
    return f"{sum(rows.values())} rows such as {list(rows)[:3]}" if rows else "none"
