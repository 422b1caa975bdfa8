"""Pairs that match: candidate pairs as they are, or those for which a condition is true.

Where the candidates are most of a block of rows by rows, DuckDB compares all of the block in a nested loop
or, if the condition is an inequality, by a merge, without forming a pair that fails. Where they are few
they are formed first and filtered.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from penstock.joins.join import Condition
from penstock.joins.spans import BLOCK, Rows, Spans

__all__ = ["Matcher"]

_ROW, _LOW, _COUNT, _PLACE = "_ps_row", "_ps_low", "_ps_count", "_ps_place"
# Probing rows of one block: a vector of DuckDB.
_PROBES = 2048
# To form a pair and then filter it costs about as much as to compare this many in the nested loop.
_FORMING = 6


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
        # To start one takes 15 ms, which an epoch without candidates need not pay.
        return duckdb.connect(config={"threads": 1})

    def pairs(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) that match."""
        for first in range(0, len(spans.probe), _PROBES):
            part = spans.part(first, first + _PROBES)
            reach = int(part.high.max() - part.low.min())
            if part.pairs * _FORMING < len(part.probe) * reach:
                yield from self._filtered(part, left_probes=left_probes)
            else:
                yield from self._compared(part, left_probes=left_probes)

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
        probe = _numbered(probing, spans.probe)
        build = _numbered(building, spans.order[low:high])
        bound = ""
        if (spans.low > low).any() or (spans.high < high).any():
            probe = probe.append_column(_LOW, pa.array(spans.low))
            probe = probe.append_column(_COUNT, pa.array(spans.high - spans.low))
            build = build.append_column(_PLACE, pa.array(np.arange(low, high)))
            p, b = ("l", "r") if left_probes else ("r", "l")
            # A difference, because two plain inequalities make DuckDB sort by them and look at the condition
            # last, ten times slower.
            bound = f" AND {b}.{_PLACE} - {p}.{_LOW} BETWEEN 0 AND {p}.{_COUNT} - 1"
        left, right = (probe, build) if left_probes else (build, probe)
        self._engine.register("_ps_left", left)
        self._engine.register("_ps_right", right)
        found = self._engine.sql(
            f"SELECT l.{_ROW} AS a, r.{_ROW} AS b FROM _ps_left l, _ps_right r WHERE ({self._sql}){bound}"
        )
        for batch in found.to_arrow_reader(BLOCK):
            yield batch["a"].to_numpy(), batch["b"].to_numpy()


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
