"""What an aggregate is: its definition, a call of it as the user wrote it, and the call over a schema.

A file of this package defines one aggregate: a subclass of `Definition` and a constructor that is decorated
with `@defined_by`. The definition says what the aggregate takes and gives, which partials a pane keeps for
it and how its value follows from them. Nothing outside this package asks which aggregate it has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from sqlglot import exp

from penstock.errors import BadAggregate, BadExpression, WrongType
from penstock.expressions import types
from penstock.expressions.functions import add_aggregates, is_aggregate_name
from penstock.expressions.parsing import Tree, call_name, render, shared_scalar
from penstock.expressions.scalar import Expression, is_void, scalar
from penstock.expressions.schema import Schema

if TYPE_CHECKING:
    from penstock.aggregates.partials import Lowered, PaneColumns

__all__ = [
    "ANYTHING",
    "BOOLEAN",
    "DEFINITIONS",
    "NUMBER",
    "PLAIN",
    "Aggregate",
    "AggregateLike",
    "Agreement",
    "Definition",
    "Parameter",
    "ResolvedAggregate",
    "check_count",
    "check_whole",
    "defined_by",
    "is_name",
    "resolve",
    "stable_text",
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What one argument has to be: in words, as a test of its SQL type, and what to do if it is not."""

    words: str
    accepts: Callable[[str], bool]
    hint: str = ""


ANYTHING: Final = Parameter("any value", lambda _type: True)
PLAIN: Final = Parameter("one plain value", types.is_atomic, "take a field or element of it")
NUMBER: Final = Parameter("a number", types.is_numeric, "cast it or use count()")
BOOLEAN: Final = Parameter("a condition", lambda type_: type_ == "boolean", "compare it with something")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The call of an aggregate as the user wrote it, before a schema is known."""

    definition: "Definition"
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return self.definition.shown(self.arguments)


@dataclass(frozen=True, slots=True)
class ResolvedAggregate:
    """A named aggregate over checked expressions; a type of None is settled by Spark."""

    name: str
    definition: "Definition"
    arguments: tuple[Expression, ...]
    type: str | None

    def __str__(self) -> str:
        return self.definition.shown(self.arguments)


class AggregateLike(ABC):
    """A value that stands for the call of an aggregate without being one: that of a user's class."""

    @abstractmethod
    def as_aggregate(self) -> Aggregate:
        """The call."""


class Agreement(Enum):
    """How a result compares with that of Spark's batch query over the same group; a test holds it."""

    EXACT = "exactly Spark's"
    ROUNDED = "Spark's; a double is rounded in another order"
    CHOSEN = "one that Spark may give"
    ESTIMATE = "an estimate"


