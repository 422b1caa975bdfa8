"""DuckDB's word on a condition, for pairs that are formed and for all pairs of two sets of rows."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.joins.engine import cursor
from penstock.joins.spans import BLOCK, Rows, Spans

__all__ = ["Decider"]

_ROW, _LOW, _LAST, _PLACE = "_ps_row", "_ps_low", "_ps_last", "_ps_place"


class Decider:
    """A condition in DuckDB's SQL over the columns of both sides that it reads."""

    def __init__(self, sql: str, left: Any, right: Any) -> None:
        """Nothing is handed to DuckDB before it is asked."""
        self._sql, self._left, self._right = sql, left, right

    def close(self) -> None:
        """Let go of the rows."""
        if "_engine" in self.__dict__:
            self._engine.close()

    @cached_property
    def _engine(self) -> Any:
        return cursor()

    def true_of(self, left: Rows, right: Rows) -> Rows:
        """The places of the pairs of these rows for which the condition is true."""
        columns = {_ROW: pa.array(np.arange(len(left)))}
        for name, table, rows in (("l", self._left, left), ("r", self._right, right)):
            if table.num_columns:
                # A struct named l makes l.x a column of the left row.
                columns[name] = table.take(pa.array(rows)).to_struct_array()
        self._engine.register("_ps_pairs", pa.table(columns))
        found = self._engine.sql(f"SELECT {_ROW} FROM _ps_pairs WHERE {self._sql}").to_arrow_table()
        places: Rows = found[_ROW].to_numpy()
        return places

    def among(self, spans: Spans, *, left_probes: bool) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (left rows, right rows) within the spans that match, in a nested loop or by a merge."""
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


def _numbered(table: Any, rows: Rows) -> Any:
    index = pa.array(rows)
    taken = table.take(index) if table.num_columns else pa.table({})
    return pa.table([index, *taken.columns], names=[_ROW, *taken.column_names])
