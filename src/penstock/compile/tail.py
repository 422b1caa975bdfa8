"""What happens to a result after its aggregates are known: HAVING and projections."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.compile.duck import check, evaluate, translate
from penstock.query import Select, Where

__all__ = ["Tail", "compile_tail"]


@dataclass(frozen=True)
class Tail:
    """A SELECT over result rows."""

    sql: str
    schema: Any

    def apply(self, table: Any) -> Any:
        """The rows that remain, in the columns that are asked for."""
        return evaluate(self.sql, table).cast(self.schema)


def compile_tail(steps: tuple[Where | Select, ...], schema: Any) -> Tail | None:
    """The tail of the given steps over results of the given schema; None when there is nothing to do."""
    if not steps:
        return None
    sql = "input"
    for step in steps:
        if isinstance(step, Where):
            sql = f"(SELECT * FROM {sql} WHERE {translate(step.expression.sql)})"
        else:
            columns = ", ".join(f'{translate(each.sql)} AS "{name}"' for name, each in step.columns)
            sql = f"(SELECT {columns} FROM {sql})"
    written = "; ".join(str(step) for step in steps)
    return Tail(f"SELECT * FROM {sql}", _plain(check(f"SELECT * FROM {sql}", schema, written)))


def _plain(schema: Any) -> Any:
    """Types as the rest of Penstock spells them."""
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema([(each.name, plain.get(each.type, each.type)) for each in schema])
