"""Stateless operators in Spark SQL: from the tuples of a source to the columns that a stage needs.

Every frame has the visible columns and the event time in microseconds. A tuple that does not fit the
schema is marked with the reason and carried along, so that the epoch can set it aside and count it
without reading the source twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.columns import TIME
from penstock.connect import ARRIVED, CORRUPT, REASON
from penstock.errors import BadExpression
from penstock.expressions.durations import words
from penstock.expressions.schema import quoted
from penstock.operators import Step
from penstock.operators.kernel import Describe
from penstock.query import Stream
from penstock.runtime.spark.failures import one_line
from penstock.runtime.spark.worker_heap import freeze_worker

__all__ = [
    "FILE",
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
FILE = "_ps_file"
_VIEW = "_ps_rows"
_ONE_VIEW = Lock()


def marked(frame: DataFrame, stream: Stream, now: int | None = None) -> DataFrame:
    """Every tuple with its time in microseconds and, if it does not fit, the reason, its text and file.

    The time of its arrival stays with it if the source tells it.
    `now` is the time of the epoch in microseconds; tuples further ahead of it than the stream allows do not
    fit.
    """
    corrupt = CORRUPT in frame.columns
    reasons = []
    if corrupt:
        malformed = "'the record is malformed'"
        told = f"coalesce(`{REASON}`, {malformed})" if REASON in frame.columns else malformed
        reasons = [f"WHEN `{CORRUPT}` IS NOT NULL THEN {told}"]
    reasons += [
        f"WHEN {quoted(column.name)} IS NULL THEN "
        f"'column {_escaped(column.name)} is null; expected {_escaped(column.type or '')}'"
        for column in stream.schema.columns
        if column.name == stream.time or not column.nullable
    ]
    if now is not None and stream.ahead is not None:
        reasons.append(_too_far_ahead(stream, now))
    reason = f"CASE {' '.join(reasons)} END"
    names = [quoted(name) for name in stream.schema.names]
    text = f"to_json(struct({', '.join(names)}))"
    record = f"coalesce(`{CORRUPT}`, {text})" if corrupt else text
    marks = [f"`{each}`" for each in (CORRUPT, REASON) if each in frame.columns]
    stamps = [ARRIVED] if ARRIVED in frame.columns else []
    timed = f"SELECT {', '.join([*names, *marks, *stamps])}, {_microseconds(stream)} AS {TIME} FROM {_VIEW}"
    judged = f"SELECT *, {reason} AS {REJECT} FROM ({timed})"
    told = f"CASE WHEN {REJECT} IS NOT NULL THEN {record} END AS {RECORD}"
    file = f"CASE WHEN {REJECT} IS NOT NULL THEN nullif(input_file_name(), '') END AS {FILE}"
    return sql_over(frame, f"SELECT {', '.join([*names, TIME, *stamps, REJECT, told, file])} FROM ({judged})")


def _too_far_ahead(stream: Stream, now: int) -> str:
    """The case of a tuple that is further ahead of the epoch's time than its stream allows.

    The limit changes with every epoch and must not become part of the generated code; see `from_on`.
    Here the index depends on the tuple, since a condition on the partition would make Spark treat the mark
    as random and evaluate it again wherever it is used.
    """
    assert stream.ahead is not None
    limit = f"get(array({now + stream.ahead}L), int(isnull({TIME})))"
    clock = datetime.fromtimestamp(now / 1e6, UTC)
    told = (
        f"concat('column {_escaped(stream.time)}: ', {quoted(stream.time)}, ' is more than "
        f"{words(stream.ahead)} ahead of the clock ({clock:%Y-%m-%d %H:%M:%S} UTC)')"
    )
    return f"WHEN {TIME} > {limit} THEN {told}"


def valid(rows: str, stream: Stream, bound: int | None) -> str:
    """A SELECT of the tuples of a marked frame that fit the schema and are not below the bound."""
    names = ", ".join([*map(quoted, stream.schema.names), TIME])
    in_time = f" AND {from_on(bound)}" if bound is not None else ""
    return f"(SELECT {names} FROM {rows} WHERE {REJECT} IS NULL{in_time})"


def from_on(bound: int) -> str:
    """The condition that a tuple is not below a bound.

    The bound changes from epoch to epoch. A literal would become part of the generated code: every epoch
    would then compile new code, slow until the JVM has optimised it. An array is passed to the code as an
    object, and no optimiser knows in advance that the index is always 0.
    """
    return f"{TIME} >= get(array({bound}L), spark_partition_id() & 0)"


def stepped(frame: DataFrame, steps: tuple[Step, ...], *, exchanges: int | None = None) -> DataFrame:
    """A frame after stateless steps; `exchanges` partitions, filled round robin, come before each step."""
    pending: list[Step] = []
    for step in steps:
        if exchanges is not None:
            frame = _flushed(frame, pending).repartition(exchanges)
        if step.calls:
            frame = _called(_flushed(frame, pending), step)
        else:
            pending.append(step)
    return _flushed(frame, pending)


def steps_sql(steps: tuple[Step, ...], source: str, *carried: str) -> str:
    """Steps that call no function, as one SELECT over `source`; `carried` columns pass through unseen."""
    for step in steps:
        source = step.select(source, *carried)
    return source


def sql_over(frame: DataFrame, text: str) -> DataFrame:
    """A query over `_ps_rows`, which is the frame.

    A text costs one call to the JVM; a list of columns costs one for each of its nodes. Spark reads the view
    while it analyses the text; a run that starts at the same time in the same session would replace it.
    """
    with _ONE_VIEW:
        frame.createOrReplaceTempView(_VIEW)
        return frame.sparkSession.sql(text)


def describe(empty: DataFrame) -> Describe:
    """Check expressions over a frame with Spark's analyzer."""

    def types(expressions: list[str]) -> list[tuple[str, bool]]:
        try:
            fields = empty.selectExpr(*expressions).schema.fields if expressions else []
        except PySparkException as error:
            raise BadExpression(
                f"Spark cannot evaluate {'; '.join(expressions)}: {one_line(error.getMessage())}"
            ) from error
        return [(field.dataType.simpleString(), field.nullable) for field in fields]

    return types


def _flushed(frame: DataFrame, pending: list[Step]) -> DataFrame:
    if not pending:
        return frame
    steps = tuple(pending)
    pending.clear()
    try:
        return sql_over(frame, f"SELECT * FROM {steps_sql(steps, _VIEW, TIME)}")
    except PySparkException as error:
        shown = steps_sql(steps, "input").removeprefix("(").removesuffix(")")
        raise BadExpression(f"Spark cannot evaluate {shown}: {one_line(error.getMessage())}") from error


def _called(frame: DataFrame, step: Step) -> DataFrame:
    """The frame after the function of a step."""
    columns = step.declared(lambda name: frame.schema[name].dataType.simpleString())
    return frame.mapInArrow(_Call(step), f"{columns}, {TIME} bigint")


@dataclass(frozen=True)
class _Call:
    """The callable that Spark ships to the workers for a function."""

    step: Step

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        freeze_worker()
        for batch in batches:
            if batch.num_rows:
                yield from self.step.call(pa.Table.from_batches([batch])).combine_chunks().to_batches()


def _microseconds(stream: Stream) -> str:
    """The event time in microseconds since 1970; a time without a zone counts as UTC."""
    name = quoted(stream.time)
    if stream.time_type == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {name})"
    return f"unix_micros({name})"


def _escaped(text: str) -> str:
    return text.replace("'", "\\'")