class Definition(ABC):
    """One aggregate function with its options, which are the fields of a frozen data class.

    `sql_names` are its names in SQL, the first one Spark's if Spark has it. `numbers` says of an SQL name how
    many numbers may follow the expressions, at least and at most. With `variadic` the last of the arguments
    that it `takes` may stand several times. The type of a result is always Spark's; of its value `agreement`
    says how it compares, and `detail` which one is chosen or how large the error is. `gives` is for the docs.
    With `keeps_values` a partial grows with its tuples; other partials have a bound. With `ignores_repeats`
    tuples with equal arguments count as one, so that DISTINCT changes nothing. With `reads_distinct` its own
    `of_sql` reads a DISTINCT.
    `examples` are options for the shared tests.
    """

    name: ClassVar[str]
    sql_names: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[Mapping[str, tuple[int, int]]] = {}
    takes: ClassVar[tuple[Parameter, ...]] = (PLAIN,)
    variadic: ClassVar[bool] = False
    gives: ClassVar[str] = ""
    agreement: ClassVar[Agreement]
    detail: ClassVar[str] = ""
    never_null: ClassVar[bool] = False
    keeps_values: ClassVar[bool] = False
    ignores_repeats: ClassVar[bool] = False
    reads_distinct: ClassVar[bool] = False
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    construct: ClassVar[Callable[..., Aggregate]]

    @abstractmethod
    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The SQL type of the result for arguments of these types; None where only Spark can tell."""

    @abstractmethod
    def lower(self, arguments: Sequence[Expression], pane: "PaneColumns") -> "Lowered":
        """How the value is finished from partials, which are added to the pane, and its Arrow type."""

    def spark_sql(self, arguments: Sequence[str], time: str) -> str:  # noqa: ARG002 -- for subclasses
        """The Spark aggregate over a whole group that gives the same type and, unless it estimates, value."""
        return f"{self.sql_names[0]}({', '.join(arguments)})"

    def distinct_sql(self, arguments: Sequence[str]) -> str:
        """The same with DISTINCT; a value that is there several times has no event time of its own."""
        return with_distinct(self.spark_sql(arguments, "0"))

    def estimates(self, columns: Sequence[Sequence[Any]]) -> bool:  # noqa: ARG002 -- for subclasses
        """Whether the result over these values is an estimate of its own, not the value that Spark gives."""
        return self.agreement is Agreement.ESTIMATE

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """How far an approximate result over these values is off, in the unit of `error_bound`."""
        raise NotImplementedError(f"{self.name}() is exact")

    @property
    def error_bound(self) -> float:
        """The most that `measured_error` may be; a sketch may exceed it once in thousands of results."""
        return 0.0

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """Names and values of the options."""
        return tuple((each.name, getattr(self, each.name)) for each in fields(cast("Any", self)))

    def check(self, arguments: Sequence[Expression], written: Sequence[str]) -> None:
        """Raise WrongType for an argument that the aggregate cannot take."""
        more = self.takes[-1:] * len(arguments) if self.variadic else ()
        for parameter, given, text in zip((*self.takes, *more), arguments, written, strict=False):
            if given.type is not None and not parameter.accepts(given.type):
                raise WrongType(
                    f"{self.name}() needs {parameter.words}, got {text} {given.type}; {parameter.hint}"
                )

    def meaning(self) -> object:
        """What the name and the options do not say of its state, as plain values for a digest."""
        return None

    def shown(self, arguments: Sequence[object]) -> str:
        """A call of it in words."""
        options = (f"{name}={value}" for name, value in self.options)
        return f"{self.name}({', '.join([*map(str, arguments), *options])})"

    @classmethod
    def of_sql(cls, name: str, arguments: Sequence[Tree]) -> Aggregate:
        """The call that an SQL call under one of its names stands for."""
        least, most = cls.numbers.get(name, (0, 0))
        count = len(cls.takes)
        check_count(name, arguments, count + least, count + most)
        numbers = (_number(name, each) for each in arguments[count:])
        return cls.construct(*map(render, arguments[:count]), *numbers)


DEFINITIONS: Final[dict[str, type[Definition]]] = {}
"""Every definition that was imported, by the name of its constructor."""

_Constructor = TypeVar("_Constructor", bound=Callable[..., Aggregate])


def defined_by(definition: type[Definition]) -> Callable[[_Constructor], _Constructor]:
    """Register a definition together with the function that users call."""

    def register(constructor: _Constructor) -> _Constructor:
        definition.construct = constructor
        # A module may be run again under its own name; another aggregate may not take it.
        known = DEFINITIONS.get(definition.name, definition)
        assert known.__module__ == definition.__module__, definition.name
        DEFINITIONS[definition.name] = definition
        add_aggregates(definition.sql_names)
        return constructor

    return register


def resolve(name: str, aggregate: Aggregate | AggregateLike, schema: Schema) -> ResolvedAggregate:
    """The aggregate over the columns of a schema, or the reason why there is none."""
    call = _call(name, aggregate)
    arguments = tuple(_typed(name, call, scalar(text, schema), schema) for text in call.arguments)
    call.definition.check(arguments, call.arguments)
    type_ = call.definition.result_type([each.type for each in arguments])
    return ResolvedAggregate(name, call.definition, arguments, type_)


def _typed(name: str, call: Aggregate, given: Expression, schema: Schema) -> Expression:
    """The argument with a type: a null has none, and any will do where it does not matter, as for count()."""
    if not is_void(given):
        return given
    if call.definition.result_type([None for _ in call.arguments]) is None:
        raise WrongType(
            f"{name!r}: the argument of {call.definition.name}() is {given.sql}, which has no type; write "
            f"cast({given.sql} as int)"
        )
    return scalar(f"CAST({given.sql} AS INT)", schema)


def _call(name: str, aggregate: object) -> Aggregate:
    if isinstance(aggregate, Aggregate):
        return aggregate
    if isinstance(aggregate, AggregateLike):
        return aggregate.as_aggregate()
    hint = "call it with its arguments" if callable(aggregate) else "give one such as ps.avg('speed')"
    raise BadAggregate(f"{name}={aggregate!r} is not an aggregate; {hint}")


def with_distinct(text: str) -> str:
    """Spark SQL with DISTINCT in every aggregate of it.

    >>> with_distinct("coalesce(avg(x), 0)")
    'COALESCE(AVG(DISTINCT x), 0)'
    """

    def distinct(node: Tree) -> Tree:
        if isinstance(node, exp.Anonymous) and is_aggregate_name(call_name(node)):
            given = exp.Distinct(expressions=[each.copy() for each in node.expressions])
            return exp.Anonymous(this=node.this, expressions=[given])
        return node

    return render(shared_scalar(text).transform(distinct))


def check_whole(function: str, option: str, value: object, least: int, greatest: int) -> None:
    """Raise BadAggregate unless the option is a whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        raise BadAggregate(
            f"{function}() got {option}={value!r}; give a whole number from {least} to {greatest}"
        )


def check_count(name: str, arguments: Sequence[Tree], least: int, most: int) -> None:
    """Raise BadExpression for too few or too many SQL arguments."""
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise BadExpression(f"{name}() got {len(arguments)} arguments; it takes {wanted}")


def is_name(value: object) -> bool:
    """Whether the value is an identifier, fit to name a column of partials."""
    return isinstance(value, str) and value.isidentifier()


def stable_text(value: object) -> str:
    """A text of a setting that every process gives alike.

    The repr of an arbitrary object may hold its address, so its class stands for it.

    >>> stable_text((1, "a", None)), stable_text(object())
    ("[1, 'a', None]", 'object')
    """
    if isinstance(value, (str, int, float, timedelta, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(stable_text, value))}]"
    return type(value).__qualname__


def _number(name: str, node: Tree) -> float:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise BadExpression(f"{name}() got {render(node)} where an option stands; write a number")
    return int(node.name) if node.name.isdigit() else float(node.name)
