"""Streams and what can be said about their tuples before an aggregate: filters, columns, keys, windows."""

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from penstock.errors import BadName, BadSource, WrongType
from penstock.query import types
from penstock.query.aggregate_call import Aggregate
from penstock.query.durations import microseconds, words
from penstock.query.expressions import Expression, column, predicate
from penstock.query.query import Query, query_of
from penstock.query.schema import Schema, schema_of
from penstock.query.sources import DataFrameSource, FilesSource, RowsSource, Source
from penstock.query.steps import Select, Step, Where, named_expressions, schema_of_columns
from penstock.query.user_aggregates import ArrowAggregate
from penstock.query.window import Window, window_of

__all__ = ["Grouped", "Relation", "Stream", "Windowed", "stream"]

Duration = str | timedelta


@dataclass(frozen=True)
class Relation:
    """A stream after some steps; immutable, each method gives a new one.

    ``schema`` holds the columns in sight. The stream's time and key columns are carried on even
    where a select leaves them out, since windows and frontiers need them.
    """

    stream: "Stream"
    steps: tuple[Step, ...]
    schema: Schema

    def where(self, condition: str) -> "Relation":
        """Keep the tuples for which the condition is true."""
        return Relation(self.stream, (*self.steps, Where(predicate(condition, self.schema))), self.schema)

    def select(self, *names: str, **expressions: str) -> "Relation":
        """Go on with these columns and these expressions, the latter under the names given."""
        columns = named_expressions(names, expressions, self.schema)
        if not columns:
            raise BadName("select() needs at least one column")
        made = schema_of_columns(columns)
        step = Select(columns, tuple(name for name in self.stream.carried() if name not in made))
        _check_carried(self.stream, columns)
        return Relation(self.stream, (*self.steps, step), made)

    def group_by(self, *names: str, **expressions: str) -> "Grouped":
        """Aggregate for each value of these columns and expressions."""
        return Grouped(self, _keys(self, names, expressions))

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self, (), window_of(size, slide, offset, self.stream.time))

    def __repr__(self) -> str:
        return ".".join([self.stream.name, *map(str, self.steps)])


@dataclass(frozen=True)
class Grouped:
    """A relation with keys, waiting for its window."""

    relation: Relation
    keys: tuple[tuple[str, Expression], ...]

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self.relation, self.keys, window_of(size, slide, offset, self.relation.stream.time))

    def __repr__(self) -> str:
        return f"{self.relation!r}{_shown_keys(self.keys)}"


@dataclass(frozen=True)
class Windowed:
    """A relation with a window, waiting for its aggregates."""

    relation: Relation
    keys: tuple[tuple[str, Expression], ...]
    window: Window

    def group_by(self, *names: str, **expressions: str) -> "Windowed":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        return Windowed(self.relation, _keys(self.relation, names, expressions), self.window)

    def agg(self, **aggregates: Aggregate | ArrowAggregate) -> Query:
        """The query: window_start, window_end, the keys, then these aggregates under their names."""
        return query_of(self.relation, self.keys, self.window, aggregates)

    def __repr__(self) -> str:
        return f"{self.relation!r}{_shown_keys(self.keys)}.window({self.window})"


@dataclass(frozen=True)
class Stream:
    """A live input with an event time; made by ``stream``. Durations are in microseconds."""

    name: str
    schema: Schema
    time: str
    delay: int
    source: Source | None
    idle: int | None
    key: str | None

    def carried(self) -> tuple[str, ...]:
        """The columns that every step carries on: the time, and the key if there is one."""
        return (self.time,) if self.key is None or self.key == self.time else (self.time, self.key)

    def relation(self) -> Relation:
        """The stream as it comes in."""
        return Relation(self, (), self.schema)

    def where(self, condition: str) -> Relation:
        """Keep the tuples for which the condition is true."""
        return self.relation().where(condition)

    def select(self, *names: str, **expressions: str) -> Relation:
        """Go on with these columns and these expressions, the latter under the names given."""
        return self.relation().select(*names, **expressions)

    def group_by(self, *names: str, **expressions: str) -> Grouped:
        """Aggregate for each value of these columns and expressions."""
        return self.relation().group_by(*names, **expressions)

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> Windowed:
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return self.relation().window(size, slide, offset)

    def __repr__(self) -> str:
        return f"stream({self.name}, time={self.time}, delay={words(self.delay)})"


def stream(  # noqa: PLR0913 -- each is one documented property of a stream
    name: str,
    schema: str | pa.Schema | Schema,
    time: str,
    delay: Duration = "0 seconds",
    source: Source | None = None,
    *,
    idle: Duration | None = None,
    key: str | None = None,
) -> Stream:
    """Declare a stream.

    ``time`` is its event-time column, ``delay`` how far tuples may be out of order before they are
    late, ``idle`` after how long without tuples the stream no longer holds windows open, and ``key``
    the column that tells the streams of one source apart.

    >>> columns = "time timestamp, vehicle string, speed double"
    >>> reports = stream("reports", columns, time="time", delay="5 seconds")
    >>> reports.where("speed > 0").group_by("vehicle").window("60 minutes", slide="1 minute")
    reports.where(`speed` > 0).group_by(vehicle).window(1 hour slide 1 minute)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise BadName(f"stream name {name!r} is not an identifier; use letters, digits and _")
    columns = schema_of(schema)
    return Stream(
        name=name,
        schema=columns,
        time=_time_column(time, columns),
        delay=microseconds(delay),
        source=_checked_source(source, columns),
        idle=None if idle is None else microseconds(idle),
        key=None if key is None else columns.column(key).name,
    )


def _time_column(name: str, schema: Schema) -> str:
    found = schema.column(name)
    if not types.is_timestamp(found.type or ""):
        raise WrongType(
            f"the time column {found.name!r} is {found.type}, not a timestamp; declare it as timestamp, "
            f"or make one in the source, as by timestamp_millis({found.name}) or to_timestamp({found.name})"
        )
    return found.name


def _checked_source(source: object, schema: Schema) -> Source | None:
    if isinstance(source, RowsSource):
        return source.conformed(schema)
    if source is None or isinstance(source, (FilesSource, DataFrameSource)):
        return source
    raise BadSource(f"source is {type(source).__name__}; give ps.files(), ps.dataframe() or ps.rows()")


def _check_carried(stream: Stream, columns: tuple[tuple[str, Expression], ...]) -> None:
    for name, expression in columns:
        for carried in stream.carried():
            if name.lower() == carried.lower() and expression != column(carried, stream.schema):
                raise BadName(
                    f"{carried!r} is carried on for the windows of {stream.name!r}; choose another name"
                )


def _keys(
    relation: Relation, names: tuple[str, ...], expressions: dict[str, str]
) -> tuple[tuple[str, Expression], ...]:
    keys = named_expressions(names, expressions, relation.schema)
    if not keys:
        raise BadName("group_by() needs at least one key; for one group of all tuples leave group_by() out")
    for name, expression in keys:
        if expression.type and not types.is_atomic(expression.type):
            raise WrongType(
                f"key {name!r} is {expression.type}; a key has to be one plain value, take a field of it"
            )
    return keys


def _shown_keys(keys: tuple[tuple[str, Expression], ...]) -> str:
    return f".group_by({', '.join(name for name, _ in keys)})" if keys else ""
