"""A source as a user writes it: lines of a log, such as `2024-01-01T00:00:01Z a 7`."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

import penstock as ps
from penstock.connect import CORRUPT, SourceContext
from penstock.errors import BadSource
from penstock.expressions.schema import Schema

COLUMNS = ("time", "k", "n")


@dataclass(frozen=True)
class LogSource(ps.Source):
    """Log files in a folder; a line that cannot be read goes to the rejects."""

    folder: str
    bounded: bool = True

    def conform(self, name: str, schema: Schema) -> "LogSource":
        if schema.names != COLUMNS:
            raise BadSource(f"a log has the columns {', '.join(COLUMNS)}; declare stream {name!r} with them")
        return self

    def open(self, context: SourceContext) -> DataFrame:
        lines = context.session.readStream.option("maxFilesPerTrigger", 1).text(self.folder)
        fields = lines.selectExpr("value", "split(value, ' ') AS field")
        return fields.selectExpr(
            "try_cast(get(field, 0) AS timestamp) AS time",
            "get(field, 1) AS k",
            "try_cast(get(field, 2) AS bigint) AS n",
            f"CASE WHEN size(field) != 3 THEN value END AS {CORRUPT}",
        )
