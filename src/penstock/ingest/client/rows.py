"""Rows on their way into a client: as a user gives them, out of a file, at a steady rate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from penstock.errors import BadLimit, BadRows, BadSource

__all__ = ["FileRows", "Pace", "Rows", "as_batches", "pieces"]

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
    """The same rows in pieces of at most `rows` rows and `size` bytes, but at least one row."""
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


FORMATS: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


class FileRows:
    """A file that is read as it is pushed; only a few batches of it are in memory at a time."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise BadSource(f"no file {path}; give a Parquet, CSV or JSON file, or a folder of them")
        name = (
            path if path.is_file() else next((each for each in sorted(path.iterdir()) if each.suffix), path)
        )
        form = FORMATS.get(name.suffix.lower())
        if form is None:
            raise BadSource(f"{name} ends in {name.suffix!r}; give a file that ends in {', '.join(FORMATS)}")
        import pyarrow.dataset as ds  # noqa: PLC0415 -- it imports pandas: 75 MB that a gate does without

        try:
            self._dataset: Any = ds.dataset(str(path), format=form)
        except (pa.ArrowException, OSError) as error:
            raise BadSource(f"cannot read {path} as {form}: {error}") from error
        from penstock.expressions.schema import Schema  # noqa: PLC0415 -- it imports a parser of SQL

        self.schema = Schema.from_arrow(self._dataset.schema)

    def batches(self, skip: int = 0) -> Iterator[pa.RecordBatch]:
        """All rows after the first `skip`."""
        for batch in self._dataset.to_batches(batch_readahead=2, fragment_readahead=1):
            if batch.num_rows > skip:
                yield batch.slice(skip)
            skip = max(skip - batch.num_rows, 0)


STEP_SECONDS = 0.02


@dataclass
class Pace:
    """Rows per second from a start; without a rate, as fast as rows are taken. A delay causes no burst.

    >>> pace = Pace(rate=100.0, start=10.0)
    >>> pace.step, pace.pause(50, now=10.2)
    (2, 0.3)
    """

    rate: float | None
    start: float

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate > 0:
            raise BadLimit(f"the rate is {self.rate} rows per second; give a number above 0, or none")

    @property
    def step(self) -> int:
        """Rows to push at once: those of 20 ms, at least one; 10,000 without a rate."""
        return 10_000 if self.rate is None else max(1, round(self.rate * STEP_SECONDS))

    def pause(self, rows: int, now: float) -> float:
        """Seconds to wait after this many rows."""
        if self.rate is None:
            return 0.0
        ahead = self.start + rows / self.rate - now
        if ahead < -STEP_SECONDS:
            self.start -= ahead
        return round(max(ahead, 0.0), 6)
