"""Files whose tuples workers read as Arrow: Parquet and Arrow IPC, cut by the parts that they have.

A Parquet file is read so if that gives what Spark would read from it. Its footer decides, on the driver: the
columns of the stream must be there under the same names and with types of the same values. Everything else
has rules of Spark's own, and Spark reads the file: columns that are missing or differ in case, wider or
narrower types, INT96, calendars of old versions. Spark cannot read Arrow files, so there these are errors.

ORC is left to Spark, because every stream has an event time. Most files have timestamps without a zone, which
Spark takes from the JVM. Arrow reads all of them in nanoseconds, which end in 2262, and does not tell the
calendar of dates; so even for instants the footer cannot say whether both would read the same.
"""

import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.connect.source import ARRIVED, Split
from penstock.connect.sources.listing import File
from penstock.errors import BadSource
from penstock.expressions.types import from_arrow
from penstock.state.storage import Location

__all__ = [
    "BATCH_ROWS",
    "ArrowSplit",
    "FileSplit",
    "ParquetSplit",
    "Parts",
    "arrow_parts",
    "cut",
    "parquet_parts",
]

BATCH_ROWS: Final = 131_072
"""The most rows of a batch, and the least for which a part of a file is cut once more."""

_SPARK: Final = b"org.apache.spark."
_LEGACY: Final = (_SPARK + b"legacyDateTime", _SPARK + b"legacyINT96")
_FIRST_CORRECT: Final = 3  # the version of Spark that writes dates before 1582 as everybody does
_LARGE: Final = 16 * 2**20  # bytes of a record batch that is worth several tasks
_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARIES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
# The groups that Parquet prescribes for lists and maps; others are read by older rules.
_REPEATED: Final = re.compile(r"\.(?:list\.(?:element|item)|key_value\.(?:key|value))(?=\.|$)")


