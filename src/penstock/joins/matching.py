"""Pairs that match: candidate pairs for which a condition is true.

A condition of arithmetic and comparisons goes through a sieve: wide spans are compared tile by tile in single
precision, what passes is looked at again in doubles, and the few pairs that are too close to tell are left to
DuckDB. Any other condition is DuckDB's alone. Neighbouring probes share most of a wide span, and what they
all share is compared without looking at the bound. Narrow spans are formed first and then filtered.

Million pairs a second of a core that others keep busy, through the sieve and by DuckDB alone: overlap in time
1,400 and 780, a sum over a threshold 1,800 and 330, a difference below one 800-1,000 and 210-390, a distance
in space over one in time 440 and 15. A pair that matches costs 50-90 ns more, whoever finds it.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.joins.deciding import Decider
from penstock.joins.join import Condition
from penstock.joins.operands import Fill
from penstock.joins.sieve import Sieve
from penstock.joins.spans import BLOCK, Rows, Spans, joined
from penstock.joins.state import Pair
from penstock.joins.terms import read
from penstock.joins.tiles import Formed, passing

__all__ = ["Matcher"]

# A group has so few probes that its fringes are small beside what it shares.
_MOST_PROBES, _LEAST_PROBES = 2048, 64
_GROUP_PAIRS = 1 << 25
# To form a pair and then filter it costs about as much as to compare this many.
_FORMING = 8
# To begin to compare costs about as much as comparing this many pairs.
_BEGINNING = 1 << 19


class Matcher:
    """The condition of a join over the rows of one epoch; `left` and `right` are all rows of a side."""

    def __init__(self, condition: Condition, left: Any, right: Any) -> None:
        """Only the columns that the condition reads are looked at."""
        self._rows = Pair(_plain(left.select(condition.left)), _plain(right.select(condition.right)))
        self._logic = read(condition.sql)
        self._decider = Decider(condition.sql, self._rows.left, self._rows.right)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._decider.close()

    def pairs(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) that match."""
        narrow = []
        for piece in _pieces(spans):
            if piece.pairs * _FORMING > max(piece.area, _BEGINNING):
                yield from self._compared(piece, left_probes=left_probes)
            else:
                narrow.append(piece)
        if narrow:
            yield from self._filtered(joined(narrow), left_probes=left_probes)

    def _filtered(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        places, rows = _placed(spans, left_probes=left_probes)
        exact = self._sieve(rows).exact()
        for probe, build in places.blocks():
            yield from self._decided(exact, rows, *((probe, build) if left_probes else (build, probe)))

    def _compared(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        places, rows = _placed(spans, left_probes=left_probes)
        sieve = self._sieve(rows)
        possible = sieve.possible()
        if possible is None:
            yield from self._decider.among(spans, left_probes=left_probes)
            return
        exact = sieve.exact()
        for left, right in passing(possible, len(rows.left), len(rows.right), BLOCK // 4):
            if places.pairs < places.area:
                probe, build = (left, right) if left_probes else (right, left)
                held = np.flatnonzero((build >= places.low[probe]) & (build < places.high[probe]))
                yield from self._decided(exact, rows, left[held], right[held])
            else:
                yield from self._decided(exact, rows, left, right)

    def _sieve(self, rows: Pair[Rows]) -> Sieve:
        return Sieve(self._logic, _taken(self._rows.left, rows.left), _taken(self._rows.right, rows.right))

    def _decided(
        self, exact: tuple[Fill | None, Fill | None], rows: Pair[Rows], left: Rows, right: Rows
    ) -> Iterator[tuple[Rows, Rows]]:
        """Those of the pairs, given by places in `rows`, for which the condition is true."""
        possible, certain = exact
        true = np.zeros(len(left), np.bool_) if certain is None else certain(Formed(left, right), 0)
        doubt = np.flatnonzero(~true)
        if possible is not None and len(doubt):
            doubt = doubt[possible(Formed(left[doubt], right[doubt]), 0)]
        left, right = rows.left[left], rows.right[right]
        if len(doubt):
            true[doubt[self._decider.true_of(left[doubt], right[doubt])]] = True
        if true.all():
            yield left, right
        elif true.any():
            yield left[true], right[true]


def _placed(spans: Spans, *, left_probes: bool) -> tuple[Spans, Pair[Rows]]:
    """The spans over places in the rows that they reach, and those rows of both sides."""
    low, high = int(spans.low.min()), int(spans.high.max())
    reached = spans.order[low:high]
    places = Spans(np.arange(len(spans.probe)), np.arange(len(reached)), spans.low - low, spans.high - low)
    return places, Pair(spans.probe, reached) if left_probes else Pair(reached, spans.probe)


def _taken(table: Any, rows: Rows) -> Any:
    return table.take(pa.array(rows)) if table.num_columns else table


def _pieces(spans: Spans) -> Iterator[Spans]:
    """Groups of probes; where they share most of their spans, what is shared and the fringes apart."""
    probes = max(_LEAST_PROBES, min(_MOST_PROBES, _GROUP_PAIRS * len(spans.probe) // max(spans.pairs, 1)))
    for first in range(0, len(spans.probe), probes):
        group = spans.part(first, first + probes)
        low, high = int(group.low.max()), int(group.high.min())
        if (high - low) * len(group.probe) * 2 > group.pairs:
            yield from (
                group.spanning(low, high),
                group.spanning(group.low, low),
                group.spanning(high, group.high),
            )
        else:
            yield group


def _plain(table: Any) -> Any:
    """Times without a zone, in UTC, for which DuckDB needs no extension."""
    fields = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
