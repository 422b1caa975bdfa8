"""The steps for the results of a stage inside its channels: conditions, projections, functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expressions.duck import check, evaluate
from penstock.expressions.schema import TIME
from penstock.expressions.types import arrow_type, from_arrow
from penstock.functions import DEFAULT, SqlSetting, Types, duck_name
from penstock.operators import Step
from penstock.operators.poison import Refuse

__all__ = ["Piece", "Refusing", "Tail", "compile_tail"]


@dataclass(frozen=True)
class Selected:
    """A SELECT over `input` in DuckDB's SQL, the columns that come out, and what the user wrote.

    If it only passes columns on, `passed` names the one behind each of them, and nothing is evaluated.
    """

    sql: str
    schema: Any
    written: str = ""
    passed: tuple[str, ...] | None = None

    def apply(self, table: Any) -> Any:
        """The rows that it gives."""
        if self.passed is None:
            return evaluate(self.sql, table, self.written).cast(self.schema)
        arrays = [table[name] for name in self.passed]
        return pa.Table.from_arrays(arrays, names=self.schema.names).cast(self.schema)

    def __str__(self) -> str:
        return self.sql


Piece = Selected | Step
Refusing = Callable[[tuple[Piece, ...]], Refuse]


@dataclass(frozen=True)
class Tail:
    """Pieces in sequence, each a SELECT or a function, and the columns that come out."""

    pieces: tuple[Piece, ...]
    schema: Any

    def apply(self, table: Any, refusing: Refusing | None = None) -> Any:
        """The rows that remain, with the requested columns.

        `refusing` tells for the pieces up to a function who takes the rows that it refuses; without it, what
        a function raises is raised.
        """
        for place, piece in enumerate(self.pieces):
            if not table.num_rows:
                return self.schema.empty_table()
            if isinstance(piece, Selected):
                table = piece.apply(table)
            else:
                table = piece.call(table, None if refusing is None else refusing(self.pieces[: place + 1]))
        return table.cast(self.schema)


def compile_tail(steps: tuple[Step, ...], schema: Any, setting: SqlSetting = DEFAULT) -> Tail | None:
    """The tail of the given steps over results of the given schema; None if there is nothing to do.

    The event time is kept if the schema has it. Adjacent SQL steps become one SELECT.
    """
    if not steps:
        return None
    pieces: list[Piece] = []
    pending: list[Step] = []
    for step in steps:
        if step.calls:
            schema = _flush(pieces, pending, schema, setting)
            pieces.append(step)
            schema = step.called(schema)
        else:
            pending.append(step)
    schema = _flush(pieces, pending, schema, setting)
    return Tail(tuple(pieces), schema)


def _flush(pieces: list[Piece], pending: list[Step], schema: Any, setting: SqlSetting) -> Any:
    """Turn the pending steps into one SELECT, and return the schema after it."""
    if not pending:
        return schema
    carried = (TIME,) if TIME in schema.names else ()
    types: Types = {each.name: from_arrow(each.type) for each in schema}
    source = "input"
    for step in pending:
        source, types = step.in_channel(source, types, setting, *carried)
    made = [(name, arrow_type(kind)) for name, kind in types.items() if kind and name != TIME]
    columns = pa.schema([*made, *((name, pa.int64()) for name in carried)])
    sql = f"SELECT {', '.join(map(duck_name, columns.names))} FROM {source}"
    written = "; ".join(str(step) for step in pending)
    check(sql, schema, written)
    pieces.append(Selected(sql, columns, written, _passed(pending, schema.names, columns.names)))
    pending.clear()
    return columns


def _passed(steps: list[Step], given: list[str], made: list[str]) -> tuple[str, ...] | None:
    """The column behind each of those that come out, None if a step does more than to pass columns on."""
    behind = {name: name for name in given}
    for step in steps:
        renamed = step.renamed(list(behind))
        if renamed is None:
            return None
        carried = {TIME: TIME} if TIME in given else {}
        behind = {name: behind[each] for name, each in renamed.items()} | carried
    return tuple(behind[name] for name in made)
