"""Rows as a user gives them, as record batches of the stream's schema; what does not fit is refused whole."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.errors import BadRows

__all__ = ["Rows", "as_batches", "pieces"]

Rows: TypeAlias = pa.RecordBatch | pa.Table | Sequence[Mapping[str, Any]]


def as_batches(rows: Rows, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The rows as batches of the schema, without a copy where they have it already.

    >>> schema = pa.schema([("speed", pa.float64())])
    >>> as_batches([{"speed": 50.0}, {"speed": None}], schema)[0].num_rows
    2
    >>> as_batches(pa.table({"sped": [1.0]}), schema)
    Traceback (most recent call last):
    penstock.errors.BadRows: the rows have columns sped double; the stream has speed double: rename them
    """
    if isinstance(rows, pa.RecordBatch | pa.Table):
        fitting = _fitted(rows, schema)
        batches = fitting.to_batches() if isinstance(fitting, pa.Table) else [fitting]
    else:
        batches = [_from_dicts(rows, schema)]
    for batch in batches:
        _check_nulls(batch)
    return batches


def pieces(batches: Sequence[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in pieces of at most so many rows and, but for single larger rows, bytes."""
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, rows)
            while piece.nbytes > size and piece.num_rows > 1:
                piece = piece.slice(0, piece.num_rows // 2)
            yield piece
            start += piece.num_rows


def _fitted(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    if rows.schema.equals(schema):
        return rows
    if rows.schema.names == schema.names:
        try:
            return rows.cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise BadRows(f"cannot cast {_words(rows.schema)} to {_words(schema)}: {error}") from error
    raise BadRows(
        f"the rows have columns {_words(rows.schema)}; the stream has {_words(schema)}: rename them"
    )


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    known = set(schema.names)
    for row in rows:
        if not isinstance(row, Mapping):
            raise BadRows(f"a row is {type(row).__name__}; give a RecordBatch, a Table or a list of dicts")
        if not known.issuperset(row):
            unknown = ", ".join(sorted(str(name) for name in row if name not in known))
            raise BadRows(f"a row has {unknown}; the stream has only {_words(schema)}")
    try:
        return pa.RecordBatch.from_pylist(list(rows), schema=schema)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadRows(f"rows do not fit {_words(schema)}: {error}") from error


def _check_nulls(batch: pa.RecordBatch) -> None:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise BadRows(f"column {field.name!r} has {column.null_count} nulls and is declared NOT NULL")


def _words(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
