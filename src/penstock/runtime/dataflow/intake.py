"""The intake of a stream: its batches with their event time, without those tuples that are set aside.

A tuple that does not fit the schema is a reject, with the reason and its text. A tuple below the bound of its
stream is late. Both are few, so only for them are columns read that nobody else needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import TIME
from penstock.connect import ARRIVED, CORRUPT, FILE, REASON
from penstock.expressions.duck import evaluate
from penstock.expressions.durations import words
from penstock.expressions.types import from_arrow
from penstock.functions import duck_name
from penstock.query import Stream
from penstock.runtime.dataflow.receipts import StreamSeen

__all__ = ["REJECTS", "Intake", "Taken"]

REJECTS = pa.schema([("reason", pa.string()), ("record", pa.string()), ("file", pa.string())])

_Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Taken:
    """A batch after the intake: the tuples that stages get, and which tuples of the batch are set aside."""

    rows: Any
    rejected: _Mask | None
    late: _Mask | None
    seen: StreamSeen


@dataclass(frozen=True)
class Intake:
    """How the batches of a stream are taken in.

    `needed` are the columns that anything after it reads, with those that decide whether a tuple fits.
    """

    name: str
    schema: Any
    time: str
    required: tuple[tuple[str, str], ...]
    needed: tuple[str, ...]
    ahead: int | None
    key: str | None

    @classmethod
    def of(cls, stream: Stream, read: Sequence[str]) -> "Intake":
        """The intake of a stream of which these columns are read."""
        required = tuple(
            (each.name, each.type or "")
            for each in stream.schema.columns
            if each.name == stream.time or not each.nullable
        )
        wanted = {*read, *(name for name, _ in required), *([stream.key] if stream.key else [])}
        schema = pa.schema([each.with_nullable(True) for each in stream.schema.arrow()])
        needed = tuple(name for name in schema.names if name in wanted)
        return cls(stream.name, schema, stream.time, required, needed, stream.ahead, stream.key)

    @property
    def rows_schema(self) -> Any:
        """The columns that come out: those of the stream that are needed, and the event time."""
        return pa.schema([*(self.schema.field(name) for name in self.needed), (TIME, pa.int64())])

    def take(self, batch: Any, bound: int | None, now: int) -> Taken:
        """One batch; `now` is the time of the epoch in microseconds."""
        time = batch.column(self.time)
        micros = time.cast(pa.int64())
        rejected = self._rejected(batch, micros, now)
        times = micros.fill_null(0) if micros.null_count else micros
        if rejected is None:
            bounds = pc.min_max(times).as_py()
            earliest, latest = bounds["min"], bounds["max"]
            late = None
            if bound is not None and earliest is not None and earliest < bound:
                late = times.to_numpy() < bound
        else:
            fitting = times.to_numpy()[~rejected]
            earliest, latest = (int(fitting.min()), int(fitting.max())) if len(fitting) else (None, None)
            late = None
            if bound is not None and earliest is not None and earliest < bound:
                late = ~rejected & (times.to_numpy() < bound)
        arrays = [batch.column(name) for name in self.needed]
        rows = pa.Table.from_arrays([*arrays, times], schema=self.rows_schema)
        parts = self._parts(rows, rejected) if latest is not None else {}
        out = _either(rejected, late)
        seen = StreamSeen(
            batch.num_rows,
            latest,
            earliest,
            0 if late is None else int(late.sum()),
            0 if rejected is None else int(rejected.sum()),
            *self._arrived(batch),
            parts,
        )
        return Taken(rows if out is None else rows.filter(pa.array(~out)), rejected, late, seen)

    def late_rows(self, batch: Any, late: _Mask) -> Any:
        """Late tuples as they came."""
        arrays = [batch.column(name) for name in self.schema.names]
        return pa.Table.from_arrays(arrays, schema=self.schema).filter(pa.array(late))

    def rejects(self, batch: Any, rejected: _Mask, now: int, file: str | None) -> Any:
        """Rejects with their reasons and their texts."""
        table = pa.Table.from_batches([batch]).filter(pa.array(rejected))
        fields = ", ".join(f"{duck_name(name)}: {duck_name(name)}" for name in self.schema.names)
        texts = evaluate(
            f"SELECT CAST(json_merge_patch('{{}}', to_json({{{fields}}})) AS VARCHAR) AS record, "
            f"CAST({duck_name(self.time)} AS VARCHAR) AS at FROM input",
            table.select(self.schema.names),
        )
        marks = table.select([each for each in (CORRUPT, REASON, FILE) if each in table.column_names])
        lacking = [(name, type_, table[name].is_null().to_pylist()) for name, type_ in self.required]
        rows = []
        for place, (mark, text) in enumerate(
            zip(marks.to_pylist() or [{}] * len(texts), texts.to_pylist(), strict=True)
        ):
            missing = next(
                (f"column {name} is null; expected {type_}" for name, type_, null in lacking if null[place]),
                None,
            )
            corrupt = mark.get(CORRUPT)
            if corrupt is not None:
                reason = mark.get(REASON) or "the record is malformed"
            else:
                reason = missing or self._too_far_ahead(text["at"], now)
            rows.append((reason, corrupt or text["record"], mark.get(FILE) or file))
        columns = [pa.array(each, pa.string()) for each in zip(*rows, strict=True)]
        return pa.Table.from_arrays(columns, schema=REJECTS)

    def _too_far_ahead(self, at: str, now: int) -> str:
        assert self.ahead is not None
        clock = datetime.fromtimestamp(now / 1e6, UTC)
        return (
            f"column {self.time}: {at} is more than {words(self.ahead)} ahead of the clock "
            f"({clock:%Y-%m-%d %H:%M:%S} UTC)"
        )

    def _rejected(self, batch: Any, micros: Any, now: int) -> _Mask | None:
        found: _Mask | None = None
        for name, _ in self.required:
            column = batch.column(name)
            if column.null_count:
                found = _either(found, np.asarray(column.is_null()))
        if CORRUPT in batch.schema.names:
            corrupt = batch.column(CORRUPT)
            if corrupt.null_count < len(corrupt):
                found = _either(found, np.asarray(corrupt.is_valid()))
        if self.ahead is not None and len(micros):
            latest = pc.max(micros).as_py()
            if latest is not None and latest > now + self.ahead:
                found = _either(found, np.asarray(pc.greater(micros, now + self.ahead).fill_null(False)))
        return found

    def _arrived(self, batch: Any) -> tuple[int | None, int | None]:
        if ARRIVED not in batch.schema.names:
            return None, None
        bounds = pc.min_max(batch.column(ARRIVED)).as_py()
        return bounds["min"], bounds["max"]

    def _parts(self, rows: Any, rejected: _Mask | None) -> dict[str, int]:
        """The latest time of each stream behind the source; null and the empty text name one stream."""
        if self.key is None:
            return {}
        held = rows.select([self.key, TIME])
        held = held if rejected is None else held.filter(pa.array(~rejected))
        table = held.group_by(self.key).aggregate([(TIME, "max")])
        if from_arrow(held.schema.field(self.key).type) != "string":
            table = evaluate(
                f"SELECT CAST({duck_name(self.key)} AS VARCHAR) AS {duck_name(self.key)}, {TIME}_max "
                "FROM input",
                table,
            )
        names, times = table[self.key].to_pylist(), table[f"{TIME}_max"].to_pylist()
        found: dict[str, int] = {}
        for name, time in zip(names, times, strict=True):
            found[name or ""] = max(time, found.get(name or "", time))
        return found


def _either(one: _Mask | None, other: _Mask | None) -> _Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other
