"""Rows in memory, one element per epoch, for tests and notebooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from penstock.connect.source import Ahead, Offset, Reader, Source, SourceContext, Split
from penstock.durable import Purpose
from penstock.errors import BadSource
from penstock.expressions.schema import Column, Schema
from penstock.state.storage import Location

__all__ = ["RowsSource", "rows"]

ROWS_PER_SPLIT: Final = 131_072
"""Fewer rows than this are not worth a task of their own."""

_SUFFIX: Final = ".arrow"
_ROW_BYTES: Final = 64


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

    def open(self, context: SourceContext) -> "RowsReader":
        """Keep the rows in files of the checkpoint, one per epoch, so that a restart can replay them."""
        context.folder.make()
        kept = set(context.folder.names())
        for number, table in enumerate(self.batches):
            if _name(number) not in kept:
                _keep(context.folder, _name(number), table)
        context.folder.sync_names(Purpose.SOURCE)
        return RowsReader(self, context)

    def __repr__(self) -> str:
        return f"rows({len(self.batches):,} batches)"


class RowsReader(Reader):
    """The files of a checkpoint; an offset is how many were read."""

    def __init__(self, source: RowsSource, context: SourceContext) -> None:
        self._source, self._folder = source, context.folder
        self._count = sum(each.endswith(_SUFFIX) and each[0] != "_" for each in context.folder.names())

    def ahead(self, after: Offset) -> Ahead | None:
        """The next element, also if it is empty."""
        upto = _number(after) + 1
        if upto > self._count:
            return None
        left = sum(each.num_rows for each in self._source.batches[upto:])
        return Ahead({"batches": upto}, whole=upto == self._count, left=left)

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Split]:
        """The rows of each element, for as many tasks as they are worth."""
        found = []
        for number in range(_number(after), _number(upto)):
            with self._folder.input(_name(number)) as source, pa.ipc.open_file(source) as file:
                rows = sum(file.get_batch(each).num_rows for each in range(file.num_record_batches))
            pieces = max(1, min(tasks, rows // ROWS_PER_SPLIT))
            bounds = [rows * each // pieces for each in range(pieces + 1)]
            places = pairwise(bounds) if rows else ()
            found += [RowsSplit(self._folder, number, first, last) for first, last in places]
        return found


@dataclass(frozen=True)
class RowsSplit(Split):
    """Some rows of one element."""

    folder: Location
    number: int
    first: int
    last: int

    @property
    def size(self) -> int:
        """About its bytes."""
        return (self.last - self.first) * _ROW_BYTES

    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """Straight from the file, which is mapped into memory on a local disk."""
        with self.folder.input(_name(self.number)) as source, pa.ipc.open_file(source) as file:
            table = file.read_all().select(list(columns)).slice(self.first, self.last - self.first)
            yield from table.to_batches(max_chunksize=ROWS_PER_SPLIT)


def _name(number: int) -> str:
    return f"{number:08d}{_SUFFIX}"


def _number(offset: Offset) -> int:
    return int(offset.get("batches", 0))


def _keep(folder: Location, name: str, table: pa.Table) -> None:
    # Nulls are found by the run, also where the schema has none.
    schema = pa.schema([each.with_nullable(True) for each in table.schema])
    with folder.output(f"_{name}", Purpose.SOURCE) as stream, pa.ipc.new_file(stream, schema) as file:
        file.write_table(table.cast(schema).combine_chunks())
    folder.sync(f"_{name}", Purpose.SOURCE)
    folder.move(f"_{name}", name, Purpose.SOURCE)


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
