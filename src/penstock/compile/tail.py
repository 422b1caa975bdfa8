"""What happens to the results of a stage inside its channels: conditions, projections, maps."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.compile.duck import check, evaluate, translate
from penstock.compile.lifts import TIME
from penstock.compile.mapped import mapped
from penstock.query import Branch, Map, Select, Step, Where

__all__ = ["Tail", "compile_tail"]


@dataclass(frozen=True)
class Tail:
    """Pieces one after another, each a SELECT over result rows or a map, and the columns that come out."""

    pieces: tuple[str | Map, ...]
    schema: Any

    def apply(self, table: Any) -> Any:
        """The rows that remain, in the columns that are asked for."""
        for piece in self.pieces:
            if not table.num_rows:
                return self.schema.empty_table()
            table = mapped(piece, table) if isinstance(piece, Map) else evaluate(piece, table)
        return table.cast(self.schema)


def compile_tail(steps: tuple[Step, ...], schema: Any) -> Tail | None:
    """The tail of the given steps over results of the given schema; None when there is nothing to do.

    The event time is carried on where the schema has it.
    """
    if not steps:
        return None
    pieces: list[str | Map] = []
    pending: list[Step] = []
    for step in steps:
        if isinstance(step, Map):
            schema = _flush(pieces, pending, schema)
            pieces.append(step)
            schema = mapped(step, schema.empty_table()).schema
        else:
            pending.append(step)
    schema = _flush(pieces, pending, schema)
    return Tail(tuple(pieces), schema)


def _flush(pieces: list[str | Map], pending: list[Step], schema: Any) -> Any:
    """Take the steps that wait as one SELECT; the schema after it."""
    if not pending:
        return schema
    sql = "input"
    for step in pending:
        sql = f"({_select(step, sql, timed=TIME in schema.names)})"
    written = "; ".join(str(step) for step in pending)
    pieces.append(f"SELECT * FROM {sql}")
    pending.clear()
    return _plain(check(pieces[-1], schema, written))  # type: ignore[arg-type]


def _select(step: Step, source: str, *, timed: bool) -> str:
    if isinstance(step, Where):
        return f"SELECT * FROM {source} WHERE {translate(step.expression.sql)}"
    if isinstance(step, Branch):
        return f"SELECT * FROM {source} WHERE {translate(step.sql)}"
    assert isinstance(step, Select)
    columns = [f'{translate(each.sql)} AS "{name}"' for name, each in step.columns]
    return f"SELECT {', '.join([*columns, TIME] if timed else columns)} FROM {source}"


def _plain(schema: Any) -> Any:
    """Types as the rest of Penstock spells them."""
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema([(each.name, plain.get(each.type, each.type)) for each in schema])
