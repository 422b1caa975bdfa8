"""The steps for the results of a stage inside its channels: conditions, projections, functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expressions.duck import check, evaluate
from penstock.expressions.schema import TIME
from penstock.expressions.types import arrow_type, from_arrow
from penstock.functions import DEFAULT, SqlSetting, Types
from penstock.operators import Step
from penstock.operators.poison import Refuse

__all__ = ["Refusing", "Tail", "compile_tail"]

Refusing = Callable[[tuple["str | Step", ...]], Refuse]


@dataclass(frozen=True)
class Tail:
    """Pieces in sequence, each a SELECT or a function, and the columns that come out."""

    pieces: tuple[str | Step, ...]
    schema: Any

    def apply(self, table: Any, refusing: Refusing | None = None) -> Any:
        """The rows that remain, with the requested columns.

        `refusing` tells for the pieces up to a function who takes the rows that it refuses; without it, what
        a function raises is raised.
        """
        for place, piece in enumerate(self.pieces):
            if not table.num_rows:
                return self.schema.empty_table()
            if isinstance(piece, str):
                table = evaluate(piece, table)
            else:
                table = piece.call(table, None if refusing is None else refusing(self.pieces[: place + 1]))
        return table.cast(self.schema)


def compile_tail(steps: tuple[Step, ...], schema: Any, setting: SqlSetting = DEFAULT) -> Tail | None:
    """The tail of the given steps over results of the given schema; None if there is nothing to do.

    The event time is kept if the schema has it. Adjacent SQL steps become one SELECT.
    """
    if not steps:
        return None
    pieces: list[str | Step] = []
    pending: list[Step] = []
    for step in steps:
        if step.calls:
            schema = _flush(pieces, pending, schema, setting)
            pieces.append(step)
            schema = step.call(schema.empty_table()).schema
        else:
            pending.append(step)
    schema = _flush(pieces, pending, schema, setting)
    return Tail(tuple(pieces), schema)


def _flush(pieces: list[str | Step], pending: list[Step], schema: Any, setting: SqlSetting) -> Any:
    """Turn the pending steps into one SELECT, and return the schema after it."""
    if not pending:
        return schema
    carried = (TIME,) if TIME in schema.names else ()
    types: Types = {each.name: from_arrow(each.type) for each in schema}
    source = "input"
    for step in pending:
        source, types = step.in_channel(source, types, setting, *carried)
    sql = f"SELECT * FROM {source}"
    pieces.append(sql)
    check(sql, schema, "; ".join(str(step) for step in pending))
    pending.clear()
    return pa.schema(
        [
            *((name, arrow_type(kind)) for name, kind in types.items() if kind and name != TIME),
            *((name, pa.int64()) for name in carried),
        ]
    )
