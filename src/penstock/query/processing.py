"""A keyed stateful function: keys, the columns of its state and its results, timeout and order of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from penstock.errors import BadProcess
from penstock.expressions import types
from penstock.expressions.durations import microseconds, words
from penstock.expressions.schema import Column, Schema, schema_of
from penstock.keyed import Processor, VisitFunction
from penstock.query.steps import Named, check_names

if TYPE_CHECKING:
    from penstock.query.relation import Relation

__all__ = ["Order", "Process", "process_of"]

Order = Literal["event", "arrival"]
_LONGEST: Final = 1 << 61


@dataclass(frozen=True, slots=True)
class Process:
    """A function over the rows of each key and its state.

    ``given`` are the columns of the rows; ``time`` names the event time of rows and results. ``timeout`` is
    in microseconds.
    """

    keys: Named
    function: Processor | VisitFunction
    given: Schema
    state: Schema
    result: Schema
    timeout: int | None
    order: Order
    time: str

    @property
    def name(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def schema(self, time_type: str) -> Schema:
        """The columns of the results: their event time, the keys, what was declared."""
        time = Column(self.time, time_type, nullable=False)
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema((time, *keys, *self.result.columns))

    def __str__(self) -> str:
        parts = [self.name]
        parts += [f"timeout {words(self.timeout)}"] if self.timeout is not None else []
        parts += ["in order of arrival"] if self.order == "arrival" else []
        return f"group_by({', '.join(name for name, _ in self.keys)}).process({'; '.join(parts)})"


def process_of(  # noqa: PLR0913 -- each is one documented option
    relation: "Relation",
    keys: Named,
    function: Any,
    *,
    state: Any,
    result: Any,
    timeout: str | timedelta | None,
    order: str,
) -> Process:
    """The operator, all names and types checked."""
    _check_function(function)
    if order not in get_args(Order):
        raise BadProcess(f"order={order!r}; give 'event' (rows wait for the frontier) or 'arrival'")
    length = None if timeout is None else microseconds(timeout)
    if length is not None and not 0 < length < _LONGEST:
        raise BadProcess(f"timeout={timeout!r}; give more than 0 and less than 73,000 years")
    made = Process(
        keys=keys,
        function=function,
        given=relation.schema,
        state=_schema(state),
        result=_schema(result),
        timeout=length,
        order=order,  # type: ignore[arg-type]
        time=relation.time,
    )
    check_names([relation.time, *(name for name, _ in keys), *made.result.names])
    return made


def _check_function(function: Any) -> None:
    if isinstance(function, type):
        raise BadProcess(
            f"process() got the class {function.__name__}; give an instance, {function.__name__}()"
        )
    if not isinstance(function, Processor) and not callable(function):
        raise BadProcess(
            f"process() got {function!r}; give a ps.Processor, or a function of key, time, row and state "
            "that returns a ps.Visit"
        )
    if type(function).__hash__ is None:
        raise BadProcess(f"{type(function).__name__} has no hash; make its data class frozen")


def _schema(value: Any) -> Schema:
    if isinstance(value, Mapping):
        columns = tuple(Column(name, types.normalise(text)) for name, text in value.items())
        return Schema(columns)
    return schema_of(value)
