"""The physical plan of a windowed query: prefix, pane-level query, window-level query, tail."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from penstock.compile.lowering import ROWS, Lowering, Result
from penstock.compile.partials import Column, Partial
from penstock.compile.tail import Tail, compile_tail
from penstock.panes import WindowShape
from penstock.query import Expression, Query
from penstock.query.types import arrow_type

__all__ = ["ROWS", "Combining", "Describe", "Result", "WindowPlan", "compile_query"]

Combining = Literal["map", "channel"]
"""Where partials are formed: on the map side by Spark SQL, or in the channel from raw rows."""

Describe = Callable[[list[str]], list[tuple[str, bool]]]
"""Type and nullability of Spark SQL expressions over the prefix, aggregates included."""

_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class WindowPlan:
    """Everything a channel has to know of a windowed query; the same object serves every epoch."""

    shape: WindowShape
    time: str
    keys: tuple[Column, ...]
    inputs: tuple[Column, ...]
    partials: tuple[Partial, ...]
    results: tuple[Result, ...]
    tail: Tail | None

    @property
    def pane(self) -> str:
        """The number of a tuple's pane, in exact integer arithmetic also before 1970."""
        moved = f"({self.time} - {self.shape.offset}L)"
        return f"({moved} - pmod({moved}, {self.shape.pane}L)) div {self.shape.pane}L"

    @property
    def combinings(self) -> tuple[Combining, ...]:
        """Where partials may be formed, the better guess first."""
        liftable = all(partial.lift is not None for partial in self.partials)
        if not liftable:
            return ("map",)
        user_code = any(partial.wire != partial.columns for partial in self.partials)
        # Collecting lists only to take them apart again is never better than shipping the rows.
        return ("channel",) if user_code else ("map", "channel")

    @property
    def closed_schema(self) -> Any:
        """Columns of a closed window before the tail."""
        fields = [("window_start", _UTC), ("window_end", _UTC)]
        fields += [(key.name, key.type) for key in self.keys]
        return pa.schema(fields + [(result.name, result.type) for result in self.results])

    @property
    def schema(self) -> Any:
        """Columns of a delivered result."""
        return self.tail.schema if self.tail else self.closed_schema


def compile_query(query: Query, describe: Describe | None = None) -> WindowPlan:
    """The plan of a query.

    Without `describe`, what the query itself could infer is used, which is enough to explain it.
    """
    if describe:
        query = _typed(query, describe)
    time = _microseconds(query)
    lowering = Lowering(time, (lambda sql: [type_ for type_, _ in describe(sql)]) if describe else None)
    results = tuple(lowering.lower(each) for each in query.aggregates)
    plan = WindowPlan(
        shape=WindowShape(query.window.size, query.window.slide, query.window.offset),
        time=time,
        keys=tuple(
            Column(name, key.sql, pa.null() if key.type is None else arrow_type(key.type))
            for name, key in query.keys
        ),
        inputs=tuple(lowering.inputs.values()),
        partials=tuple(lowering.partials.values()),
        results=results,
        tail=None,
    )
    return replace(plan, tail=compile_tail(query.tail, plan.closed_schema)) if describe else plan


def _typed(query: Query, describe: Describe) -> Query:
    """The query with the types that Spark gives its keys and arguments."""
    texts = [key.sql for _, key in query.keys]
    texts += [each.sql for aggregate in query.aggregates for each in aggregate.arguments]
    known = dict(zip(texts, describe(texts), strict=True))

    def settle(each: Expression) -> Expression:
        type_, nullable = known[each.sql]
        return replace(each, type=type_, nullable=each.nullable and nullable)

    keys = tuple((name, settle(key)) for name, key in query.keys)
    aggregates = tuple(
        replace(each, arguments=tuple(settle(value) for value in each.arguments)) for each in query.aggregates
    )
    return replace(query, keys=keys, aggregates=aggregates)


def _microseconds(query: Query) -> str:
    """The event time as microseconds since 1970; a time without zone is taken as UTC."""
    column = query.relation.stream.schema.column(query.window.time_column)
    name = f"`{column.name}`"
    if column.type == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {name})"
    return f"unix_micros({name})"
