"""The plan of a windowed aggregation: its pane-level query and its window-level query (004, section 2.4)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from penstock.compile.lifts import TIME, Accumulated
from penstock.compile.lowering import ROWS, Lowering, Result
from penstock.compile.partials import Column, Partial
from penstock.expressions.types import arrow_type
from penstock.panes import WindowShape
from penstock.query import Aggregation, Derived, Expression

__all__ = ["ROWS", "Combining", "Describe", "Result", "WindowPlan", "compile_aggregation"]

Combining = Literal["map", "channel"]
"""Where partials are formed: on the map side by Spark SQL, or in the channel from raw rows."""

Describe = Callable[[list[str]], list[tuple[str, bool]]]
"""Type and nullability of Spark SQL expressions over the tuples that are aggregated, aggregates included."""

_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class WindowPlan:
    """Everything a channel has to know of an aggregation; the same object serves every epoch.

    `time` is the event time as SQL: in every frame a column of whole microseconds since 1970. `bound` is
    the type of window_start and window_end.
    """

    shape: WindowShape
    time: str
    keys: tuple[Column, ...]
    inputs: tuple[Column, ...]
    partials: tuple[Partial, ...]
    results: tuple[Result, ...]
    bound: Any = _UTC

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
    def splits(self) -> bool:
        """Whether rows of one key may be formed in several channels: by user code, all of which allows it."""
        own = [each.lift.aggregate for each in self.partials if isinstance(each.lift, Accumulated)]
        return self.combinings == ("channel",) and bool(own) and all(each.split for each in own)

    @property
    def schema(self) -> Any:
        """Columns of a closed window."""
        fields = [("window_start", self.bound), ("window_end", self.bound)]
        fields += [(key.name, key.type) for key in self.keys]
        return pa.schema(fields + [(result.name, result.type) for result in self.results])


def compile_aggregation(relation: Derived, describe: Describe | None = None) -> WindowPlan:
    """The plan of a relation that is made by an aggregation.

    Without `describe`, what the query itself could infer is used, which is enough to explain it.
    """
    operator = relation.operator
    assert isinstance(operator, Aggregation), operator
    if describe:
        operator = _typed(operator, describe)
    time = f"`{TIME}`"
    lowering = Lowering(time, (lambda sql: [type_ for type_, _ in describe(sql)]) if describe else None)
    results = tuple(lowering.lower(each) for each in operator.aggregates)
    window = operator.window
    return WindowPlan(
        shape=WindowShape(window.size, window.slide, window.offset),
        time=time,
        keys=tuple(
            Column(name, key.sql, pa.null() if key.type is None else arrow_type(key.type))
            for name, key in operator.keys
        ),
        inputs=tuple(lowering.inputs.values()),
        partials=tuple(lowering.partials.values()),
        results=results,
        bound=arrow_type(relation.time_type),
    )


def _typed(operator: Aggregation, describe: Describe) -> Aggregation:
    """The aggregation with the types that Spark gives its keys and arguments."""
    texts = [key.sql for _, key in operator.keys]
    texts += [each.sql for aggregate in operator.aggregates for each in aggregate.arguments]
    known = dict(zip(texts, describe(texts), strict=True))

    def settle(each: Expression) -> Expression:
        type_, nullable = known[each.sql]
        return replace(each, type=type_, nullable=each.nullable and nullable)

    keys = tuple((name, settle(key)) for name, key in operator.keys)
    aggregates = tuple(
        replace(each, arguments=tuple(settle(value) for value in each.arguments))
        for each in operator.aggregates
    )
    return replace(operator, keys=keys, aggregates=aggregates)
