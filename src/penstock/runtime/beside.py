"""Rows for windows that run in the channels of the stage before them: no file, no exchange between the two.

Where two neighbours are partitioned alike, what the first gives in a channel is all that the second needs
there (002, section III.F).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.compile import TIME, WindowPlan
from penstock.compile.duck import check, evaluate, translate
from penstock.runtime.keyed import KEY
from penstock.runtime.segments import PANE

__all__ = ["RawRows", "raw_rows"]


@dataclass(frozen=True)
class RawRows:
    """A SELECT over the rows that are there, the columns that it gives, and the panes it puts them in."""

    sql: str
    schema: Any
    plan: WindowPlan

    def of(self, table: Any) -> Any:
        """Keys, panes and inputs of partials, as an exchange would have brought them."""
        found = evaluate(self.sql, table).cast(self.schema)
        pane = np.floor_divide(found[TIME].to_numpy() - self.plan.shape.offset, self.plan.shape.pane)
        return found.append_column(PANE, pa.array(pane))


def raw_rows(plan: WindowPlan, schema: Any) -> RawRows:
    """How rows of a schema become raw rows of a plan."""
    keys = [(KEY.format(place), key.sql, key.type) for place, key in enumerate(plan.keys)]
    inputs = [(each.name, each.sql, each.type) for each in plan.inputs if each.name != TIME]
    wanted = [*keys, *inputs]
    columns = [f'{translate(sql)} AS "{name}"' for name, sql, _ in wanted]
    sql = f"SELECT {', '.join([*columns, TIME])} FROM input"
    check(sql, schema, "; ".join(text for _, text, _ in wanted))
    return RawRows(sql, pa.schema([*((name, type_) for name, _, type_ in wanted), (TIME, pa.int64())]), plan)
