"""The steps for the results of a stage inside its channels: conditions, projections, functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expressions.duck import check, evaluate, translate
from penstock.expressions.schema import TIME
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


def compile_tail(steps: tuple[Step, ...], schema: Any) -> Tail | None:
    """The tail of the given steps over results of the given schema; None if there is nothing to do.

    The event time is kept if the schema has it. Adjacent SQL steps become one SELECT.
    """
    if not steps:
        return None
    pieces: list[str | Step] = []
    pending: list[Step] = []
    for step in steps:
        if step.calls:
            schema = _flush(pieces, pending, schema)
            pieces.append(step)
            schema = step.call(schema.empty_table()).schema
        else:
            pending.append(step)
    schema = _flush(pieces, pending, schema)
    return Tail(tuple(pieces), schema)


def _flush(pieces: list[str | Step], pending: list[Step], schema: Any) -> Any:
    """Turn the pending steps into one SELECT, and return the schema after it."""
    if not pending:
        return schema
    carried = (TIME,) if TIME in schema.names else ()
    source = "input"
    for step in pending:
        source = step.select(source, *carried)
    written = "; ".join(str(step) for step in pending)
    sql = translate(f"SELECT * FROM {source}")
    pieces.append(sql)
    pending.clear()
    return _plain(check(sql, schema, written))


def _plain(schema: Any) -> Any:
    """The types in Penstock's spelling."""
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema([(each.name, plain.get(each.type, each.type)) for each in schema])
