"""Streams: live inputs with a schema, an event time and a source."""

from dataclasses import dataclass

import pyarrow as pa

from penstock.connect import Source
from penstock.errors import BadName, BadSource, WrongType
from penstock.expressions import types
from penstock.expressions.durations import microseconds
from penstock.expressions.schema import Schema, schema_of
from penstock.query.relation import Duration, Relation

__all__ = ["Stream", "stream"]


@dataclass(frozen=True, repr=False)
class Stream(Relation):
    """A live input with an event time; made by ``stream``. Durations are in microseconds."""

    name: str
    schema: Schema
    time: str
    delay: int
    source: Source | None
    idle: int | None
    key: str | None
    ahead: int | None = None

    @property
    def time_type(self) -> str:
        """The type of the event time."""
        return self.schema.column(self.time).type or ""

    def meaning(self) -> list[object]:
        """Its columns, time and key; the source of the tuples can change between two runs."""
        columns: list[object] = [[each.name, each.type, each.nullable] for each in self.schema.columns]
        return ["stream", columns, self.time, self.key]

    @property
    def declared(self) -> str:
        """The same for people.

        >>> stream("reports", "time timestamp, speed real", time="time").declared
        '`time` timestamp, `speed` float; event time time'
        """
        key = f", key {self.key}" if self.key else ""
        return f"{self.schema.ddl()}; event time {self.time}{key}"

    def __repr__(self) -> str:
        return self.name


def stream(  # noqa: PLR0913 -- each is one documented property of a stream
    name: str,
    schema: str | pa.Schema | Schema,
    time: str,
    delay: Duration = "0 seconds",
    source: Source | None = None,
    *,
    idle: Duration | None = None,
    key: str | None = None,
    ahead: Duration | None = "1 hour",
) -> Stream:
    """Declare a stream.

    ``time`` is its event-time column. ``delay`` is how far tuples may be out of order before they are
    late (the watermark delay). ``key`` is the column that distinguishes the streams of one source.
    After ``idle`` without tuples, the stream of a key no longer holds windows open; once all have been silent
    for so long, event time goes on with the clock and closes the last windows. Silence counts only while
    a run looks for tuples and finds none: no pause, backlog or change of the clock makes a stream idle.
    Tuples further than ``ahead`` in the future of the driver's clock go to the rejects, so that one wrong
    time does not close every window; None accepts any time. ``source`` is ``ps.files()``, ``ps.gates()``,
    ``ps.dataframe()``, ``ps.rows()`` or your own ``ps.Source``.

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
        source=_checked_source(source, name, columns),
        idle=None if idle is None else microseconds(idle),
        key=None if key is None else columns.column(key).name,
        ahead=None if ahead is None else microseconds(ahead),
    )


def _time_column(name: str, schema: Schema) -> str:
    found = schema.column(name)
    if not types.is_timestamp(found.type or ""):
        raise WrongType(
            f"the time column {found.name!r} is {found.type}, not a timestamp; declare it as timestamp, or "
            f"convert it in the source with timestamp_millis({found.name}) or to_timestamp({found.name})"
        )
    return found.name


def _checked_source(source: object, name: str, schema: Schema) -> Source | None:
    if source is None:
        return None
    if not isinstance(source, Source):
        raise BadSource(
            f"source is {type(source).__name__}; give ps.files(), ps.gates(), ps.dataframe(), ps.rows() or "
            "an object of your own subclass of ps.Source"
        )
    found = source.conform(name, schema)
    if type(found).__hash__ is None:
        raise BadSource(f"source {type(found).__name__} has no hash; make it a frozen dataclass")
    return found
