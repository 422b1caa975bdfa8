"""The verb process: what a user gives, checked."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from penstock.errors import BadProcess
from penstock.expressions import types
from penstock.expressions.durations import microseconds
from penstock.expressions.schema import Column, Schema, schema_of
from penstock.operators.names import Named, check_names
from penstock.operators.operator import D, Duration, GroupedVerbs, InputRelation, R
from penstock.operators.process import Processor, VisitFunction
from penstock.operators.process.node import Order, Process

__all__ = ["ProcessVerbs"]

_LONGEST: Final = 1 << 61


class ProcessVerbs(GroupedVerbs[R, D]):
    """The verb of a relation with keys that calls a function for each key."""

    def process(
        self,
        function: Processor | VisitFunction,
        *,
        state: Any,
        result: Any,
        timeout: Duration | None = None,
        order: str = "event",
    ) -> D:
        """Call a function with the rows of each key and the state that it keeps of the key.

        ``function`` is a ``ps.Processor`` over Arrow, or a plain function that is called for one key and one
        row and returns a ``ps.Visit``. ``state`` and ``result`` declare columns, as a mapping of names to SQL
        types or as text. A timer fires when the frontier has passed it: with ``timeout`` where a key had no
        row for so long in event time, without it where the function sets one. Rows come in the order of
        event time, held until the frontier has passed them; with ``order="arrival"`` at once, and results
        then depend on how epochs were cut. A result has the time of the row or timer that caused it, then
        the keys, then what ``result`` declares.

        >>> from penstock.operators.process import Visit
        >>> from penstock.query import stream
        >>> def clicks(key, time, row, state):
        ...     if row is None:
        ...         return Visit(None, results=[state])
        ...     return Visit({"n": 1 + (state["n"] if state else 0)})
        >>> pages = stream("pages", "time timestamp, user string, url string", time="time")
        >>> sessions = pages.group_by("user").process(
        ...     clicks, state={"n": "bigint"}, result="n bigint", timeout="30 minutes"
        ... )
        >>> sessions
        pages.group_by(user).process(clicks; timeout 30 minutes)
        >>> sessions.schema.names
        ('time', 'user', 'n')
        """
        made = _process_of(
            self.relation, self.keys, function, state=state, result=result, timeout=timeout, order=order
        )
        return self.relation.derive(made)


def _process_of(  # noqa: PLR0913 -- each is one documented option
    relation: InputRelation,
    keys: Named,
    function: Any,
    *,
    state: Any,
    result: Any,
    timeout: Duration | None,
    order: str,
) -> Process:
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
