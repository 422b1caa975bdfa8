"""Pairs that match: candidate pairs for which a condition is true.

A condition of arithmetic and comparisons goes through a sieve: wide spans are compared tile by tile in single
precision, pairs that pass are checked again in doubles, and the few pairs that are too close to tell are left
to DuckDB. Any other condition is evaluated by DuckDB alone. Neighbouring probes whose spans overlap are
compared together with all rows that any of them spans; if they share most of a wide span, the shared part is
compared without checking the bound. Pairs of narrow spans are formed first and then filtered.

Million pairs a second on a busy core, through the sieve and by DuckDB alone: overlap in time 1,400 and 780, a
sum over a threshold 1,800 and 330, a difference below a threshold 800-1,000 and 210-390, a distance in space
over a distance in time 440 and 15. A pair that matches costs 50-90 ns more, whichever finds it.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.expressions.duck import cursor
from penstock.operators.joins.condition.estimates import Fill
from penstock.operators.joins.condition.sieve import FormedPairs, Sieve, passing
from penstock.operators.joins.condition.terms import read
from penstock.operators.joins.spans import BLOCK, Rows, Spans, joined
from penstock.operators.joins.spec import Condition, Pair

__all__ = ["Matcher"]

# A group has few probes, so that its fringes are small compared with the part that all share.
_MOST_PROBES, _LEAST_PROBES = 2048, 64
_GROUP_PAIRS = 1 << 25
# Forming and filtering one pair costs about as much as comparing this many: 40 ns and 1 to 2.
_FORMING = 24
# Starting a comparison costs about as much as comparing this many pairs: 0.3 ms, and 3 ms by DuckDB.
_BEGINNING = 1 << 19
# Probes are divided until the rows that any of them spans are at most so many times those that each spans.
_LOOSE = 2
_ROW, _LOW, _LAST, _PLACE = "_ps_row", "_ps_low", "_ps_last", "_ps_place"


class Matcher:
    """The condition of a join over the rows of one epoch; `left` and `right` are all rows of a side."""

    def __init__(self, condition: Condition, left: Any, right: Any) -> None:
        """Only the columns that the condition reads are used."""
        self._rows = Pair(_plain(left.select(condition.left)), _plain(right.select(condition.right)))
        self._logic = read(condition.sql)
        self._decider = Decider(condition, self._rows.left, self._rows.right)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._decider.close()

    def pairs(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) that match."""
        narrow = []
        for piece in _pieces(spans):
            if _pays(piece):
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
            yield from self._decider.true_within(spans, left_probes=left_probes)
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
        """The pairs, given by places in `rows`, for which the condition is true."""
        possible, certain = exact
        true = np.zeros(len(left), np.bool_) if certain is None else certain(FormedPairs(left, right), 0)
        doubt = np.flatnonzero(~true)
        if possible is not None and len(doubt):
            doubt = doubt[possible(FormedPairs(left[doubt], right[doubt]), 0)]
        left, right = rows.left[left], rows.right[right]
        if len(doubt):
            true[doubt[self._decider.true_of(left[doubt], right[doubt])]] = True
        if true.all():
            yield left, right
        elif true.any():
            yield left[true], right[true]


def _placed(spans: Spans, *, left_probes: bool) -> tuple[Spans, Pair[Rows]]:
    """The spans in terms of the rows that they reach, and these rows of both sides."""
    low, high = int(spans.low.min()), int(spans.high.max())
    reached = spans.order[low:high]
    places = Spans(np.arange(len(spans.probe)), np.arange(len(reached)), spans.low - low, spans.high - low)
    return places, Pair(spans.probe, reached) if left_probes else Pair(reached, spans.probe)


def _taken(table: Any, rows: Rows) -> Any:
    return table.take(pa.array(rows)) if table.num_columns else table


def _pays(spans: Spans) -> bool:
    """Whether comparing all probes with all rows that any of them spans costs less than forming the pairs."""
    return spans.pairs * _FORMING > spans.area + _BEGINNING


