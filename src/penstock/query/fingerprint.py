"""A stable digest of all that gives a query's state its meaning."""

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate

if TYPE_CHECKING:
    from penstock.query.query import Query
    from penstock.query.resolved import ResolvedAggregate
    from penstock.query.steps import Step

__all__ = ["digest"]

# Part of every digest: raised whenever the same query text comes to mean other state.
_VERSION: Final = 1


def digest(query: "Query") -> str:
    """The hexadecimal SHA-256 of the query's meaning, the same in every process."""
    stream, window = query.relation.stream, query.window
    meaning = {
        "version": _VERSION,
        "schema": [[each.name, each.type, each.nullable] for each in stream.schema.columns],
        "time": stream.time,
        "key": stream.key,
        "steps": [_step(each) for each in query.relation.steps],
        "keys": [[name, each.sql] for name, each in query.keys],
        "window": [window.size, window.slide, window.offset],
        "aggregates": [_aggregate(each) for each in query.aggregates],
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def _step(step: "Step") -> list[object]:
    if hasattr(step, "columns"):
        return ["select", [[name, each.sql] for name, each in step.columns]]
    return ["where", step.expression.sql]


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
