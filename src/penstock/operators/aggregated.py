"""The results of agg() after a window whose bounds follow from its rows: checked, resolved and finished."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate, resolve
from penstock.aggregates.sql_aggregate import taken_apart
from penstock.expressions.scalar import column, scalar
from penstock.expressions.schema import Column, Schema
from penstock.functions import SqlSetting
from penstock.operators.names import Named, check_names
from penstock.operators.operator import D, Derivable, InputRelation, Inputs, Operator, R, lowered
from penstock.operators.steps import Select
from penstock.operators.windows.node import (
    WINDOW_END,
    WINDOW_START,
    check_decimals,
    meaning_of,
    result_column,
)

__all__ = ["GroupOperator", "aggregated"]


def aggregated(
    relation: Derivable[R, D],
    keys: Named,
    aggregates: Mapping[str, Aggregate | AggregateLike],
    make: Callable[[tuple[ResolvedAggregate, ...]], Operator],
) -> D:
    """The relation with the bounds of windows, the keys, and these aggregates under their names."""
    check_names(_names(keys, aggregates))
    parts, finishes = taken_apart(aggregates)
    check_names(_names(keys, parts))
    found = tuple(resolve(name, each, relation.schema) for name, each in parts.items())
    results = relation.derive(make(found))
    if not finishes:
        return results
    schema = results.schema
    columns = tuple(
        (name, scalar(finishes[name], schema) if name in finishes else column(name, schema))
        for name in _names(keys, aggregates)
    )
    return cast("Derivable[InputRelation, D]", results).derive(Select(columns))


def _names(keys: Named, aggregates: Iterable[str]) -> list[str]:
    return [WINDOW_START, WINDOW_END, *(name for name, _ in keys), *aggregates]


class GroupOperator(Operator):
    """Aggregates over groups of the rows of a key; the event time of a result is the end of its window.

    The start of such a window may be long past when it ends, so that nothing behind it could ever close if a
    result had that time.
    """

    __slots__ = ()

    keys: Named
    aggregates: tuple[ResolvedAggregate, ...]

    def shown(self, window: str) -> str:
        """The operator as a user would write it."""
        keys = f"group_by({', '.join(name for name, _ in self.keys)})." if self.keys else ""
        aggregates = ", ".join(f"{each.name}={each}" for each in self.aggregates)
        return f"{keys}{window}.agg({aggregates})"

    def meaning_of_groups(self) -> list[object]:
        """Keys and aggregates."""
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        return [keys, [meaning_of(each) for each in self.aggregates]]

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the results: the bounds of the window, the keys, the aggregates."""
        time_type = inputs[0].time_type
        bounds = tuple(Column(name, time_type, nullable=False) for name in (WINDOW_START, WINDOW_END))
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema((*bounds, *keys, *(result_column(each) for each in self.aggregates)))

    def event_time(self, inputs: Inputs) -> str:
        """The end of the window."""
        return WINDOW_END

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window."""
        return (WINDOW_START, WINDOW_END)

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by."""
        return tuple((name, each.sql) for name, each in self.keys)

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What keys and aggregates read."""
        given = [each for _, each in self.keys]
        given += [each for aggregate in self.aggregates for each in aggregate.arguments]
        return lowered(name for each in given for name in each.columns)

    def check_setting(self, inputs: Inputs, setting: SqlSetting) -> None:
        """Without ANSI mode a sum of decimals that overflows is null in Spark, and a merge would skip it."""
        check_decimals(self.aggregates, setting)
