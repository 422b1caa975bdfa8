"""A source as a user writes it: lines of a log, such as `2024-01-01T00:00:01Z a 7`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from penstock.connect import CORRUPT, Ahead, Offset, Reader, SourceContext, Split
from penstock.errors import BadSource
from penstock.expressions.schema import Schema

COLUMNS = ("time", "k", "n")
LINE = r"^(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:Z|\+00:00) (?P<k>\S+) (?P<n>\d{1,18})$"


@dataclass(frozen=True)
class LogSource(ps.Source):
    """Log files in a folder, each an epoch; a line that cannot be read goes to the rejects."""

    folder: str
    bounded: bool = True

    def conform(self, name: str, schema: Schema) -> "LogSource":
        if schema.names != COLUMNS:
            raise BadSource(f"a log has the columns {', '.join(COLUMNS)}; declare stream {name!r} with them")
        return self

    def open(self, context: SourceContext) -> "LogReader":
        del context  # a log needs no folder of its own: its files stay as they are
        return LogReader(self.folder)


@dataclass(frozen=True)
class LogReader(Reader):
    """The files by name; the offset is the last one that was read."""

    folder: str

    def ahead(self, after: Offset) -> Ahead | None:
        left = self._names(after.get("file", ""))
        return Ahead({"file": left[0]}, whole=len(left) == 1) if left else None

    def splits(self, after: Offset, upto: Offset, tasks: int) -> list[Split]:
        del tasks  # a file is not cut
        names = self._names(after.get("file", ""))
        return [LogSplit(f"{self.folder}/{name}") for name in names if name <= upto["file"]]

    def _names(self, after: str) -> list[str]:
        return sorted(each.name for each in Path(self.folder).glob("*.log") if each.name > after)


@dataclass(frozen=True)
class LogSplit(Split):
    """The lines of one file."""

    path: str

    @property
    def file(self) -> str:
        return self.path

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        lines = pa.array(Path(self.path).read_text().splitlines(), pa.string())
        found = pc.extract_regex(lines, LINE)
        time = pc.strptime(pc.struct_field(found, "time"), "%Y-%m-%dT%H:%M:%S", "us")
        every = {
            "time": pc.assume_timezone(time, "UTC"),
            "k": pc.struct_field(found, "k"),
            "n": pc.cast(pc.struct_field(found, "n"), pa.int64()),
            CORRUPT: pc.if_else(pc.is_null(found), lines, None),
        }
        yield pa.RecordBatch.from_pydict({name: every[name] for name in (*columns, CORRUPT)})