def _pieces(spans: Spans) -> Iterator[Spans]:
    """Groups of probes that reach about the same rows, and the rest, in which few do."""
    probes = max(_LEAST_PROBES, min(_MOST_PROBES, _GROUP_PAIRS * len(spans.probe) // max(spans.pairs, 1)))
    waiting = [spans.part(first, first + probes) for first in range(0, len(spans.probe), probes)][::-1]
    while waiting:
        group = waiting.pop()
        half = len(group.probe) // 2
        # Half of the pairs have to be worth a comparison of their own.
        if half and group.area > _LOOSE * group.pairs and group.pairs * _FORMING > 2 * _BEGINNING:
            waiting += [group.part(half, len(group.probe)), group.part(0, half)]
        else:
            yield from _shared_apart(group)


def _shared_apart(group: Spans) -> Iterator[Spans]:
    """The part that all probes share and the two fringes, if these are worth a comparison of their own."""
    low, high = int(group.low.max()), int(group.high.min())
    if (high - low) * len(group.probe) * 2 > group.pairs:
        fringes = group.spanning(group.low, low), group.spanning(high, group.high)
        if all(_pays(each) or not each.pairs for each in fringes):
            yield from (group.spanning(low, high), *fringes)
            return
    yield group


def _plain(table: Any) -> Any:
    """Timestamps in UTC without a zone, because DuckDB needs an extension for zones."""
    fields = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


class Decider:
    """Evaluates a condition in DuckDB, for formed pairs and for all pairs within spans."""

    def __init__(self, condition: Condition, left: Any, right: Any) -> None:
        """`left` and `right` are the columns that the condition reads; DuckDB starts when first asked."""
        self._sql, self._raises = condition.sql, condition.raises
        self._left, self._right = left, right

    def close(self) -> None:
        """Release the rows."""
        if "_engine" in self.__dict__:
            self._engine.close()

    @cached_property
    def _engine(self) -> Any:
        return cursor()

    def true_of(self, left: Rows, right: Rows) -> Rows:
        """The places of the pairs of these rows for which the condition is true."""
        # Side by side, not as structs: DuckDB casts a field of a struct also for rows that a CASE leaves out.
        for name, table, rows in (("l", self._left, left), ("r", self._right, right)):
            taken = table.take(pa.array(rows)) if table.num_columns else pa.table({})
            number = pa.array(np.arange(len(rows)))
            self._engine.register(
                f"_ps_{name}", pa.table([number, *taken.columns], names=[_ROW, *taken.column_names])
            )
        found = self._engine.sql(
            f"SELECT l.{_ROW} FROM _ps_l AS l POSITIONAL JOIN _ps_r AS r WHERE {self._sql}"
        ).to_arrow_table()
        places: Rows = found[_ROW].to_numpy()
        return places

    def true_within(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) within the spans that match, by a nested loop or a merge."""
        low, high = int(spans.low.min()), int(spans.high.max())
        probing, building = (self._left, self._right) if left_probes else (self._right, self._left)
        p, b = ("l", "r") if left_probes else ("r", "l")
        probe = _numbered(probing, spans.probe)
        build = _numbered(building, spans.order[low:high])
        decided = f"({self._sql})"
        if spans.pairs < spans.area:
            probe = probe.append_column(_LOW, pa.array(spans.low - low))
            probe = probe.append_column(_LAST, pa.array(spans.high - spans.low - 1))
            build = build.append_column(_PLACE, pa.array(np.arange(high - low)))
            # A difference, because DuckDB turns two plain inequalities into a merge join that evaluates the
            # condition last and is ten times slower.
            bound = f"{b}.{_PLACE} - {p}.{_LOW} BETWEEN 0 AND {p}.{_LAST}"
            # Of two parts joined by AND, DuckDB may evaluate either one for all pairs.
            decided = f"CASE WHEN {bound} THEN {decided} END" if self._raises else f"{decided} AND {bound}"
        self._engine.register("_ps_l", probe if left_probes else build)
        self._engine.register("_ps_r", build if left_probes else probe)
        found = self._engine.sql(
            f"SELECT l.{_ROW} AS a, r.{_ROW} AS b FROM _ps_l AS l, _ps_r AS r WHERE {decided}"
        )
        for batch in found.to_arrow_reader(BLOCK):
            yield batch["a"].to_numpy(), batch["b"].to_numpy()


def _numbered(table: Any, rows: Rows) -> Any:
    index = pa.array(rows)
    taken = table.take(index) if table.num_columns else pa.table({})
    return pa.table([index, *taken.columns], names=[_ROW, *taken.column_names])
