"""What keys and aggregates make of a kernel: the columns that it takes, keeps and gives.

Windows over panes, sessions, windows of counts and totals share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.aggregates.partials import ROWS, Finish, PaneColumns, Partial
from penstock.expressions.scalar import Expression
from penstock.expressions.types import arrow_type
from penstock.operators.exchange import TIME, Combine, Form, SqlColumn
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, check_key

__all__ = ["WindowResult", "aggregate_columns", "combine_of", "panes_of", "received"]


@dataclass(frozen=True)
class WindowResult:
    """One aggregate of the result."""

    name: str
    finish: Finish
    type: Any


def combine_of(
    forms: Sequence[Form], partials: Sequence[Partial], *, rowwise: bool = False
) -> Combine | None:
    """How partials are formed on the way to channels, if they are."""
    if "combined" not in forms:
        return None
    if "rows" in forms:
        return Combine(ROWS)
    sql = (pair for each in partials for pair in zip(each.wire, each.combine, strict=True))
    return Combine(ROWS, tuple(sql), rowwise)


def received(partials: Sequence[Partial], rows: Any, schema: Any) -> Any:
    """What Spark combined, as partials: lists of rows that it collected are accumulated."""
    for each in partials:
        if each.wire != each.columns:
            made = each.received(rows)
            rows = rows.drop_columns(list(each.wire))
            for name, column in zip(each.columns, made, strict=True):
                rows = rows.append_column(name, column)
    # Spark names the members of a list, and says that none is null, other than segments do.
    return rows.select(schema.names).cast(schema)


def panes_of(describe: Describe | None) -> PaneColumns:
    """The partials of an aggregation, none yet but the number of tuples."""
    return PaneColumns(f"`{TIME}`", None if describe is None else _types_by(describe))


def aggregate_columns(
    keys: Named, aggregates: Sequence[ResolvedAggregate], panes: PaneColumns, describe: Describe | None
) -> dict[str, Any]:
    """What keys and aggregates make of a kernel: the columns that it takes, keeps and gives."""
    if describe is not None:
        keys, aggregates = _typed(keys, aggregates, describe)
    results = tuple(_result(each, panes) for each in aggregates)
    return {
        "keys": tuple(
            SqlColumn(name, key.sql, pa.null() if key.type is None else arrow_type(key.type))
            for name, key in keys
        ),
        "inputs": tuple(panes.inputs.values()),
        "partial_columns": tuple(panes.partials.values()),
        "results": results,
    }


def _result(aggregate: ResolvedAggregate, panes: PaneColumns) -> WindowResult:
    return WindowResult(aggregate.name, *aggregate.definition.lower(aggregate.arguments, panes))


def _types_by(describe: Describe) -> Any:
    return lambda texts: [type_ for type_, _ in describe(texts)]


def _typed(
    keys: Named, aggregates: Sequence[ResolvedAggregate], describe: Describe
) -> tuple[Named, Sequence[ResolvedAggregate]]:
    """Keys and aggregates with the types that Spark gives them and their arguments."""
    texts = [key.sql for _, key in keys]
    texts += [each.sql for aggregate in aggregates for each in aggregate.arguments]
    known = dict(zip(texts, describe(texts), strict=True))

    def settle(each: Expression) -> Expression:
        type_, nullable = known[each.sql]
        return replace(each, type=type_, nullable=each.nullable and nullable)

    settled = tuple(
        replace(each, arguments=tuple(settle(value) for value in each.arguments)) for each in aggregates
    )
    for each in settled:
        # What the query could not infer is checked before a worker meets it.
        each.definition.check(each.arguments, [value.sql for value in each.arguments])
    for name, key in keys:
        check_key(name, known[key.sql][0])
    return tuple((name, settle(key)) for name, key in keys), settled
