"""A whole query: a relation, its keys, a window, aggregates, and what is done with their results."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import BadAggregate, BadName
from penstock.query.aggregate_call import Aggregate
from penstock.query.engine import installed
from penstock.query.expressions import Expression, column, predicate
from penstock.query.fingerprint import digest
from penstock.query.resolved import ResolvedAggregate, resolve
from penstock.query.schema import Column, Schema
from penstock.query.steps import Select, Step, Where, check_names, named_expressions, schema_of_columns
from penstock.query.user_aggregates import ArrowAggregate
from penstock.query.window import Window

if TYPE_CHECKING:
    from penstock.query.stream import Relation

__all__ = ["WINDOW_END", "WINDOW_START", "Query", "query_of"]

WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
_BOUNDS: Final = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True)
class Query:
    """A continuous query, ready to start; immutable, each method gives a new one."""

    relation: "Relation"
    keys: tuple[tuple[str, Expression], ...]
    window: Window
    aggregates: tuple[ResolvedAggregate, ...]
    tail: tuple[Step, ...] = ()

    @property
    def schema(self) -> Schema:
        """The columns of the results; a type of None is settled by Spark."""
        for step in reversed(self.tail):
            if isinstance(step, Select):
                return schema_of_columns(step.columns)
        return self.window_schema

    @property
    def window_schema(self) -> Schema:
        """The columns that the windows give, before the tail."""
        kind = self.relation.stream.schema.column(self.window.time_column).type
        bounds = tuple(Column(name, kind, nullable=False) for name in _BOUNDS)
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema(bounds + keys + tuple(_result_column(each) for each in self.aggregates))

    def where(self, condition: str) -> "Query":
        """Keep the results for which the condition is true."""
        return replace(self, tail=(*self.tail, Where(predicate(condition, self.schema))))

    def select(self, *names: str, **expressions: str) -> "Query":
        """Give these columns and expressions, after window_start and window_end, which always come first."""
        for name in expressions:
            if name.lower() in _BOUNDS:
                raise BadName(f"{name!r} is a column of every result; choose another name")
        chosen = [name for name in names if name.lower() not in _BOUNDS]
        bounds = tuple((name, column(name, self.schema)) for name in _BOUNDS)
        columns = bounds + named_expressions(chosen, expressions, self.schema)
        return replace(self, tail=(*self.tail, Select(columns)))

    def start(  # noqa: PLR0913 -- each is one documented option
        self,
        sink: Any,
        checkpoint: Any = None,
        *,
        late: Any = None,
        rejects: Any = None,
        channels: Any = None,
        session: Any = None,
        name: str | None = None,
    ) -> Any:
        """Run the query into a sink and give the handle of the run."""
        return installed().start(
            self,
            sink=sink,
            checkpoint=checkpoint,
            late=late,
            rejects=rejects,
            channels=channels,
            session=session,
            name=name,
        )

    def explain(self) -> str:
        """The plan in words: subqueries, the tools chosen and why."""
        return installed().explain(self)

    def fingerprint(self) -> str:
        """A digest of all that gives the state its meaning.

        The source, the delay, the sink and the tail can change between two runs over one
        checkpoint; the schema, the steps, the keys, the window and the aggregates cannot.
        """
        return digest(self)

    def __repr__(self) -> str:
        keys = f".group_by({', '.join(name for name, _ in self.keys)})" if self.keys else ""
        aggregates = ", ".join(f"{each.name}={each}" for each in self.aggregates)
        tail = "".join(f".{step}" for step in self.tail)
        return f"{self.relation!r}{keys}.window({self.window}).agg({aggregates}){tail}"


def query_of(
    relation: "Relation",
    keys: tuple[tuple[str, Expression], ...],
    window: Window,
    aggregates: Mapping[str, Aggregate | ArrowAggregate],
) -> Query:
    """The query with these aggregates, all names and types checked."""
    if not aggregates:
        raise BadAggregate("agg() needs at least one aggregate, such as reports=ps.count()")
    check_names([*_BOUNDS, *(name for name, _ in keys), *aggregates])
    found = tuple(resolve(name, each, relation.schema) for name, each in aggregates.items())
    return Query(relation, keys, window, found)


def _result_column(aggregate: ResolvedAggregate) -> Column:
    counts = aggregate.function in {"count", "count_distinct"}
    return Column(aggregate.name, aggregate.type, nullable=not counts)
