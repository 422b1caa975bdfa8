"""What every aggregation shares: keys and aggregates as an operator, and the results of agg()."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from penstock.aggregates.aggregate import (
    Aggregate,
    AggregateLike,
    ResolvedAggregate,
    resolve,
    stable_text,
)
from penstock.aggregates.sql_aggregate import taken_apart
from penstock.errors import WrongType
from penstock.expressions.scalar import column, scalar
from penstock.expressions.schema import Column, Schema
from penstock.functions import SqlSetting
from penstock.operators.names import Named, check_names
from penstock.operators.operator import D, Derivable, InputRelation, Inputs, Operator, R, lowered
from penstock.operators.steps import Select

__all__ = [
    "CHANGE",
    "WINDOW_BOUNDS",
    "WINDOW_END",
    "WINDOW_START",
    "AggregateOperator",
    "GroupOperator",
    "aggregated",
]

CHANGE: Final = "change"
WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
WINDOW_BOUNDS: Final = (WINDOW_START, WINDOW_END)


def aggregated(
    relation: Derivable[R, D],
    keys: Named,
    aggregates: Mapping[str, Aggregate | AggregateLike],
    make: Callable[[tuple[ResolvedAggregate, ...]], Operator],
    pinned: Sequence[str] = WINDOW_BOUNDS,
) -> D:
    """The relation with `pinned` columns, the keys, and these aggregates under their names.

    Aggregates in SQL are taken apart: the operator gives what can be merged, and a step behind it finishes.
    """
    taken = [*pinned, *(name for name, _ in keys)]
    check_names([*taken, *aggregates])
    parts, finishes = taken_apart(aggregates)
    check_names([*taken, *parts])
    found = tuple(resolve(name, each, relation.schema) for name, each in parts.items())
    results = relation.derive(make(found))
    if not finishes:
        return results
    schema = results.schema
    columns = tuple(
        (name, scalar(finishes[name], schema) if name in finishes else column(name, schema))
        for name in [*taken, *aggregates]
    )
    return cast("Derivable[InputRelation, D]", results).derive(Select(columns))


class AggregateOperator(Operator):
    """Aggregates over tuples of each key."""

    __slots__ = ()

    keys: Named
    aggregates: tuple[ResolvedAggregate, ...]

    def shown(self, window: str = "", *options: str) -> str:
        """The operator as a user would write it."""
        keys = f"group_by({', '.join(name for name, _ in self.keys)})." if self.keys else ""
        given = ", ".join([*(f"{each.name}={each}" for each in self.aggregates), *options])
        return f"{keys}{window}{'.' if window else ''}agg({given})"

    def meaning_of_keys(self) -> list[object]:
        """The names of the keys and what they are."""
        return [[name, each.sql] for name, each in self.keys]

    def meaning_of_aggregates(self) -> list[object]:
        """What gives each aggregate its meaning, as plain values for a fingerprint."""
        return [_meaning(each) for each in self.aggregates]

    def results(self, pinned: Mapping[str, str]) -> Schema:
        """The columns of results: pinned ones of these types, the keys, the aggregates."""
        first = tuple(Column(name, type_, nullable=False) for name, type_ in pinned.items())
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        values = tuple(
            Column(each.name, each.type, nullable=not each.definition.never_null) for each in self.aggregates
        )
        return Schema(first + keys + values)

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by. The bounds of windows are no keys: a group has tuples of many of them."""
        return tuple((name, each.sql) for name, each in self.keys)

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What keys and aggregates read."""
        given = [each for _, each in self.keys]
        given += [each for aggregate in self.aggregates for each in aggregate.arguments]
        return lowered(name for each in given for name in each.columns)

    def check_setting(self, inputs: Inputs, setting: SqlSetting) -> None:
        """Without ANSI mode a sum of decimals that overflows is null in Spark, and a merge would skip it."""
        for each in self.aggregates:
            decimal = each.type is not None and each.type.startswith("decimal(")
            if decimal and not setting.ansi and each.definition.name in {"sum", "avg"}:
                raise WrongType(
                    f"{each.definition.name} of decimals as {each.name!r} in a session without ANSI mode: "
                    "parts that overflow would be lost; set spark.sql.ansi.enabled to true, or cast to double"
                )

    @property
    def keeps_values(self) -> bool:
        """Whether an aggregate keeps values of tuples, so that what is kept of a key grows with them."""
        return any(each.definition.keeps_values for each in self.aggregates)


class GroupOperator(AggregateOperator):
    """Aggregates over groups of the rows of a key; the event time of a result is the end of its window.

    The start of such a window may be long past when it ends, so that nothing behind it could ever close if a
    result had that time.
    """

    __slots__ = ()

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the results: the bounds of the window, the keys, the aggregates."""
        return self.results(dict.fromkeys(WINDOW_BOUNDS, inputs[0].time_type))

    def event_time(self, inputs: Inputs) -> str:
        """The end of the window."""
        return WINDOW_END

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window."""
        return WINDOW_BOUNDS


def _meaning(aggregate: ResolvedAggregate) -> list[object]:
    definition = aggregate.definition
    return [
        aggregate.name,
        definition.name,
        [each.sql for each in aggregate.arguments],
        [[name, stable_text(value)] for name, value in definition.options],
        definition.meaning(),
    ]
