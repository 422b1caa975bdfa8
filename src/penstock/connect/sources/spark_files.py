"""Files that Spark reads: text, where records can be malformed, and files that need Spark's rules."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.connect.source import ARRIVED, CORRUPT, FILE, REASON
from penstock.connect.sources.csv_headers import CsvHeader
from penstock.connect.sources.listing import File, hive_columns
from penstock.expressions.schema import Schema, quoted
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFiles"]

_TEXT: Final = ("csv", "json")
_OF_PATTERNS: Final = re.compile(r"([{}\[\]*?\\])")
# Options for whole files, which mean nothing for the text of one record.
_NOT_FOR_TEXT: Final = {"header", "enforceschema", "multiline", "linesep", "mode", "encoding", "charset"}
_LONGEST_VALUE: Final = 60


@dataclass(frozen=True)
class SparkFiles:
    """How Spark reads the files of one source.

    `place` is the folder of the source, or for a pattern one above all its files; then `base` is None, and
    folders in a path give no columns.
    """

    format: str
    options: Mapping[str, str]
    schema: Schema
    place: Location
    base: str | None
    stamped: bool

    @property
    def by_header(self) -> bool:
        """Whether columns are found by the header of each CSV file; Spark would go by position."""
        return self.format == "csv" and self.options.get("header", "").lower() == "true"

    def hive_columns(self, file: File) -> tuple[str, ...]:
        """The columns that folders in the path of a file give, in lower case."""
        return () if self.base is None else hive_columns(self.base, file.path)

    def ddl(self, file: File) -> str:
        """The columns of a file in the order in which Spark reads them."""
        if not self.by_header:
            return self.schema.ddl()
        header = CsvHeader.of(self.place, file.path, self.options)
        return header.ddl(self.schema, file.path, self.hive_columns(file))

    def frames(self, session: "SparkSession", files: Iterable[File]) -> "list[DataFrame]":
        """The tuples of some files; those that Spark can read together are one DataFrame."""
        groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for file in files:
            # Spark takes folders such as `day=1` only below one folder at a time, and with the same names.
            columns = self.hive_columns(file)
            above = re.split("/[^/]*=", file.path)[0] if columns else ""
            groups.setdefault((self.ddl(file), above, columns), []).append(self._uri(file))
        return [self._frame(session, ddl, paths) for (ddl, *_), paths in groups.items()]

    def _uri(self, file: File) -> str:
        """A path as Spark wants it: not as a pattern, also if its name looks like one."""
        path = _OF_PATTERNS.sub(r"\\\1", file.path)
        if self.place.local:
            return path
        uri = self.place.for_spark.partition("?")[0].rstrip("/")
        return f"{uri.removesuffix(self.place.path)}{path}"

    def _frame(self, session: "SparkSession", ddl: str, paths: Sequence[str]) -> "DataFrame":
        reader: Any = session.read.format(self.format).options(**self.options)
        if self.base is not None:
            reader = reader.option("basePath", self.place.for_spark)
        names = [quoted(name) for name in self.schema.names]
        names += [f"unix_micros(_metadata.file_modification_time) AS {ARRIVED}"] if self.stamped else []
        if self.format not in _TEXT:
            # Spark ignores NOT NULL in files; marking the tuples of an epoch finds nulls and sets them aside.
            plain: DataFrame = reader.schema(ddl).load(list(paths)).selectExpr(*names)
            return plain
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
        found: DataFrame = reader.schema(f"{ddl}, `{CORRUPT}` STRING").load(list(paths))
        columns = [(each.name, each.dataType.simpleString()) for each in found.schema if each.name != CORRUPT]
        file = f"nullif(input_file_name(), '') AS {FILE}"
        return found.selectExpr(*names, CORRUPT, f"{self._why(columns)} AS {REASON}", file)

    def _why(self, columns: list[tuple[str, str]]) -> str:
        """SQL for why a record is malformed: the record is parsed again with every column as text."""
        texts = ", ".join(f"{quoted(name)} string" for name, _ in columns)
        kept = {name: value for name, value in self.options.items() if name not in _NOT_FOR_TEXT}
        given = ", ".join(f"'{_escaped(name)}', '{_escaped(value)}'" for name, value in kept.items())
        options = f", map({given})" if given else ""
        parsed = f"from_{self.format}(`{CORRUPT}`, '{_escaped(texts)}'{options})"
        reasons = [
            f"CASE WHEN {quoted(name)} IS NULL AND {text} IS NOT NULL THEN concat("
            f"'column {_escaped(name)}: ', {_shown(text)}, ' is not {_escaped(type_)}') END"
            for name, type_, text in ((*each, f"{parsed}.{quoted(each[0])}") for each in columns)
        ]
        otherwise = (
            f"the record is malformed: expected {len(columns)} fields" if self.format == "csv" else
            "the record is malformed: expected a JSON object on one line"
        )  # fmt: skip
        told = f"nullif(concat_ws('; ', {', '.join(reasons)}), '')"
        return f"CASE WHEN `{CORRUPT}` IS NOT NULL THEN coalesce({told}, '{otherwise}') END"


def _shown(text: str) -> str:
    """SQL for a value in quotes, shortened if it is long."""
    longer = f"concat('\\'', left({text}, {_LONGEST_VALUE}), '…\\'')"
    return f"if(length({text}) > {_LONGEST_VALUE}, {longer}, concat('\\'', {text}, '\\''))"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
