"""Aggregate calls in the query language, turned into the aggregates that the constructors make."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from penstock.aggregates.aggregate import DEFINITIONS, Aggregate
from penstock.aggregates.arrow_aggregate import ArrowAggregate
from penstock.aggregates.sql_aggregate import SqlAggregate
from penstock.errors import BadAggregate, BadExpression, BadName
from penstock.expressions.functions import is_aggregate_name
from penstock.expressions.parsing import Tree, call_name, render

__all__ = ["UserAggregate", "aggregate_of", "check_definitions", "is_aggregate"]

UserAggregate = SqlAggregate | type[ArrowAggregate]
_MODIFIERS: Final = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Window)


def check_definitions(definitions: Mapping[str, object]) -> None:
    """Raise for a definition that is none, or that takes the name of a known aggregate."""
    for name, each in definitions.items():
        if is_aggregate_name(name.lower()):
            raise BadName(f"{name}() is an aggregate already; define yours under another name")
        if not isinstance(each, SqlAggregate) and not _is_arrow_aggregate(each):
            raise BadAggregate(
                f"{name}={each!r} defines no aggregate and is no relation; give a sql_aggregate(), an "
                "ArrowAggregate class or a relation"
            )


def is_aggregate(node: Tree, definitions: Mapping[str, UserAggregate]) -> bool:
    """Whether the node is the call of an aggregate, Spark's, Penstock's or a user's."""
    name = call_name(node)
    return is_aggregate_name(name) or name in definitions


def aggregate_of(call: Tree, definitions: Mapping[str, UserAggregate]) -> Aggregate | ArrowAggregate:
    """The aggregate that a call stands for."""
    if isinstance(call.parent, _MODIFIERS):
        raise BadExpression(
            f"{render(call.parent)}: FILTER, OVER and the treatment of nulls are not supported; nulls are "
            "always skipped, and a CASE inside the aggregate chooses the tuples"
        )
    name = call_name(call) or ""
    # The parser reads ANY as the quantifier of a comparison.
    arguments = [call.this.unnest()] if isinstance(call, exp.Any) else call.expressions
    if name in definitions:
        return definitions[name](*map(render, arguments))
    known = {sql_name: each for each in DEFINITIONS.values() for sql_name in each.sql_names}
    if name in known:
        return known[name].of_sql(name, arguments)
    names = ", ".join(sorted({*known, *definitions}))
    raise BadAggregate(f"{name}() is not supported; the aggregates are {names}")


def _is_arrow_aggregate(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ArrowAggregate)
