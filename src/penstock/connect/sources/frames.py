"""The columns of a stream out of any DataFrame."""

from typing import TYPE_CHECKING, Any

from penstock.connect.source import ARRIVED, CORRUPT, REASON
from penstock.errors import BadSource, WrongType
from penstock.expressions.schema import Schema, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["own_columns"]


def own_columns(name: str, schema: Schema, frame: "DataFrame") -> "DataFrame":
    """The columns of stream `name`, which must have the declared types, and those that a source may add."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 -- declaring a stream needs no Spark

    found = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
    declared: Any = StructType.fromDDL(schema.ddl())
    for column, wanted in zip(schema.columns, declared, strict=True):
        given = found.get(column.name.lower())
        if given is None:
            raise BadSource(
                f"the DataFrame of stream {name!r} has no column {column.name!r}; it has "
                f"{', '.join(frame.columns)}"
            )
        if given != wanted.dataType.simpleString():
            raise WrongType(
                f"column {column.name!r} of stream {name!r} is declared {column.type}, but the DataFrame has "
                f"{given}; cast it or change the schema"
            )
    marks = [each for each in (CORRUPT, REASON, ARRIVED) if each in frame.columns]
    return frame.select(*(quoted(each) for each in (*schema.names, *marks)))
