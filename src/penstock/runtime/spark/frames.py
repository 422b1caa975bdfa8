"""Steps in Spark SQL: what Spark alone can evaluate, and the types of everything, as its analyzer tells them.

Every frame has the visible columns and the event time in microseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.columns import TIME
from penstock.errors import BadExpression
from penstock.expressions.types import struct_of
from penstock.operators import Step
from penstock.operators.exchange import Exchange
from penstock.operators.kernel import Describe
from penstock.runtime.spark.failures import one_line
from penstock.runtime.spark.worker_heap import freeze_worker

__all__ = ["describe", "empty_frame", "exchanged", "reads_nothing", "stepped", "typed", "unknown_frame"]

_VIEW = "_ps_rows"
_ONE_VIEW = Lock()
_ROW = "_ps_row"


def empty_frame(session: SparkSession, schema: Any) -> DataFrame:
    """A frame of these columns without rows."""
    nullable = pa.schema([each.with_nullable(True) for each in schema])
    return session.createDataFrame([], from_arrow_schema(nullable))


def unknown_frame(session: SparkSession, schema: Any) -> DataFrame:
    """A frame of these columns of whose rows Spark knows nothing."""
    return session.createDataFrame(session.sparkContext.emptyRDD(), from_arrow_schema(schema))


def reads_nothing(frame: DataFrame) -> bool:
    """Whether Spark has found out that a frame is empty, and so reads none of the rows behind it."""
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()  # noqa: SLF001 -- plans have no public door
    names = [leaves.apply(place).getClass().getSimpleName() for place in range(leaves.size())]
    return not any(name == "LogicalRDD" for name in names)


def typed(session: SparkSession, schema: Any, steps: tuple[Step, ...]) -> DataFrame:
    """A frame without rows after steps over these columns; by it Spark's analyzer tells types."""
    return stepped(empty_frame(session, schema), steps)


def stepped(frame: DataFrame, steps: tuple[Step, ...]) -> DataFrame:
    """A frame after stateless steps."""
    pending: list[Step] = []
    for step in steps:
        if step.calls:
            frame = _called(_flushed(frame, pending), step)
        else:
            pending.append(step)
    return _flushed(frame, pending)


def exchanged(frame: DataFrame, exchange: Exchange) -> DataFrame:
    """What an exchange sends, where Spark evaluates it: its columns, or partials that only Spark can form."""
    columns = [f"{each.sql} AS `{each.name}`" for each in exchange.columns if each.name != TIME]
    if exchange.combine is None or not exchange.combine.sql:
        return _sql_over(frame, f"SELECT {', '.join([*columns, TIME])} FROM {_VIEW}")
    bucket = exchange.bucket
    assert bucket is not None
    keyed = [f"{each.sql} AS `{each.name}`" for each in exchange.columns if each.name in exchange.keys]
    placed = ["*", *keyed, f"{bucket.sql} AS `{bucket.name}`"]
    placed += [f"monotonically_increasing_id() AS {_ROW}"] if exchange.combine.rowwise else []
    by = [f"`{name}`" for name in [*exchange.keys, bucket.name]]
    aggregates = [f"{sql} AS `{name}`" for name, sql in exchange.combine.sql]
    grouped = [*by, *([_ROW] if exchange.combine.rowwise else [])]
    rows = f"(SELECT {', '.join(placed)} FROM {_VIEW})"
    return _sql_over(
        frame, f"SELECT {', '.join([*by, *aggregates])} FROM {rows} GROUP BY {', '.join(grouped)}"
    )


def describe(empty: DataFrame) -> Describe:
    """Check expressions over a frame with Spark's analyzer."""

    def types(expressions: list[str]) -> list[tuple[str, bool]]:
        try:
            fields = empty.selectExpr(*expressions).schema.fields if expressions else []
        except PySparkException as error:
            raise BadExpression(
                f"Spark cannot evaluate {'; '.join(expressions)}: {one_line(error.getMessage())}"
            ) from error
        return [(_type_of(field.dataType), field.nullable) for field in fields]

    return types


def _type_of(kind: DataType) -> str:
    """A type as text that can be read again, which Spark's own cannot where fields have odd names."""
    match kind:
        case StructType():
            return struct_of([(each.name, _type_of(each.dataType)) for each in kind])
        case ArrayType():
            return f"array<{_type_of(kind.elementType)}>"
        case MapType():
            return f"map<{_type_of(kind.keyType)},{_type_of(kind.valueType)}>"
    return kind.simpleString()


def _sql_over(frame: DataFrame, text: str) -> DataFrame:
    """A query over `_ps_rows`, which is the frame.

    Spark reads the view while it analyses the text; a run that starts at the same time in the same session
    would replace it.
    """
    with _ONE_VIEW:
        frame.createOrReplaceTempView(_VIEW)
        return frame.sparkSession.sql(text)


def _steps_sql(steps: tuple[Step, ...], source: str, *carried: str) -> str:
    """Steps that call no function, as one SELECT over `source`; `carried` columns pass through unseen."""
    for step in steps:
        source = step.select(source, *carried)
    return source


def _flushed(frame: DataFrame, pending: list[Step]) -> DataFrame:
    if not pending:
        return frame
    steps = tuple(pending)
    pending.clear()
    try:
        return _sql_over(frame, f"SELECT * FROM {_steps_sql(steps, _VIEW, TIME)}")
    except PySparkException as error:
        shown = _steps_sql(steps, "input").removeprefix("(").removesuffix(")")
        raise BadExpression(f"Spark cannot evaluate {shown}: {one_line(error.getMessage())}") from error


def _called(frame: DataFrame, step: Step) -> DataFrame:
    """The frame after the function of a step."""
    columns = step.declared(lambda name: _type_of(frame.schema[name].dataType))
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
