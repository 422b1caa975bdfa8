"""The arrivals of an epoch: the tuples of every stream, from one streaming query.

Structured Streaming runs one plan, so the streams of a query enter it as a union in which each stream has
its own columns and a number. In `foreachBatch` they are separated again without a filter: every branch of
the union is the plan of one stream. Spark leaves out a branch whose source has nothing new, so a branch is
identified by its number, not by its place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField

from penstock.connect import EpochTaken
from penstock.errors import BadSource
from penstock.query import Stream, quoted
from penstock.runtime.sources import OpenSource, bounded
from penstock.runtime.spark.plans import (
    branches,
    files_gone,
    files_of,
    files_taken,
    from_plan,
    planned_branches,
    planned_files,
    planned_rows,
)

__all__ = ["Arrivals", "together"]

_NUMBER = "_ps_stream"
_NUMBERED = re.compile(rf"(\d+) AS {_NUMBER}#")


@dataclass(frozen=True)
class Arrivals:
    """The streams of a query, their sources, and the columns of their frames."""

    sources: tuple[OpenSource, ...]
    columns: tuple[tuple[StructField, ...], ...]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of the query."""
        return tuple(each.stream for each in self.sources)

    def apart(self, frame: DataFrame, query: StreamingQuery) -> dict[str, DataFrame]:
        """The tuples of each stream that has new ones."""
        found = self._planned(frame, query)
        if not any(each.reads_files for each in self.sources):
            return found
        for source, branch in self._branches(query):
            if source.reads_files:
                found[source.stream.name] = source.read(frame.sparkSession, files_of(branch))
        return found

    def check_files(self, epoch: int, query: StreamingQuery) -> None:
        """Refuse an epoch if a file is gone that it was to read."""
        for source, branch in self._branches(query):
            gone = files_gone(branch)
            if gone:
                more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
                raise BadSource(
                    f"epoch {epoch}: {gone[0]}{more} of stream {source.stream.name!r} is gone; restore it, "
                    "or give the epoch up with penstock state DIR --abandon, then start again with the same "
                    "checkpoint"
                )

    def files_taken(self, query: StreamingQuery) -> dict[str, EpochTaken]:
        """The files that the epoch takes, of live streams: it matters whether those are all."""
        if all(map(bounded, self.streams)):
            return {}
        found = {}
        for source, branch in self._branches(query):
            files, size = files_taken(branch)
            found[source.stream.name] = EpochTaken(files=files, bytes=size)
        return found

    def _branches(self, query: StreamingQuery) -> Iterator[tuple[OpenSource, Any]]:
        """The streams with new tuples and the plans of their branches."""
        for branch in planned_branches(query):
            number = 0 if self.alone else _number_of(branch)
            if number is not None and number < len(self.sources):
                yield self.sources[number], branch

    @property
    def alone(self) -> bool:
        """Whether there is no union: one stream and no clock."""
        return len(self.columns) == 1

    def _planned(self, frame: DataFrame, query: StreamingQuery) -> dict[str, DataFrame]:
        files = dict(self._files(frame, query))
        if self.alone:
            return {self.streams[0].name: files[0] if files else planned_rows(frame, query)}
        found = branches(query)
        numbered = [(_number_of(branch), branch) for branch in found or ()]
        if found is None or any(number is None for number, _ in numbered):
            every = range(len(self.streams))
            frames = [(number, frame.where(f"{_NUMBER} = {number}")) for number in every]
        else:
            frames = [
                (number, files[number] if number in files else from_plan(frame, branch))
                for number, branch in numbered
                if number is not None
            ]
        return {
            self.streams[number].name: self._own(rows, number)
            for number, rows in frames
            if number < len(self.sources)
        }

    def _files(self, frame: DataFrame, query: StreamingQuery) -> Iterator[tuple[int, DataFrame]]:
        """The streams whose tuples are in files of which Spark may leave out columns."""
        for branch, rows in planned_files(frame, query):
            number = 0 if self.alone else _number_of(branch)
            if number is not None:
                yield number, rows

    def _own(self, frame: DataFrame, number: int) -> DataFrame:
        return frame.selectExpr(
            *(
                f"{_column(number, place)} AS {quoted(field.name)}"
                for place, field in enumerate(self.columns[number])
            )
        )


def together(sources: Sequence[OpenSource], clock: DataFrame | None = None) -> tuple[Arrivals, DataFrame]:
    """All streams as one frame, and how to separate them again.

    A `clock` is one more branch, whose rows nobody reads: with it, epochs run when no stream has tuples.
    """
    frames = [each.frame for each in sources] + ([] if clock is None else [clock])
    columns = tuple(tuple(frame.schema.fields) for frame in frames)
    arrivals = Arrivals(tuple(sources), columns)
    if len(frames) == 1:
        return arrivals, frames[0]
    united: DataFrame | None = None
    for number, frame in enumerate(frames):
        chosen = [f"{number} AS {_NUMBER}"]
        for other, fields in enumerate(columns):
            for place, field in enumerate(fields):
                name = _column(other, place)
                value = quoted(field.name) if other == number else "NULL"
                chosen.append(f"cast({value} AS {field.dataType.simpleString()}) AS {name}")
        own = frame.selectExpr(*chosen)
        united = own if united is None else united.unionAll(own)
    assert united is not None
    return arrivals, united


def _column(stream: int, place: int) -> str:
    return f"_ps_s{stream}_{place}"


def _number_of(branch: Any) -> int | None:
    if not branch.getClass().getSimpleName().startswith("Project"):
        return None
    found = _NUMBERED.match(branch.projectList().head().toString())
    return int(found.group(1)) if found else None
