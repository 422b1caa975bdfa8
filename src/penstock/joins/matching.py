"""Pairs that match: candidate pairs for which a condition is true.

Wide spans are compared by DuckDB rows by rows, in a nested loop or, if the condition is an inequality, by a
merge, without forming a pair that fails. Neighbouring probes share most of a wide span, and what they all
share is compared without looking at the bound; only at the fringes it is a part of the condition. Narrow
spans are formed first and then filtered.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from penstock.joins.engine import cursor
from penstock.joins.join import Condition
from penstock.joins.spans import BLOCK, Rows, Spans, joined

__all__ = ["Matcher"]

_ROW, _LOW, _LAST, _PLACE = "_ps_row", "_ps_low", "_ps_last", "_ps_place"
# A group has at most a vector of DuckDB, and so few probes that its fringes are small beside what it shares.
_MOST_PROBES, _LEAST_PROBES = 2048, 64
_GROUP_PAIRS = 1 << 25
# To form a pair and then filter it costs about as much as to compare this many in the nested loop.
_FORMING = 8
# A query costs about as much as comparing this many pairs.
_QUERY = 1 << 19


class Matcher:
    """The condition of a join over the rows of one epoch; `left` and `right` are all rows of a side."""

    def __init__(self, condition: Condition, left: Any, right: Any) -> None:
        """Only the columns that the condition reads are looked at."""
        self._sql = condition.sql
        self._left = _plain(left.select(condition.left))
        self._right = _plain(right.select(condition.right))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_engine" in self.__dict__:
            self._engine.close()

    @cached_property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        return cursor()

    def pairs(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) that match."""
        narrow = []
        for piece in _pieces(spans):
            if piece.pairs * _FORMING > max(piece.area, _QUERY):
                yield from self._compared(piece, left_probes=left_probes)
            else:
                narrow.append(piece)
        if narrow:
            yield from self._filtered(joined(narrow), left_probes=left_probes)

    def _filtered(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        for probe, build in spans.blocks():
            left, right = (probe, build) if left_probes else (build, probe)
            columns = {_ROW: pa.array(np.arange(len(left)))}
            for name, table, rows in (("l", self._left, left), ("r", self._right, right)):
                if table.num_columns:
                    # A struct named l makes l.x a column of the left row.
                    columns[name] = table.take(pa.array(rows)).to_struct_array()
            self._engine.register("_ps_pairs", pa.table(columns))
            found = self._engine.sql(f"SELECT {_ROW} FROM _ps_pairs WHERE {self._sql}").to_arrow_table()
            held = found[_ROW].to_numpy()
            if len(held):
                yield left[held], right[held]

    def _compared(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        low, high = int(spans.low.min()), int(spans.high.max())
        probing, building = (self._left, self._right) if left_probes else (self._right, self._left)
        p, b = ("l", "r") if left_probes else ("r", "l")
        probe = _numbered(probing, spans.probe)
        build = _numbered(building, spans.order[low:high])
        bound = ""
        if spans.pairs < spans.area:
            probe = probe.append_column(_LOW, pa.array(spans.low - low))
            probe = probe.append_column(_LAST, pa.array(spans.high - spans.low - 1))
            build = build.append_column(_PLACE, pa.array(np.arange(high - low)))
            # A difference, because from two plain inequalities DuckDB makes a merge join that looks at the
            # condition last and is ten times slower.
            bound = f" AND {b}.{_PLACE} - {p}.{_LOW} BETWEEN 0 AND {p}.{_LAST}"
        self._engine.register("_ps_l", probe if left_probes else build)
        self._engine.register("_ps_r", build if left_probes else probe)
        found = self._engine.sql(
            f"SELECT l.{_ROW} AS a, r.{_ROW} AS b FROM _ps_l AS l, _ps_r AS r WHERE ({self._sql}){bound}"
        )
        for batch in found.to_arrow_reader(BLOCK):
            yield batch["a"].to_numpy(), batch["b"].to_numpy()


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


def _numbered(table: Any, rows: Rows) -> Any:
    index = pa.array(rows)
    taken = table.take(index) if table.num_columns else pa.table({})
    return pa.table([index, *taken.columns], names=[_ROW, *taken.column_names])


def _plain(table: Any) -> Any:
    """Times without a zone, in UTC, for which DuckDB needs no extension."""
    fields = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
