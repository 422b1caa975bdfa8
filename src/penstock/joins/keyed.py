"""Rows with the numbers of their keys, of which only those are looked up that a new row may meet."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.joins.among import among
from penstock.joins.inputs import Input
from penstock.joins.numbering import Numbers, number_by_new
from penstock.joins.spans import Rows
from penstock.joins.state import Pair

__all__ = ["Keyed", "keyed", "touched"]

# To number so many rows costs less than to find out which need no number.
_FEW = 1 << 14


@dataclass(frozen=True)
class Keyed:
    """Rows of one side, by their places in its table, and the numbers of their keys."""

    rows: Rows
    key: Numbers


def touched(side: Input, rows: Rows | range, wanted: list[list[Any]]) -> Rows:
    """Those of some kept rows that may have one of the wanted keys; all if there are no keys or few rows."""
    if not side.side.keys or len(rows) < _FEW:
        return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
    if isinstance(rows, range):
        return among(side.keys(rows), wanted) + rows.start
    return rows[among(side.keys(rows), wanted)]


def keyed(left: Input, right: Input, new: Pair[Rows], old: Pair[Rows]) -> Pair[Keyed]:
    """Old and new rows of both sides whose key a new row has; equal keys have equal numbers."""
    chosen = [(left, new.left), (right, new.right), (left, old.left), (right, old.right)]
    if not left.side.keys:
        numbers = [np.zeros(len(rows), np.int64) for _, rows in chosen]
    else:
        columns = [side.keys(_neighbours(rows)) for side, rows in chosen]
        ours, theirs = number_by_new(columns[:2], columns[2:])
        numbers = [*ours, *theirs]
    held = [_numbered(rows, number) for (_, rows), number in zip(chosen, numbers, strict=True)]
    return Pair(_both(held[2], held[0]), _both(held[3], held[1]))


def _numbered(rows: Rows, number: Numbers) -> Keyed:
    if not len(number) or number.min() >= 0:
        return Keyed(rows, number)
    at = np.flatnonzero(number >= 0)
    return Keyed(rows[at], number[at])


def _both(old: Keyed, new: Keyed) -> Keyed:
    return Keyed(np.concatenate([old.rows, new.rows]), np.concatenate([old.key, new.key]))


def _neighbours(rows: Rows) -> Rows | range:
    """Rows that lie side by side as a range, which needs no copy."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows
