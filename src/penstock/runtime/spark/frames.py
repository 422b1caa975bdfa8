"""Stateless operators in Spark SQL: from the tuples of a source to the columns that a stage needs.

Every frame has the columns in sight and the event time in microseconds. A tuple that does not fit the
schema is marked with the reason and carried along, so that the epoch can set it aside and count it
without reading the source twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from penstock.compile import TIME, Describe, mapped
from penstock.errors import BadExpression
from penstock.query import Branch, Map, Select, Step, Stream, Where, quoted

__all__ = [
    "CORRUPT",
    "RECORD",
    "REJECT",
    "describe",
    "from_on",
    "marked",
    "sql_over",
    "stepped",
    "steps_sql",
    "valid",
]

REJECT = "_ps_reject"
RECORD = "_ps_record"
CORRUPT = "_ps_corrupt"
_VIEW = "_ps_rows"


def marked(frame: DataFrame, stream: Stream) -> DataFrame:
    """Every tuple with its time in microseconds and, where it does not fit, the reason and its text."""
    corrupt = CORRUPT in frame.columns
    reasons = [f"WHEN `{CORRUPT}` IS NOT NULL THEN 'the record is malformed'"] if corrupt else []
    reasons += [
        f"WHEN {quoted(column.name)} IS NULL THEN '{_escaped(column.name)} is null'"
        for column in stream.schema.columns
        if column.name == stream.time or not column.nullable
    ]
    reason = f"CASE {' '.join(reasons)} END"
    names = [quoted(name) for name in stream.schema.names]
    text = f"to_json(struct({', '.join(names)}))"
    record = f"coalesce(`{CORRUPT}`, {text})" if corrupt else text
    found = frame.selectExpr(*names, *([f"`{CORRUPT}`"] if corrupt else []), f"{reason} AS {REJECT}")
    return found.selectExpr(
        *names,
        f"{_microseconds(stream)} AS {TIME}",
        REJECT,
        f"CASE WHEN {REJECT} IS NOT NULL THEN {record} END AS {RECORD}",
    )


def valid(rows: str, stream: Stream, bound: int | None) -> str:
    """A SELECT of the tuples of a marked frame that fit the schema and are not below the bound."""
    names = ", ".join([*map(quoted, stream.schema.names), TIME])
    in_time = f" AND {from_on(bound)}" if bound is not None else ""
    return f"(SELECT {names} FROM {rows} WHERE {REJECT} IS NULL{in_time})"


def from_on(bound: int) -> str:
    """The condition that a tuple is not below a bound.

    The bound changes from epoch to epoch. As a literal it would stand in the generated code, which would
    then be compiled, and slow until it is compiled again by the JVM, in every epoch. An array is passed to
    the code as an object, and nothing knows beforehand that its place is always 0.
    """
    return f"{TIME} >= get(array({bound}L), spark_partition_id() & 0)"


def stepped(frame: DataFrame, steps: tuple[Step, ...], *, exchanges: int | None = None) -> DataFrame:
    """A frame after stateless steps; with `exchanges` each is dealt to so many partitions, round robin."""
    pending: list[Step] = []
    for step in steps:
        if exchanges is not None:
            frame = _flushed(frame, pending).repartition(exchanges)
        if isinstance(step, Map):
            frame = _mapped(_flushed(frame, pending), step)
        else:
            pending.append(step)
    return _flushed(frame, pending)


def steps_sql(steps: tuple[Step, ...], source: str, *carried: str) -> str:
    """Steps without a map as one SELECT over `source`; `carried` columns pass out of sight."""
    sql = source
    for step in steps:
        if isinstance(step, Select):
            columns = [f"{each.sql} AS {quoted(name)}" for name, each in step.columns]
            sql = f"(SELECT {', '.join([*columns, *carried])} FROM {sql})"
        else:
            assert isinstance(step, (Where, Branch)), step
            condition = step.expression.sql if isinstance(step, Where) else step.sql
            sql = f"(SELECT * FROM {sql} WHERE {condition})"
    return sql


def sql_over(frame: DataFrame, text: str) -> DataFrame:
    """A query over `_ps_rows`, which is the frame.

    A text is one call to the JVM, a list of columns one for every part of it.
    """
    frame.createOrReplaceTempView(_VIEW)
    return frame.sparkSession.sql(text)


def describe(empty: DataFrame) -> Describe:
    """What Spark's analyzer says about expressions over a frame."""

    def types(expressions: list[str]) -> list[tuple[str, bool]]:
        try:
            fields = empty.selectExpr(*expressions).schema.fields if expressions else []
        except AnalysisException as error:
            raise BadExpression(
                f"Spark cannot evaluate {'; '.join(expressions)}: {error.getMessage()}"
            ) from error
        return [(field.dataType.simpleString(), field.nullable) for field in fields]

    return types


def _flushed(frame: DataFrame, pending: list[Step]) -> DataFrame:
    if not pending:
        return frame
    text = f"SELECT * FROM {steps_sql(tuple(pending), _VIEW, TIME)}"
    pending.clear()
    try:
        return sql_over(frame, text)
    except AnalysisException as error:
        raise BadExpression(f"Spark cannot evaluate {text}: {error.getMessage()}") from error


def _mapped(frame: DataFrame, step: Map) -> DataFrame:
    kept = [f"{quoted(name)} {frame.schema[name].dataType.simpleString()}" for name in step.kept]
    made = [f"{quoted(each.name)} {each.type}" for each in step.made.columns]
    return frame.mapInArrow(_Mapping(step), ", ".join([*kept, *made, f"{TIME} bigint"]))


@dataclass(frozen=True)
class _Mapping:
    """What Spark ships to the workers for a map."""

    step: Map

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                yield from mapped(self.step, pa.Table.from_batches([batch])).combine_chunks().to_batches()


def _microseconds(stream: Stream) -> str:
    """The event time as microseconds since 1970; a time without zone is taken as UTC."""
    name = quoted(stream.time)
    if stream.time_type == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {name})"
    return f"unix_micros({name})"


def _escaped(text: str) -> str:
    return text.replace("'", "\\'")