@dataclass(frozen=True)
class FileSplit(Split):
    """Some parts of a file, `[first, last)`; of a single large part perhaps only the rows `piece`.

    `place` is a location on the same filesystem, `schema` has every column that can be asked for, and
    `arrived` is the time that live sources give their tuples.
    """

    place: str
    path: str
    schema: Any
    arrived: int | None
    first: int
    last: int
    bytes: int
    piece: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """In bytes of the file."""
        return max(1, self.bytes)

    @property
    def file(self) -> str:
        """The file that it reads."""
        return self.path

    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """The columns of the schema, cast where the file has another type for the same values."""
        names = [name for name in columns if name != ARRIVED]
        fields = [self.schema.field(name) for name in names]
        if self.arrived is not None:
            fields.append(pa.field(ARRIVED, pa.int64()))
        for batch in self._piece(self._batches(names)):
            arrays = [conformed(batch.column(name), self.schema.field(name).type) for name in names]
            if self.arrived is not None:
                arrays.append(pa.repeat(pa.scalar(self.arrived, pa.int64()), batch.num_rows))
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    @abstractmethod
    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        """The rows of the parts in the file's own types, in batches of any size."""

    def _piece(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches of a limited size, without the rows that belong to other splits."""
        at = 0
        first, last = self.piece or (0, sys.maxsize)
        for batch in batches:
            low, high = max(first - at, 0), min(last - at, batch.num_rows)
            for start in range(low, high, BATCH_ROWS):
                yield batch.slice(start, min(BATCH_ROWS, high - start))
            at += batch.num_rows
            if at >= last:
                return

    def _open(self) -> Any:
        return Location(self.place).files.open_input_file(self.path)


class ParquetSplit(FileSplit):
    """Row groups of a Parquet file."""

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        with self._open() as source, pq.ParquetFile(source) as file:
            groups = range(self.first, self.last)
            yield from file.iter_batches(BATCH_ROWS, groups, columns=list(names), use_threads=False)


class ArrowSplit(FileSplit):
    """Record batches of an Arrow IPC file."""

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        with self._open() as source:
            places = _places(pa.ipc.open_file(source).schema, names)
            options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
            with pa.ipc.open_file(source, options=options) as file:
                # The file keeps its own order of columns.
                order = [sorted(places).index(place) for place in places]
                for number in range(self.first, self.last):
                    batch = file.get_batch(number)
                    columns = [batch.column(each) for each in order]
                    yield pa.RecordBatch.from_arrays(columns, names=list(names))


@dataclass(frozen=True)
class Parts:
    """A file that workers read: the rows and bytes of each of its parts."""

    split: type[FileSplit]
    file: File
    rows: tuple[int, ...]
    bytes: tuple[int, ...]


def parquet_parts(place: Location, file: File, schema: Any, *, calendar: bool) -> Parts | None:
    """The row groups of a Parquet file, None if Spark has to read it.

    `calendar` says that Spark takes dates of files that it has not written as they are.
    """
    try:
        with place.files.open_input_file(file.path) as source, pq.ParquetFile(source) as parquet:
            metadata, found = parquet.metadata, parquet.schema_arrow
    except (pa.ArrowException, OSError):
        return None  # Spark says what is wrong with it
    if not (_is_plain(metadata, calendar=calendar) and _has_all(found, schema)):
        return None
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return Parts(
        ParquetSplit,
        file,
        tuple(each.num_rows for each in groups),
        tuple(each.total_byte_size for each in groups),
    )


def arrow_parts(place: Location, file: File, schema: Any) -> Parts:
    """The record batches of an Arrow IPC file, which has to have the columns of the stream."""
    try:
        with place.files.open_input_file(file.path) as source, pa.ipc.open_file(source) as arrow:
            _check_arrow(file, arrow.schema, schema)
            count, places = arrow.num_record_batches, _places(arrow.schema, schema.names[:1])
    except (pa.ArrowException, OSError) as error:
        raise BadSource(f"{file.path} is no Arrow IPC file: {error}; restore or remove it") from error
    rows = (1,) * count
    if place.local and count and file.size // count > _LARGE:
        # How many rows a batch has is only known from the batch itself; a map of the file reads little of it.
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with pa.memory_map(file.path) as source, pa.ipc.open_file(source, options=options) as arrow:
            rows = tuple(arrow.get_batch(number).num_rows for number in range(count))
    return Parts(ArrowSplit, file, rows, (file.size // max(1, count),) * count)


def cut(
    files: Sequence[Parts], tasks: int, place: Location, schema: Any, *, stamped: bool
) -> list[FileSplit]:
    """The splits of some files: neighbouring parts together, and a large part in pieces, if tasks lack work.

    Whoever reads a piece decodes the whole part: two tasks that do so end before one that has all the rows.
    """
    most = max(1, -(-sum(sum(each.bytes) for each in files) // tasks))
    found = []
    for each in files:
        arrived = each.file.changed // 1000 if stamped else None
        for first, last, pieces in _runs(each, most):
            rows, size = sum(each.rows[first:last]), sum(each.bytes[first:last])
            bounds = [rows * number // pieces for number in range(pieces + 1)]
            for low, high in pairwise(bounds):
                piece = None if pieces == 1 else (low, high)
                about = (place.uri, each.file.path, schema, arrived, first, last)
                found.append(each.split(*about, size * (high - low) // max(1, rows), piece))
    return found


def _runs(parts: Parts, most: int) -> Iterator[tuple[int, int, int]]:
    """Neighbouring parts `[first, last)` of about so many bytes, and the pieces in which each run is read."""
    first = held = 0
    for number, (rows, size) in enumerate(zip(parts.rows, parts.bytes, strict=True)):
        pieces = min(-(-size // most), rows // BATCH_ROWS)
        if first < number and (held + size > most or pieces > 1):
            yield first, number, 1
            first, held = number, 0
        if pieces > 1:
            yield number, number + 1, pieces
            first, held = number + 1, 0
        elif rows or first < number:
            held += size
        else:
            first = number + 1
    if first < len(parts.rows):
        yield first, len(parts.rows), 1


def _is_plain(metadata: Any, *, calendar: bool) -> bool:
    """Whether a Parquet file has nothing for which Spark has rules of its own."""
    about = metadata.metadata or {}
    version = about.get(_SPARK + b"version", b"").split(b".")[0]
    modern = int(version) >= _FIRST_CORRECT if version.isdigit() else calendar
    if not modern or any(key in about for key in _LEGACY):
        return False
    columns = map(metadata.schema.column, range(len(metadata.schema)))
    return all(
        each.physical_type != "INT96" and len(_REPEATED.findall(each.path)) == each.max_repetition_level
        for each in columns
    )


def _has_all(found: Any, schema: Any) -> bool:
    lowered = [name.lower() for name in found.names]
    return all(
        lowered.count(field.name.lower()) == 1
        and field.name in found.names
        and _same_values(found.field(field.name).type, field.type)
        for field in schema
    )


def _same_values(found: Any, wanted: Any) -> bool:  # noqa: PLR0911 -- one for each kind of type
    """Whether a cast from one type to the other leaves every value as it is."""
    if pa.types.is_dictionary(found):
        return _same_values(found.value_type, wanted)
    if pa.types.is_timestamp(wanted):
        return pa.types.is_timestamp(found) and found.unit != "ns" and bool(found.tz) == bool(wanted.tz)
    if pa.types.is_map(wanted):
        return (
            pa.types.is_map(found)
            and _same_values(found.key_type, wanted.key_type)
            and _same_values(found.item_type, wanted.item_type)
        )
    if pa.types.is_struct(wanted):
        return (
            pa.types.is_struct(found)
            and [each.name for each in found] == [each.name for each in wanted]
            and all(_same_values(one.type, two.type) for one, two in zip(found, wanted, strict=True))
        )
    if pa.types.is_list(wanted):
        lists = pa.types.is_list(found) or pa.types.is_large_list(found)
        return lists and _same_values(found.value_type, wanted.value_type)
    if pa.types.is_string(wanted):
        return any(fits(found) for fits in _STRINGS)
    if pa.types.is_binary(wanted):
        return any(fits(found) for fits in _BINARIES)
    return bool(found == wanted)


def conformed(column: Any, wanted: Any) -> Any:
    """A column with exactly this type; the names and nullability of nested fields are part of it."""
    if column.type == wanted and not pa.types.is_nested(wanted):
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")
    return column.cast(wanted)


def _check_arrow(file: File, found: Any, schema: Any) -> None:
    lowered = [name.lower() for name in found.names]
    for field in schema:
        if lowered.count(field.name.lower()) != 1:
            wrong = "has no column" if field.name.lower() not in lowered else "has more than one column"
            raise BadSource(
                f"file {file.path} {wrong} {field.name!r}; it has {', '.join(found.names)}. Correct the file "
                "or the schema of the stream"
            )
        given = found.field(lowered.index(field.name.lower())).type
        nanoseconds = pa.types.is_timestamp(given) and given.unit == "ns"
        if not _same_values(given, field.type) and not (
            nanoseconds and from_arrow(given) == from_arrow(field.type)
        ):
            raise BadSource(
                f"column {field.name!r} of file {file.path} is {given}, declared is "
                f"{from_arrow(field.type)}. Correct the file or the schema of the stream"
            )


def _places(schema: Any, names: Sequence[str]) -> list[int]:
    """Where columns are, without regard to case."""
    lowered = [name.lower() for name in schema.names]
    return [lowered.index(name.lower()) for name in names]
