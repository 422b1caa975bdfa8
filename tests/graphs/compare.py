"""Rows as multisets: exactly, or up to the last digits of sums of doubles."""

import decimal
from collections import Counter

import pytest


def multiset(rows: list[tuple]) -> Counter:
    return Counter(tuple(_canonical(value) for value in row) for row in rows)


def assert_alike(found: list[tuple], expected: list[tuple]) -> None:
    """The same rows; doubles may differ by rounding."""
    left, right = (sorted(map(_sortable, rows), key=repr) for rows in (found, expected))
    lacking, extra = Counter(right) - Counter(left), Counter(left) - Counter(right)
    assert len(left) == len(right), f"lacking {_first(lacking)}, too many {_first(extra)}"
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            close = pytest.approx(b, rel=1e-7, abs=1e-6) if isinstance(b, float) else b
            assert a == close, f"lacking {_first(lacking)}, too many {_first(extra)}"


def _first(rows: Counter) -> str:
    return f"{sum(rows.values())} rows such as {list(rows)[:3]}"


def _sortable(row: tuple) -> tuple:
    return tuple(
        float(f"{value:.9g}") + 0 if isinstance(value, float) else _canonical(value) for value in row
    )


def _canonical(value):
    return value.normalize() + 0 if isinstance(value, decimal.Decimal) else value
