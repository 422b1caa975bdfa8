"""Aggregates checked against the schema that they read."""

from dataclasses import dataclass

from penstock.errors import BadAggregate, WrongType
from penstock.expressions import types
from penstock.expressions.scalar import Expression, scalar
from penstock.expressions.schema import Schema
from penstock.query.aggregate_call import Aggregate
from penstock.query.result_types import result_type
from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate

__all__ = ["ResolvedAggregate", "resolve"]


@dataclass(frozen=True, slots=True)
class ResolvedAggregate:
    """A named aggregate over checked expressions; a type of None is settled by Spark."""

    name: str
    function: str
    arguments: tuple[Expression, ...]
    options: tuple[tuple[str, object], ...]
    definition: SqlAggregate | ArrowAggregate | None
    type: str | None

    def option(self, name: str) -> object:
        """The value of one option."""
        return dict(self.options)[name]

    def __str__(self) -> str:
        called = (
            type(self.definition).__name__ if isinstance(self.definition, ArrowAggregate) else self.function
        )
        shown = [*map(str, self.arguments), *(f"{name}={value}" for name, value in self.options)]
        return f"{called}({', '.join(shown)})"


def resolve(name: str, aggregate: Aggregate | ArrowAggregate, schema: Schema) -> ResolvedAggregate:
    """The aggregate over the columns of a schema, or the reason why there is none."""
    call = _call(name, aggregate)
    arguments = tuple(scalar(text, schema) for text in call.arguments)
    return ResolvedAggregate(
        name, call.function, arguments, call.options, call.definition, _type(call, arguments)
    )


def _call(name: str, aggregate: object) -> Aggregate:
    if isinstance(aggregate, Aggregate):
        return aggregate
    if isinstance(aggregate, ArrowAggregate):
        return Aggregate("arrow", aggregate.arguments, definition=aggregate)
    hint = "call it with its arguments" if callable(aggregate) else "give one such as ps.avg('speed')"
    raise BadAggregate(f"{name}={aggregate!r} is not an aggregate; {hint}")


def _type(call: Aggregate, arguments: tuple[Expression, ...]) -> str | None:
    if isinstance(call.definition, ArrowAggregate):
        return types.normalise(call.definition.result)
    if isinstance(call.definition, SqlAggregate):
        _check_plain(arguments)
        return call.definition.result_type(arguments)
    given = arguments[0] if arguments else None
    written = call.arguments[0] if call.arguments else ""
    return result_type(call.function, given.type if given else None, written)


def _check_plain(arguments: tuple[Expression, ...]) -> None:
    for each in arguments:
        if each.type and not types.is_atomic(each.type):
            raise WrongType(f"{each.sql} is {each.type}; an aggregate in SQL needs plain values")
