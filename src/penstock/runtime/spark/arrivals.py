"""The arrivals of an epoch: the tuples of every stream, from one streaming query.

Structured Streaming runs one plan, so the streams of a query enter it as a union in which each stream has
its own columns and a number. In `foreachBatch` they are separated again without a filter: every branch of
the union is the plan of one stream. Spark leaves out a branch whose source has nothing new, so a branch is
identified by its number, not by its place.
"""

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField

from penstock.query import Stream, quoted
from penstock.runtime.spark.plans import branches, from_plan, planned_rows

__all__ = ["Arrivals", "together"]

_NUMBER = "_ps_stream"
_NUMBERED = re.compile(rf"(\d+) AS {_NUMBER}#")


@dataclass(frozen=True)
class Arrivals:
    """The streams of a query and the columns of their marked frames."""

    streams: tuple[Stream, ...]
    columns: tuple[tuple[StructField, ...], ...]

    def apart(self, frame: DataFrame, query: StreamingQuery) -> dict[str, DataFrame]:
        """The marked tuples of each stream that has new ones."""
        if len(self.streams) == 1:
            return {self.streams[0].name: planned_rows(frame, query)}
        found = branches(query)
        numbered = [(_number_of(branch), branch) for branch in found or ()]
        if found is None or any(number is None for number, _ in numbered):
            every = range(len(self.streams))
            frames = [(number, frame.where(f"{_NUMBER} = {number}")) for number in every]
        else:
            frames = [(number, from_plan(frame, branch)) for number, branch in numbered if number is not None]
        return {self.streams[number].name: self._own(rows, number) for number, rows in frames}

    def _own(self, frame: DataFrame, number: int) -> DataFrame:
        return frame.selectExpr(
            *(
                f"{_column(number, place)} AS {quoted(field.name)}"
                for place, field in enumerate(self.columns[number])
            )
        )


def together(streams: tuple[Stream, ...], frames: list[DataFrame]) -> tuple[Arrivals, DataFrame]:
    """All streams as one frame, and how to separate them again."""
    columns = tuple(tuple(frame.schema.fields) for frame in frames)
    arrivals = Arrivals(streams, columns)
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
