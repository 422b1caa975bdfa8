"""Aggregate calls in the query language, turned into the aggregates that the constructors make."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from penstock.aggregates.aggregate import DEFINITIONS, Aggregate
from penstock.aggregates.arrow_aggregate import ArrowAggregate
from penstock.aggregates.modifiers import modified
from penstock.aggregates.sql_aggregate import SqlAggregate
from penstock.errors import BadAggregate, BadExpression, BadName
from penstock.expressions.functions import is_aggregate_name
from penstock.expressions.parsing import Tree, call_name, render

__all__ = ["UserAggregate", "aggregate_of", "check_definitions", "is_aggregate"]

UserAggregate = SqlAggregate | type[ArrowAggregate]
_MODIFIERS: Final = (exp.IgnoreNulls, exp.RespectNulls, exp.Window)
_ORDERED: Final = {"mode": "mode()", "percentile_cont": "percentile_cont(0.5)"}


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
    """Whether the node is the call of an aggregate, Spark's, Penstock's or a user's, with its FILTER."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return is_aggregate(node.this, definitions)
    name = call_name(node)
    return is_aggregate_name(name) or name in definitions


def aggregate_of(call: Tree, definitions: Mapping[str, UserAggregate]) -> Aggregate | ArrowAggregate:
    """The aggregate that a call stands for."""
    if isinstance(call.parent, _MODIFIERS):
        raise BadExpression(
            f"{render(call.parent)}: OVER and the treatment of nulls are not supported; nulls are always "
            "skipped, and a FILTER (WHERE …) chooses the tuples"
        )
    where = None
    if isinstance(call, exp.Filter):
        call, where = call.this, render(call.expression.this)
    made, distinct = _plain(call, definitions)
    if where is None and not distinct:
        return made
    return modified(made if isinstance(made, Aggregate) else made.as_aggregate(), where, distinct)


def _plain(call: Tree, definitions: Mapping[str, UserAggregate]) -> tuple[Aggregate | ArrowAggregate, bool]:
    """The aggregate without its FILTER, and whether it has a DISTINCT."""
    if isinstance(call, exp.WithinGroup):
        return _within_group(call), False
    name = call_name(call) or ""
    # The parser reads ANY as the quantifier of a comparison.
    arguments = [call.this.unnest()] if isinstance(call, exp.Any) else call.expressions
    known = {sql_name: each for each in DEFINITIONS.values() for sql_name in each.sql_names}
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    distinct = distinct and not (name in known and known[name].reads_distinct)
    if distinct:
        arguments = arguments[0].expressions
    if any(isinstance(each, exp.Order) for each in arguments):
        raise BadExpression(
            f"{render(call)}: ORDER BY inside an aggregate is not supported; sort the values themselves with "
            "array_sort(), or take the first rows of each key with ROW_NUMBER()"
        )
    if name in definitions:
        return definitions[name](*map(render, arguments)), distinct
    if name in known:
        return known[name].of_sql(name, arguments), distinct
    names = ", ".join(sorted({*known, *definitions}))
    raise BadAggregate(f"{name}() is not supported; the aggregates are {names}")


def _within_group(call: exp.WithinGroup) -> Aggregate:
    """An aggregate whose value stands in the ORDER BY of its WITHIN GROUP."""
    name, ordered = call_name(call.this) or "", call.expression.expressions
    if name not in _ORDERED or len(ordered) != 1 or ordered[0].args.get("desc"):
        forms = " and ".join(f"{form} WITHIN GROUP (ORDER BY x)" for form in _ORDERED.values())
        raise BadExpression(f"{render(call)} is not supported; written this way are {forms}")
    known = {"mode": "mode", "percentile_cont": "percentile"}[name]
    return DEFINITIONS[known].of_sql(known, [ordered[0].this, *call.this.expressions])


def _is_arrow_aggregate(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ArrowAggregate)
