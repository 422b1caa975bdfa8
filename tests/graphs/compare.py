"""Rows as multisets: exactly, or up to the last digits of sums of doubles."""

import decimal
import math
from collections import Counter

import pytest

from graphs.graph import Column


def multiset(rows: list[tuple]) -> Counter:
    return Counter(tuple(_canonical(value) for value in row) for row in rows)


def assert_alike(found: list[tuple], expected: list[tuple], columns: tuple[Column, ...]) -> None:
    """The same rows; columns that are not exact may differ by rounding."""
    exact = [each.exact for each in columns]
    left, right = (sorted((_sortable(row, exact) for row in rows), key=repr) for rows in (found, expected))
    lacking, extra = Counter(right) - Counter(left), Counter(left) - Counter(right)
    assert len(left) == len(right), f"lacking {_first(lacking)}, too many {_first(extra)}"
    for one, other in zip(left, right, strict=True):
        for a, b, sharp in zip(one, other, exact, strict=True):
            close = b if sharp or not isinstance(b, float) else pytest.approx(b, rel=1e-7, abs=1e-6)
            assert a == close, f"lacking {_first(lacking)}, too many {_first(extra)}"


def _first(rows: Counter) -> str:
    return f"{sum(rows.values())} rows such as {list(rows)[:3]}"


def _sortable(row: tuple, exact: list[bool]) -> tuple:
    return tuple(
        _canonical(value) if sharp else _rounded(value) for value, sharp in zip(row, exact, strict=True)
    )


def _rounded(value):
    return float(f"{value:.9g}") + 0 if isinstance(value, (float, decimal.Decimal)) else value


def _canonical(value):
    """A value for comparison: one zero, one NaN."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.normalize() + 0 if isinstance(value, decimal.Decimal) else value
