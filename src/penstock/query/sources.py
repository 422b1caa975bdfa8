"""Where the tuples of a stream come from: declarations only, the runtime acts on them."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadSource
from penstock.expressions.durations import microseconds
from penstock.expressions.schema import Column, Schema

__all__ = [
    "DataFrameSource",
    "FilesSource",
    "GatesSource",
    "RowsSource",
    "Source",
    "dataframe",
    "files",
    "gates",
    "rows",
]

FORMATS: Final = ("parquet", "csv", "json", "orc")


@dataclass(frozen=True, slots=True)
class FilesSource:
    """Files under a path; ``files_per_epoch`` of None takes all that are there."""

    path: str
    format: str
    files_per_epoch: int | None
    live: bool
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DataFrameSource:
    """A Spark streaming DataFrame; ``bounded`` says that it comes to an end."""

    frame: Any
    bounded: bool


@dataclass(frozen=True, slots=True)
class RowsSource:
    """Rows in memory, one element for each epoch; tables once a stream has checked them."""

    batches: tuple[Any, ...] = field(hash=False)

    def conformed(self, schema: Schema) -> "RowsSource":
        """The same rows as Arrow tables of exactly this schema."""
        return RowsSource(tuple(_table(number, each, schema) for number, each in enumerate(self.batches)))


@dataclass(frozen=True, slots=True)
class GatesSource:
    """The streams of one inlet, out of gates; `patience` is in microseconds. Secrets are in no text."""

    addresses: tuple[str, ...]
    inlet: str | None
    stream_column: str | None
    rows_per_epoch: int | None
    patience: int
    token: str | None = field(default=None, repr=False)
    tls: Any = None

    def of(self, name: str, schema: Schema) -> "GatesSource":
        """The same for a stream of this name and schema."""
        if self.stream_column is None:
            return replace(self, inlet=self.inlet or name)
        column = schema.column(self.stream_column)
        if column.type != "string":
            raise BadSource(
                f"stream_column {column.name!r} of stream {name!r} is {column.type}; declare it as string, "
                "since it holds ids"
            )
        return replace(self, inlet=self.inlet or name, stream_column=column.name)


Source = FilesSource | DataFrameSource | RowsSource | GatesSource


def files(
    path: str | os.PathLike[str],
    format: str = "parquet",  # noqa: A002 -- Spark's own word
    *,
    files_per_epoch: int | None = None,
    live: bool = False,
    options: Mapping[str, str] | None = None,
) -> FilesSource:
    """Files in a directory or under a URI; with ``live`` files that appear later are read too.

    ``files_per_epoch`` limits how many files one epoch takes; None takes all that are there.
    ``options`` go to Spark's reader, such as ``{"header": "true"}`` for csv.
    """
    kind = format.lower()
    if kind == "text":
        raise BadSource("format 'text' has lines but no columns, so no event time; use csv or json")
    if kind not in FORMATS:
        raise BadSource(f"no format {format!r}; the formats are {', '.join(FORMATS)}")
    if files_per_epoch is not None and files_per_epoch < 1:
        raise BadSource(f"files_per_epoch={files_per_epoch}; give 1 or more, or None for all")
    return FilesSource(
        path=_path(path),
        format=kind,
        files_per_epoch=files_per_epoch,
        live=live,
        options=tuple(sorted((name, str(value)) for name, value in (options or {}).items())),
    )


def dataframe(frame: Any, *, bounded: bool = False) -> DataFrameSource:
    """Any Spark streaming DataFrame with the stream's columns; ``bounded`` if it comes to an end."""
    if not getattr(frame, "isStreaming", False):
        raise BadSource(f"got {type(frame).__name__} that is not streaming; read it with spark.readStream")
    return DataFrameSource(frame, bounded)


def rows(batches: Iterable[Any]) -> RowsSource:
    """Rows in memory, for tests and notebooks; each element becomes one epoch.

    An element is a pyarrow RecordBatch or Table, or a list of dicts.
    """
    if isinstance(batches, (pa.Table, pa.RecordBatch, Mapping, str)):
        raise BadSource(
            f"rows() got one {type(batches).__name__}; put it in a list, one element for each epoch"
        )
    return RowsSource(tuple(batches))


def gates(  # noqa: PLR0913 -- each is one documented property of the source
    address: str,
    *,
    inlet: str | None = None,
    stream_column: str | None = None,
    rows_per_epoch: int | None = None,
    patience: str | timedelta = "5 minutes",
    token: str | None = None,
    tls: Any = None,
) -> GatesSource:
    """Live streams that clients push to gates; a run over them has no end.

    ``address`` is a gate's or a controller's, or several with commas between. All streams of one ``inlet``
    are read, by default the one named as the stream; ``stream_column`` names the column of the schema that
    gets the id of each tuple's stream, which is what ``key`` wants. ``rows_per_epoch`` is shared fairly over
    the streams; None takes all that is there. ``patience`` is how long an epoch under way waits for a gate
    that is away. ``token`` is by default that of the variable PENSTOCK_TOKEN; ``tls`` is a ``penstock.TLS``.

    >>> gates("127.0.0.1:7400, 127.0.0.1:7401", token="sesame").addresses
    ('127.0.0.1:7400', '127.0.0.1:7401')
    """
    addresses = tuple(each.strip() for each in address.split(",")) if isinstance(address, str) else ()
    if not addresses or not all(addresses):
        raise BadSource(f"address {address!r}; give that of a gate or a controller, such as '127.0.0.1:7400'")
    if rows_per_epoch is not None and rows_per_epoch < 1:
        raise BadSource(f"rows_per_epoch={rows_per_epoch}; give 1 or more, or None for all")
    if inlet is not None and (not inlet or "/" in inlet):
        raise BadSource(f"inlet {inlet!r}; give what stands before the slash of the streams' ids")
    return GatesSource(
        addresses=addresses,
        inlet=inlet,
        stream_column=stream_column,
        rows_per_epoch=rows_per_epoch,
        patience=microseconds(patience),
        token=token,
        tls=tls,
    )


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if not isinstance(text, str) or not text:
        raise BadSource(f"path {path!r}; give a directory, a file or a URI")
    return text


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
            f"batch {number}, column {column.name!r}: cannot hold it as {column.type}: {error}"
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
            f"batch {number} has the column {unknown[0]!r}, which the schema has not; "
            f"the columns are {', '.join(schema.names)}"
        )
