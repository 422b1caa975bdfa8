"""Rows in memory, one element per epoch, for tests and notebooks."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connect.source import Source, SourceContext
from penstock.connect.sources.files import FilesSource
from penstock.durable import Purpose
from penstock.errors import BadSource
from penstock.expressions.schema import Column, Schema
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RowsSource", "rows"]


@dataclass(frozen=True, repr=False)
class RowsSource(Source):
    """Rows in memory, one element per epoch; they become Arrow tables when a stream checks them."""

    batches: tuple[Any, ...] = field(hash=False)

    @property
    def bounded(self) -> bool:
        """The source ends with the last element."""
        return True

    def conform(self, name: str, schema: Schema) -> "RowsSource":
        """The same rows as Arrow tables of exactly this schema."""
        del name
        return replace(
            self, batches=tuple(_table(number, each, schema) for number, each in enumerate(self.batches))
        )

    def open(self, context: SourceContext) -> "DataFrame":
        """Read the rows from files of the checkpoint, one per epoch, so that a restart can replay them."""
        folder = context.folder
        folder.make()
        for number, table in enumerate(self.batches):
            _keep(folder, number, table)
        return FilesSource(folder.uri, "parquet", files_per_epoch=1, live=False, options=()).stream(context)

    def __repr__(self) -> str:
        return f"rows({len(self.batches):,} batches)"


def _keep(folder: Location, number: int, table: pa.Table) -> None:
    name = f"{number:08d}.parquet"
    if not folder.has(name):
        with folder.output(f"_{name}", Purpose.SOURCE) as stream:
            pq.write_table(table, stream)
        folder.sync(f"_{name}", Purpose.SOURCE)
        folder.move(f"_{name}", name, Purpose.SOURCE)
        folder.sync_names(Purpose.SOURCE)
    if folder.local:
        # Spark reads files in the order of their modification time, to the millisecond. A kill or a loss of
        # power may have come before the time was set or on disk, so it is set at every start.
        os.utime(f"{folder.path}/{name}", (1_000_000_000 + number, 1_000_000_000 + number))


def rows(batches: Iterable[Any]) -> RowsSource:
    """Rows in memory, for tests and notebooks; each element becomes one epoch.

    An element is a pyarrow RecordBatch or Table, or a list of dicts.

    >>> rows([[{"n": 1}], []])
    rows(2 batches)
    """
    if isinstance(batches, (pa.Table, pa.RecordBatch, Mapping, str)):
        raise BadSource(f"rows() got one {type(batches).__name__}; put it in a list, one element per epoch")
    if not isinstance(batches, Iterable):
        raise BadSource(f"rows() got {type(batches).__name__}; give a list, one element per epoch")
    return RowsSource(tuple(batches))


def _table(number: int, batch: object, schema: Schema) -> pa.Table:
    if isinstance(batch, pa.RecordBatch):
        return _from_table(number, pa.Table.from_batches([batch]), schema)
    if isinstance(batch, pa.Table):
        return _from_table(number, batch, schema)
    if isinstance(batch, list) and all(isinstance(each, Mapping) for each in batch):
        return _from_dicts(number, batch, schema)
    raise BadSource(
        f"batch {number} is {type(batch).__name__}; give a RecordBatch, a Table or a list of dicts"
    )


def _from_table(number: int, table: pa.Table, schema: Schema) -> pa.Table:
    by_name = {name.lower(): index for index, name in enumerate(table.column_names)}
    _check_known(number, table.column_names, schema)
    arrays = []
    for column, want in zip(schema.columns, schema.arrow(), strict=True):
        if column.name.lower() in by_name:
            values = table.column(by_name[column.name.lower()])
            arrays.append(_checked(number, column, lambda values=values, want=want: values.cast(want.type)))
        else:
            arrays.append(_checked(number, column, lambda want=want: pa.nulls(table.num_rows, want.type)))
    return pa.table(arrays, schema=schema.arrow())


def _from_dicts(number: int, batch: list[Mapping[str, Any]], schema: Schema) -> pa.Table:
    _check_known(number, dict.fromkeys(name for each in batch for name in each), schema)
    lowered = [{name.lower(): value for name, value in each.items()} for each in batch]
    arrays = []
    for column, want in zip(schema.columns, schema.arrow(), strict=True):
        values = [each.get(column.name.lower()) for each in lowered]
        arrays.append(_checked(number, column, lambda values=values, want=want: pa.array(values, want.type)))
    return pa.table(arrays, schema=schema.arrow())


def _checked(number: int, column: Column, make: Any) -> pa.Array:
    try:
        made = make()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BadSource(
            f"batch {number}, column {column.name!r}: cannot convert the values to {column.type}: {error}"
        ) from error
    if made.null_count and not column.nullable:
        raise BadSource(
            f"batch {number}, column {column.name!r}: {made.null_count} nulls, but it is NOT NULL"
        )
    return made


def _check_known(number: int, names: Iterable[str], schema: Schema) -> None:
    unknown = [name for name in names if name not in schema]
    if unknown:
        raise BadSource(
            f"batch {number} has the column {unknown[0]!r}, which the schema does not have; "
            f"the columns are {', '.join(schema.names)}"
        )
