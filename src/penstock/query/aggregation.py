"""Windowed aggregation: keys, a window, and the aggregates of each of its groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import BadAggregate
from penstock.expressions.schema import Column, Schema
from penstock.query.aggregate_call import Aggregate
from penstock.query.resolved import ResolvedAggregate, resolve
from penstock.query.steps import Named, check_names
from penstock.query.user_aggregates import ArrowAggregate
from penstock.query.window import Window

if TYPE_CHECKING:
    from penstock.query.relation import Relation

__all__ = ["WINDOW_END", "WINDOW_START", "Aggregation", "aggregation_of"]

WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregates over the tuples of each key in each window."""

    keys: Named
    window: Window
    aggregates: tuple[ResolvedAggregate, ...]

    def schema(self, time_type: str) -> Schema:
        """The columns of the results: the bounds of the window, the keys, the aggregates."""
        bounds = tuple(Column(name, time_type, nullable=False) for name in (WINDOW_START, WINDOW_END))
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema(bounds + keys + tuple(_result_column(each) for each in self.aggregates))

    def __str__(self) -> str:
        keys = f"group_by({', '.join(name for name, _ in self.keys)})." if self.keys else ""
        aggregates = ", ".join(f"{each.name}={each}" for each in self.aggregates)
        return f"{keys}window({self.window}).agg({aggregates})"


def aggregation_of(
    relation: "Relation", keys: Named, window: Window, aggregates: Mapping[str, Aggregate | ArrowAggregate]
) -> Aggregation:
    """The aggregation with these aggregates, all names and types checked."""
    if not aggregates:
        raise BadAggregate("agg() needs at least one aggregate, such as reports=ps.count()")
    check_names([WINDOW_START, WINDOW_END, *(name for name, _ in keys), *aggregates])
    found = tuple(resolve(name, each, relation.schema) for name, each in aggregates.items())
    return Aggregation(keys, window, found)


def _result_column(aggregate: ResolvedAggregate) -> Column:
    counts = aggregate.function in {"count", "count_distinct"}
    return Column(aggregate.name, aggregate.type, nullable=not counts)
