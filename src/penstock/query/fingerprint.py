"""A stable digest of all that gives a query's state its meaning."""

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.query.aggregation import Aggregation
from penstock.query.joining import Join
from penstock.query.processing import Process
from penstock.query.steps import Branch, Map, Select, Where
from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate

if TYPE_CHECKING:
    from penstock.query.query import Query
    from penstock.query.relation import Operator, Relation
    from penstock.query.resolved import ResolvedAggregate

__all__ = ["digest"]

# Part of every digest: raised whenever the same query text comes to mean other state.
_VERSION: Final = 2


def digest(query: "Query") -> str:
    """The hexadecimal SHA-256 of the query's meaning, the same in every process."""
    kept = _behind_state(query)
    number = {relation: place for place, relation in enumerate(kept)}
    meaning = {
        "version": _VERSION,
        "relations": [[_meaning(each), [number[one] for one in each.inputs]] for each in kept],
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def _behind_state(query: "Query") -> "list[Relation]":
    """The relations on which state depends: stateful ones and all that leads to them."""
    needed: set[Relation] = set(query.streams)
    for relation in reversed(query.relations):
        stateful = isinstance(getattr(relation, "operator", None), (Aggregation, Join, Process))
        if stateful or relation in needed:
            needed |= {relation, *relation.inputs}
    return [each for each in query.relations if each in needed]


def _meaning(relation: "Relation") -> list[object]:
    keys: list[object]
    operator = getattr(relation, "operator", None)
    if operator is None:
        columns: list[object] = [[each.name, each.type, each.nullable] for each in relation.schema.columns]
        return ["stream", columns, relation.time, getattr(relation, "key", None)]
    if isinstance(operator, Aggregation):
        window = operator.window
        keys = [[name, each.sql] for name, each in operator.keys]
        aggregates = [_aggregate(each) for each in operator.aggregates]
        return ["aggregation", keys, [window.size, window.slide, window.offset], aggregates]
    if isinstance(operator, Join):
        keys = [[key.left, key.right, key.type] for key in operator.keys]
        condition = operator.condition.sql if operator.condition else None
        bound = [operator.within, operator.last]
        return ["join", keys, bound, operator.how, condition, operator.left, operator.right]
    if isinstance(operator, Process):
        return _process(operator)
    return _step(operator)


def _process(operator: Process) -> list[object]:
    keys = [[name, each.sql] for name, each in operator.keys]
    function = operator.function
    named = getattr(function, "__qualname__", type(function).__qualname__)
    settings = sorted((name, _value(value)) for name, value in getattr(function, "__dict__", {}).items())
    columns = [
        [[each.name, each.type] for each in schema.columns]
        for schema in (operator.given, operator.state, operator.result)
    ]
    return ["process", keys, named, settings, columns, operator.timeout, operator.order]


def _step(step: "Operator") -> list[object]:
    if isinstance(step, Select):
        return ["select", [[name, each.sql] for name, each in step.columns]]
    if isinstance(step, Where):
        return ["where", step.expression.sql]
    if isinstance(step, Branch):
        return ["where", step.sql]
    if isinstance(step, Map):
        made = [[each.name, each.type] for each in step.made.columns]
        return ["map", getattr(step.function, "__qualname__", type(step.function).__qualname__), made]
    return [str(step)]


def _aggregate(aggregate: "ResolvedAggregate") -> list[object]:
    return [
        aggregate.name,
        aggregate.function,
        [each.sql for each in aggregate.arguments],
        [[name, _value(value)] for name, value in aggregate.options],
        _definition(aggregate.definition),
    ]


def _definition(definition: SqlAggregate | ArrowAggregate | None) -> object:
    if isinstance(definition, SqlAggregate):
        return [definition.inputs, definition.partial, definition.merge, definition.finish]
    if isinstance(definition, ArrowAggregate):
        kind = type(definition)
        settings = sorted((name, _value(value)) for name, value in vars(definition).items())
        return [kind.__qualname__, sorted(kind.state.items()), kind.result, settings]
    return None


def _value(value: object) -> str:
    # The repr of an arbitrary object may hold its address, which no two processes share.
    if isinstance(value, (str, int, float, timedelta, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    return type(value).__qualname__
