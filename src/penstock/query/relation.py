"""Relations: the nodes of a query graph, from a stream through operators to what is delivered."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from penstock.errors import BadName, QueryError, WrongType
from penstock.expressions import types
from penstock.expressions.scalar import column, predicate
from penstock.expressions.schema import Schema, schema_of
from penstock.keyed import Processor, VisitFunction
from penstock.query.aggregate_call import Aggregate
from penstock.query.aggregation import WINDOW_END, WINDOW_START, Aggregation, aggregation_of
from penstock.query.joining import Join, On, join_of, joined_schema
from penstock.query.processing import Process, process_of
from penstock.query.query import Query
from penstock.query.steps import (
    Branch,
    Map,
    Named,
    Select,
    Where,
    named_expressions,
    schema_of_columns,
)
from penstock.query.user_aggregates import ArrowAggregate
from penstock.query.window import Window, window_of

__all__ = ["Derived", "Duration", "Grouped", "Operator", "Relation", "Union", "Windowed"]

Duration = str | timedelta


@dataclass(frozen=True, slots=True)
class Union:
    """All tuples of all inputs."""

    def __str__(self) -> str:
        return "union"


Operator = Where | Branch | Select | Map | Union | Aggregation | Join | Process


class Relation:
    """Tuples with a schema and an event time; immutable, each method gives a new relation.

    ``schema`` holds the columns in sight. The event time is carried on even where a select leaves its
    column out, since windows, joins and frontiers need it. ``pinned`` columns stay in sight, first, in
    whatever is selected: the bounds of windows, the time of a join.
    """

    schema: Schema
    time: str

    @property
    def time_type(self) -> str:
        """The type of the event time: timestamp or timestamp_ntz."""
        raise NotImplementedError

    @property
    def pinned(self) -> tuple[str, ...]:
        """The columns that every select keeps."""
        return ()

    @property
    def inputs(self) -> "tuple[Relation, ...]":
        """What it is made of."""
        return ()

    def where(self, condition: str) -> "Derived":
        """Keep the tuples for which the condition is true."""
        return self._step(Where(predicate(condition, self.schema)), self.schema)

    def select(self, /, *names: str, **expressions: str) -> "Derived":
        """Go on with these columns and these expressions, the latter under the names given."""
        pinned = tuple((name, column(name, self.schema)) for name in self.pinned)
        lowered = [name.lower() for name in self.pinned]
        for name in expressions:
            if name.lower() in lowered:
                raise BadName(f"{name!r} is a column of every result; choose another name")
        chosen = [name for name in names if name.lower() not in lowered]
        columns = pinned + named_expressions(chosen, expressions, self.schema)
        if not columns:
            raise BadName("select() needs at least one column")
        self._check_time(columns)
        return self._step(Select(columns), schema_of_columns(columns))

    def split(self, *conditions: str) -> "tuple[Derived, ...]":
        """Part the tuples: one relation for each condition, of the tuples for which it is the first true one.

        A last relation has the tuples for which none is true, so there is one more than conditions.

        >>> from penstock.query.stream import stream
        >>> reports = stream("reports", "time timestamp, speed double", time="time")
        >>> fast, slow, rest = reports.split("speed > 100", "speed < 5")
        >>> rest
        reports.split(`speed` > 100, `speed` < 5)[2]
        """
        if not conditions:
            raise QueryError("split() needs at least one condition")
        found = tuple(predicate(each, self.schema) for each in conditions)
        return tuple(self._step(Branch(found, place), self.schema) for place in range(len(found) + 1))

    def map(self, function: Callable[[Any], Any], schema: Any) -> "Derived":
        """Go on with what a function makes of the columns in sight, batch by batch.

        It takes a pyarrow.RecordBatch and returns one with as many rows, in the same order, with the
        columns of ``schema``; the event time and the bounds of windows stay as they are.
        """
        if not callable(function):
            raise QueryError(f"map() got {function!r}; give a function from a RecordBatch to a RecordBatch")
        made = schema_of(schema)
        kept = self.pinned or ((self.time,) if self.time in self.schema else ())
        for name in made.names:
            if name.lower() in {self.time.lower(), *(each.lower() for each in kept)}:
                raise BadName(f"{name!r} passes a map unchanged; leave it out of the map's schema")
        columns = tuple(self.schema.column(name) for name in kept) + made.columns
        return self._step(Map(function, self.schema, made, kept), Schema(columns))

    def union(self, *others: "Relation") -> "Derived":
        """All tuples of this and the others, which have columns of the same names and types."""
        if not others:
            raise QueryError("union() needs another relation")
        for other in others:
            self._check_union(other)
        return Derived(Union(), (self, *others), self.schema, self.time, self.time_type, self.pinned)

    def join(  # noqa: PLR0913 -- each is one documented option
        self,
        other: "Relation",
        on: On,
        *,
        within: Duration | None = None,
        last: int | None = None,
        how: str = "inner",
        condition: str | None = None,
        suffixes: tuple[str, str] | None = None,
    ) -> "Derived":
        """Pair tuples of equal keys at most ``within`` apart in time, or each with the ``last`` before it.

        ``on`` names the keys: one, several, or a mapping of left to right names. ``condition`` is over the
        pair, ``l`` and ``r``. ``how`` is inner, left, right or full; tuples without a partner are delivered
        when they can match no more. The result has the time of the earlier tuple of a pair (with ``last``
        of the later one), the keys, the left and the right columns; names of both sides get ``suffixes``.

        >>> from penstock.query.stream import stream
        >>> calls = stream("calls", "time timestamp, caller string, x double", time="time")
        >>> calls.join(calls, "caller", within="1 minute", condition="l.x < r.x", suffixes=("_1", "_2"))
        calls.join(calls; caller; within 1 minute; `l`.`x` < `r`.`x`)
        """
        if not _pairs_given(on):
            raise QueryError("join() needs a key; for a condition alone use cross()")
        return self._join(other, on, within, last, how, condition, suffixes)

    def cross(  # noqa: PLR0913 -- each is one documented option
        self,
        other: "Relation",
        condition: str | None = None,
        *,
        within: Duration | None = None,
        last: int | None = None,
        how: str = "inner",
        suffixes: tuple[str, str] | None = None,
    ) -> "Derived":
        """Pair tuples for which any condition over ``l`` and ``r`` is true; else as ``join``."""
        return self._join(other, (), within, last, how, condition, suffixes)

    def group_by(self, /, *names: str, **expressions: str) -> "Grouped":
        """Aggregate for each value of these columns and expressions."""
        return Grouped(self, self._keys(names, expressions))

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self, (), window_of(size, slide, offset))

    def start(self, sink: Any, checkpoint: Any = None, **options: Any) -> Any:
        """Deliver the tuples to a sink and give the handle of the run; for several sinks see ``outputs``."""
        return Query((self,)).start(sink, checkpoint=checkpoint, **options)

    def explain(self, form: str = "text", **options: Any) -> str:
        """The plan: as text, as a Mermaid graph or as JSON."""
        return Query((self,)).explain(form, **options)

    def fingerprint(self) -> str:
        """A digest of all that gives the state its meaning; see ``Query.fingerprint``."""
        return Query((self,)).fingerprint()

    def _step(self, operator: Where | Branch | Select | Map, schema: Schema) -> "Derived":
        return Derived(operator, (self,), schema, self.time, self.time_type, self.pinned)

    def _join(  # noqa: PLR0913, PLR0917 -- the options of join()
        self,
        other: "Relation",
        on: On,
        within: Duration | None,
        last: int | None,
        how: str,
        condition: str | None,
        suffixes: tuple[str, str] | None,
    ) -> "Derived":
        join = join_of(
            self, other, on, within=within, last=last, how=how, condition=condition, suffixes=suffixes
        )
        schema = joined_schema(join, self, other)
        return Derived(join, (self, other), schema, join.time, self.time_type, (join.time,))

    def _keys(self, names: tuple[str, ...], expressions: dict[str, str]) -> Named:
        keys = named_expressions(names, expressions, self.schema)
        if not keys:
            raise BadName(
                "group_by() needs at least one key; for one group of all tuples leave group_by() out"
            )
        for name, expression in keys:
            if expression.type and not types.is_atomic(expression.type):
                raise WrongType(
                    f"key {name!r} is {expression.type}; a key has to be one plain value, take a field of it"
                )
        return keys

    def _check_time(self, columns: Named) -> None:
        for name, expression in columns:
            own = self.time in self.schema and expression == column(self.time, self.schema)
            if name.lower() == self.time.lower() and not own:
                raise BadName(f"{self.time!r} is carried on as the event time; choose another name")

    def _check_union(self, other: "Relation") -> None:
        ours = {each.name.lower(): each.type for each in self.schema.columns}
        theirs = {each.name.lower(): each.type for each in other.schema.columns}
        if ours.keys() != theirs.keys() or self.time_type != other.time_type or self.time != other.time:
            raise QueryError(
                f"union of ({', '.join(self.schema.names)}) with time {self.time!r} and "
                f"({', '.join(other.schema.names)}) with time {other.time!r}; give both the same columns "
                "with select()"
            )
        for name, type_ in ours.items():
            if type_ and theirs[name] and type_ != theirs[name]:
                raise WrongType(
                    f"union: column {name!r} is {type_} in one and {theirs[name]} in the other; cast one"
                )


@dataclass(frozen=True, repr=False)
class Derived(Relation):
    """A relation made by an operator from others."""

    operator: Operator
    _inputs: tuple[Relation, ...]
    schema: Schema
    time: str
    _time_type: str
    _pinned: tuple[str, ...] = ()

    @property
    def time_type(self) -> str:
        """The type of the event time."""
        return self._time_type

    @property
    def pinned(self) -> tuple[str, ...]:
        """The columns that every select keeps."""
        return self._pinned

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return self._inputs

    @cached_property
    def _text(self) -> str:
        first, *others = self._inputs
        shown = str(self.operator)
        if others:
            name, _, rest = shown.partition("(")
            inside = ", ".join(map(repr, others))
            shown = f"{name}({inside}; {rest}" if rest else f"{name}({inside})"
        return f"{first!r}.{shown}"

    @cached_property
    def _hash(self) -> int:
        # Kept, since a graph of diamonds has as many paths as two to the power of its depth.
        return hash((self.operator, self._inputs))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Grouped:
    """A relation with keys, waiting for its window or its function."""

    relation: Relation
    keys: Named

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self.relation, self.keys, window_of(size, slide, offset))

    def process(
        self,
        function: Processor | VisitFunction,
        *,
        state: Any,
        result: Any,
        timeout: Duration | None = None,
        order: str = "event",
    ) -> Derived:
        """Call a function with the rows of each key and the state that it keeps of the key.

        ``function`` is a ``ps.Processor`` over Arrow, or a plain function that is called for one key and one
        row and returns a ``ps.Visit``. ``state`` and ``result`` declare columns, as a mapping of names to SQL
        types or as text. A timer fires when the frontier has passed it: with ``timeout`` where a key had no
        row for so long in event time, without it where the function sets one. Rows come in the order of
        event time, held until the frontier has passed them; with ``order="arrival"`` at once, and results
        then depend on how epochs were cut. A result has the time of the row or timer that caused it, then
        the keys, then what ``result`` declares.

        >>> from penstock.keyed import Visit
        >>> from penstock.query.stream import stream
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
        made = process_of(
            self.relation, self.keys, function, state=state, result=result, timeout=timeout, order=order
        )
        time_type = self.relation.time_type
        return Derived(made, (self.relation,), made.schema(time_type), made.time, time_type, (made.time,))

    def __repr__(self) -> str:
        return f"{self.relation!r}{_shown_keys(self.keys)}"


@dataclass(frozen=True)
class Windowed:
    """A relation with a window, waiting for its aggregates."""

    relation: Relation
    keys: Named
    window: Window

    def group_by(self, /, *names: str, **expressions: str) -> "Windowed":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        keys = self.relation._keys(names, expressions)  # noqa: SLF001 -- the two classes share this file
        return Windowed(self.relation, keys, self.window)

    def agg(self, /, **aggregates: Aggregate | ArrowAggregate) -> Derived:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        The event time of a result is the start of its window.
        """
        made = aggregation_of(self.relation, self.keys, self.window, aggregates)
        time_type = self.relation.time_type
        bounds = (WINDOW_START, WINDOW_END)
        return Derived(made, (self.relation,), made.schema(time_type), WINDOW_START, time_type, bounds)

    def __repr__(self) -> str:
        return f"{self.relation!r}{_shown_keys(self.keys)}.window({self.window})"


def _pairs_given(on: On) -> bool:
    return bool(on) if isinstance(on, str) else bool(list(on))


def _shown_keys(keys: Named) -> str:
    return f".group_by({', '.join(name for name, _ in keys)})" if keys else ""
