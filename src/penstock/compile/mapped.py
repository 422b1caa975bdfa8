"""A user's function over Arrow, called with the columns it was told of and checked for what it returns."""

from typing import Any

import pyarrow as pa

from penstock.compile.lifts import TIME
from penstock.errors import BadMap
from penstock.query import Map

__all__ = ["mapped"]


def mapped(step: Map, table: Any) -> Any:
    """The rows of a table with the columns that the map makes, those that pass by, and the event time."""
    given = table.select(list(step.given.names)).combine_chunks()
    batches = given.to_batches() or [pa.RecordBatch.from_pylist([], schema=given.schema)]
    made = pa.Table.from_batches([_called(step, batch) for batch in batches])
    carried = [TIME] if TIME in table.column_names else []
    columns = [*table.select(list(step.kept)).columns, *made.columns, *table.select(carried).columns]
    return pa.table(columns, names=[*step.kept, *made.column_names, *carried])


def _called(step: Map, batch: Any) -> Any:
    made = step.function(batch)
    if not isinstance(made, pa.RecordBatch):
        raise BadMap(f"{step} returned {type(made).__name__}; return a pyarrow.RecordBatch")
    if made.num_rows != batch.num_rows:
        raise BadMap(
            f"{step} returned {made.num_rows} rows for {batch.num_rows}; return one for each, in order, and "
            "leave rows out with where()"
        )
    schema = step.made.arrow()
    lacking = [name for name in schema.names if name not in made.schema.names]
    if lacking:
        raise BadMap(f"{step} returned no column {lacking[0]!r}; its schema has {', '.join(schema.names)}")
    try:
        return made.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadMap(f"{step} returned {made.schema}, which cannot be held as declared: {error}") from error
