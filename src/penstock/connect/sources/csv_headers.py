"""CSV files with a header: the columns of each file are found by their names.

Spark reads CSV by position, whatever the header says. Here the header of every file of an epoch is read on
the driver; files with the same header are then read together, with a schema in the order of their header.
Names match without regard to case and surrounding space. Columns that the stream does not have are skipped.
"""

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.checks import short
from penstock.errors import BadSource
from penstock.expressions.schema import Schema, quoted
from penstock.state.storage import Location

__all__ = ["CsvHeader"]

_MOST_BYTES: Final = 256 * 1024  # of a header


@dataclass(frozen=True)
class CsvHeader:
    """The names in the first line of a file; none if the file is empty."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, place: Location, path: str, options: Mapping[str, str]) -> "CsvHeader":
        """Read the header of a file on the filesystem of a place; a name tells whether it is compressed."""
        with place.files.open_input_stream(path) as stream:
            text = stream.read(_MOST_BYTES).decode(options.get("encoding", "utf-8"), errors="replace")
        comment = options.get("comment")
        lines = (
            line
            for line in io.StringIO(text.removeprefix("\ufeff"), newline="")
            if line.strip() and not (comment and line.startswith(comment))
        )
        separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
        if len(separator) > 1:
            names = next(lines, "").rstrip("\r\n").split(separator)
        else:
            names = next(csv.reader(lines, delimiter=separator, quotechar=options.get("quote") or '"'), [])
        return cls(tuple(each.strip() for each in names))

    def ddl(self, schema: Schema, file: str, in_path: Collection[str]) -> str:
        """The stream's columns in the order of this header, as Spark reads them; others are skipped.

        Columns that folders in the path give, such as `day=1`, are not expected in the file.
        """
        if not self.names:
            return schema.ddl()
        wanted = {each.name.lower(): each for each in schema.columns if each.name.lower() not in in_path}
        lowered = [name.lower() for name in self.names]
        for name, column in wanted.items():
            if lowered.count(name) != 1:
                wrong = "has no column" if name not in lowered else "has more than one column"
                header = short(", ".join(self.names))
                raise BadSource(
                    f"file {file} {wrong} {column.name!r}; its header is {header}. Correct the file "
                    "or the schema of the stream"
                )
        columns = [
            wanted[name].ddl() if name in wanted else f"{quoted(f'_ps_skipped_{place}')} string"
            for place, name in enumerate(lowered)
        ]
        return ", ".join([*columns, *(each.ddl() for each in schema.columns if each.name.lower() in in_path)])
