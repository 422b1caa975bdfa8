"""The stateless prefix in Spark SQL: from the tuples of a source to the columns that a query needs.

A tuple that does not fit the schema is marked with the reason and carried along, so that the
epoch can set it aside and count it without reading the source twice.
"""

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.compile import Describe, WindowPlan
from penstock.errors import BadExpression
from penstock.query import Query, Relation, Stream, Where
from penstock.runtime.keyed import KEY
from penstock.runtime.segments import PANE

__all__ = ["CORRUPT", "RECORD", "REJECT", "REJECTED", "describe", "late_columns", "prefixed"]

REJECT = "_ps_reject"
RECORD = "_ps_record"
CORRUPT = "_ps_corrupt"
# A pane that no tuple has; the smallest bigint has no literal in SQL.
REJECTED = -(2**63) + 1


def describe(session: SparkSession, relation: Relation) -> Describe:
    """What Spark's analyzer says about expressions over a relation."""
    empty = session.createDataFrame([], relation.stream.schema.ddl())
    prefix = _stepped(_marked(empty, relation.stream), relation)

    def types(expressions: list[str]) -> list[tuple[str, bool]]:
        try:
            fields = prefix.selectExpr(*expressions).schema.fields if expressions else []
        except AnalysisException as error:
            raise BadExpression(
                f"Spark cannot evaluate {'; '.join(expressions)}: {error.getMessage()}"
            ) from error
        return [(field.dataType.simpleString(), field.nullable) for field in fields]

    return types


def prefixed(frame: DataFrame, query: Query, plan: WindowPlan) -> DataFrame:
    """The columns in sight, those carried on, the keys under names of their own, the pane, and the marks.

    Nothing in here changes from epoch to epoch, so the JVM keeps the code that it compiled for the
    hot loop; what is late is judged after the combine.
    """
    stepped = _stepped(_marked(frame, query.relation.stream), query.relation)
    keys = [f"{key.sql} AS `{KEY.format(place)}`" for place, key in enumerate(plan.keys)]
    pane = f"CASE WHEN {REJECT} IS NOT NULL THEN {REJECTED}L ELSE {plan.pane} END AS `{PANE}`"
    return stepped.selectExpr("*", *keys, pane)


def late_columns(query: Query) -> list[str]:
    """The columns of a tuple as the window sees it, the event time among them."""
    relation = query.relation
    hidden = [name for name in relation.stream.carried() if name not in relation.schema]
    return [*hidden, *relation.schema.names]


def _marked(frame: DataFrame, stream: Stream) -> DataFrame:
    """Every tuple with the reason why it does not fit, if there is one, and then its text."""
    corrupt = CORRUPT in frame.columns
    reasons = [f"WHEN `{CORRUPT}` IS NOT NULL THEN 'the record is malformed'"] if corrupt else []
    reasons += [
        f"WHEN `{column.name}` IS NULL THEN '{_quoted(column.name)} is null'"
        for column in stream.schema.columns
        if column.name == stream.time or not column.nullable
    ]
    reason = f"CASE {' '.join(reasons)} END"
    names = [f"`{name}`" for name in stream.schema.names]
    text = f"to_json(struct({', '.join(names)}))"
    record = f"coalesce(`{CORRUPT}`, {text})" if corrupt else text
    marked = frame.selectExpr(*names, *([f"`{CORRUPT}`"] if corrupt else []), f"{reason} AS {REJECT}")
    return marked.selectExpr(*names, REJECT, f"CASE WHEN {REJECT} IS NOT NULL THEN {record} END AS {RECORD}")


def _stepped(frame: DataFrame, relation: Relation) -> DataFrame:
    for step in relation.steps:
        if isinstance(step, Where):
            frame = frame.where(f"{REJECT} IS NOT NULL OR ({step.expression.sql})")
        else:
            columns: list[Any] = [f"{each.sql} AS `{name}`" for name, each in step.columns]
            hidden = [f"`{name}`" for name in step.hidden]
            frame = frame.selectExpr(*columns, *hidden, REJECT, RECORD)
    return frame


def _quoted(text: str) -> str:
    return text.replace("'", "\\'")
