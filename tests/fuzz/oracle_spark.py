"""The text of a program over whole tables in a batch of Spark, word for word."""

import pyarrow as pa
from pyspark.sql import SparkSession

from fuzz.program import Program, tables_of
from fuzz.text import spark_text
from penstock.expressions.types import arrow_type

_WRONG_RULE = "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAggregates"
"""Sessions without an aggregate below MIN or DISTINCT: Spark's optimizer drops the grouping that merges them,
and leaves a session for each row. Without this rule it gives what it gives for the sub-query alone."""


def evaluate_on_spark(session: SparkSession, program: Program) -> pa.Table:
    """What Spark gives for the text of a verbatim program, in a session whose views are its own."""
    session = session.newSession()
    session.conf.set("spark.sql.session.timeZone", program.zone)
    session.conf.set("spark.sql.optimizer.excludedRules", _WRONG_RULE)
    for table in tables_of(program.query).values():
        place = table.names.index(table.time)
        rows = [row for row in table.rows if row[place] is not None]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
        arrays = [
            pa.array(values, arrow_type(each.type))
            for values, each in zip(columns, table.columns, strict=True)
        ]
        given = pa.Table.from_arrays(arrays, names=list(table.names))
        casts = [f"CAST(`{each.name}` AS {each.type}) AS `{each.name}`" for each in table.columns]
        session.createDataFrame(given).selectExpr(*casts).createOrReplaceTempView(table.name)
    return session.sql(spark_text(program)).toArrow()
