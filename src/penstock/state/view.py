"""Reads the state of a stage without running its query: lists, finds a key, compares, exports.

All it needs of the query is a `StageNote`, plain JSON in the checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import DamagedCheckpoint, UnknownKey
from penstock.state.keys import key_columns, number_keys, same_keys
from penstock.state.moving import Channels
from penstock.state.pane_table import PaneTable
from penstock.state.segments import Segment, read
from penstock.state.storage import Location
from penstock.state.table import TABLE, Table
from penstock.state.time_table import TimeTable
from penstock.state.version_table import VersionTable

__all__ = [
    "NULL",
    "TABLE_KINDS",
    "ChannelChange",
    "ChannelSummary",
    "StageChange",
    "StageNote",
    "StageView",
    "compare_stages",
    "table_from",
]

NULL = "\\N"
"""The text for null in a requested key."""

TABLE_KINDS: Mapping[str, type[Table]] = {each.kind: each for each in (TimeTable, VersionTable, PaneTable)}
"""Every kind of state table, by the name that descriptions use."""


def table_from(value: Mapping[str, Any]) -> Table:
    """The table from its description.

    >>> table = TimeTable("left", ("_ps_key0",), lives=(1, 60))
    >>> table_from(table.describe()) == table
    True
    """
    kind = str(value.get("kind"))
    if kind not in TABLE_KINDS:
        raise DamagedCheckpoint(
            f"unknown kind {kind!r} of state table; this version knows {', '.join(TABLE_KINDS)}; read the "
            "checkpoint with the version that wrote it"
        )
    return TABLE_KINDS[kind].from_description(value)


@dataclass(frozen=True)
class StageNote:
    """The note of a checkpoint on a stage: its operator in words, the names of its keys, its tables."""

    operator: str = ""
    keys: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        tables = [table.describe() for table in self.tables]
        return {"operator": self.operator, "keys": list(self.keys), "tables": tables}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "StageNote":
        """The note from its plain values."""
        tables = tuple(map(table_from, value["tables"]))
        return cls(value["operator"], tuple(value["keys"]), tables)


@dataclass(frozen=True)
class ChannelSummary:
    """What a channel keeps: segments, live rows, distinct keys, and bytes of its files."""

    channel: int
    segments: int
    rows: int
    keys: int
    bytes: int


@dataclass(frozen=True)
class StageView:
    """The state of a stage as a manifest names it; `frontiers` are those of its ports."""

    folder: Location
    note: StageNote
    channels: Channels
    frontiers: tuple[int | None, ...] = ()

    def tables(self, channel: int) -> Iterator[tuple[Table | None, Any]]:
        """Live rows of a channel with the stored names of keys, each with its table.

        A segment of a table that the note does not describe is returned as it is, with None.
        """
        segments = self.channels[channel]
        for table in self.note.tables:
            yield from ((table, rows) for rows in table.show(self.folder, segments, self.frontiers))
        described = {table.name for table in self.note.tables}
        for each in segments:
            if each.table not in described:
                rows = read(self.folder, each)
                yield None, rows.append_column(TABLE, pa.array([each.table] * rows.num_rows, pa.string()))

    def shown(self, channel: int) -> Iterator[Any]:
        """Live rows of a channel under their readable names."""
        return (_named(*each) for each in self.tables(channel))

    def summary(self, channel: int) -> ChannelSummary:
        """What a channel keeps; to count keys, it reads the key columns."""
        segments = self.channels[channel]
        tables = [rows for _, rows in self.tables(channel)]
        keyed = [rows.select(key_columns(rows.column_names)) for rows in tables if rows.num_rows]
        keys = 0
        if keyed and keyed[0].num_columns:
            together = pa.concat_tables(keyed)
            keys = int(number_keys(together.columns, together.num_rows)[0].max()) + 1
        rows = sum(each.num_rows for each in tables)
        return ChannelSummary(channel, len(segments), rows, keys, sum(each.bytes for each in segments))

    def of_key(self, key: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """The rows of a key by channel; each key column is given as text, and tables of like columns join."""
        for channel in range(len(self.channels)):
            alike: dict[Any, list[Any]] = {}
            for table, rows in self.tables(channel):
                chosen = rows.filter(_matching(rows, key))
                if chosen.num_rows:
                    alike.setdefault(tuple(chosen.column_names), []).append(_named(table, chosen))
            yield from ((channel, pa.concat_tables(tables)) for tables in alike.values())

    def export(self, file: str | Path) -> int:
        """Write the live rows of all channels as one Parquet file and return their number.

        Every table is read twice, first for its columns; one is held in memory at a time.
        """
        schema = self._export_schema()
        written = 0
        with pq.ParquetWriter(file, schema) as writer:
            for rows in self._exported():
                writer.write_table(_fitting(rows, schema))
                written += rows.num_rows
        return written

    def _exported(self) -> Iterator[Any]:
        for channel in range(len(self.channels)):
            for rows in self.shown(channel):
                numbers = pa.array(np.full(rows.num_rows, channel, np.int32))
                yield rows.add_column(0, "_channel", numbers)

    def _export_schema(self) -> Any:
        """All columns of all tables; a column that has two types in two tables becomes text."""
        fields: dict[str, Any] = {"_channel": pa.int32()}
        for rows in self._exported():
            for field in rows.schema:
                if fields.setdefault(field.name, field.type) != field.type:
                    fields[field.name] = pa.string()
        return pa.schema(list(fields.items()))


def _named(table: Table | None, rows: Any) -> Any:
    return rows if table is None else table.named(rows)


def _matching(rows: Any, key: Sequence[str]) -> Any:
    names = key_columns(rows.column_names)
    if len(names) != len(key):
        raise UnknownKey(
            f"key {', '.join(key)} has {len(key)} parts, but the state has {len(names)} key columns; "
            "give one --key for each"
        )
    mask = np.ones(rows.num_rows, np.bool_)
    for name, text in zip(names, key, strict=True):
        column = rows[name]
        wanted = pa.repeat(_parsed(None if text == NULL else text, column.type), rows.num_rows)
        mask &= same_keys(pa.table([column], ["k"]), pa.table([wanted], ["k"]))
    return pa.array(mask)


def _parsed(text: str | None, type_: Any) -> Any:
    try:
        return pa.scalar(text, pa.string()).cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnknownKey(f"key {text!r} does not fit the type {type_} of the key column: {error}") from error


def _fitting(rows: Any, schema: Any) -> Any:
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class ChannelChange:
    """One channel between two epochs: names of segments, and the growth of rows and bytes."""

    channel: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class StageChange:
    """One stage between two epochs: its channels, and the frontiers of its ports before and after."""

    stage: int
    channels: tuple[ChannelChange, ...]
    frontiers: tuple[tuple[int | None, int | None], ...]


def compare_stages(
    stage: int,
    before: Channels,
    after: Channels,
    frontiers: tuple[tuple[int | None, ...], tuple[int | None, ...]] = ((), ()),
) -> StageChange:
    """The change of a stage; a channel that exists in only one epoch has nothing in the other.

    `frontiers` are those of the ports before and after; if one side has none, they count as unknown.
    """
    width = max(len(before), len(after))
    old, new = (each + ((),) * (width - len(each)) for each in (before, after))
    then, now = frontiers
    then = then or (None,) * len(now)
    return StageChange(
        stage,
        tuple(_channel_change(place, *pair) for place, pair in enumerate(zip(old, new, strict=True))),
        tuple(zip(then, now or then, strict=True)),
    )


def _channel_change(number: int, before: Sequence[Segment], after: Sequence[Segment]) -> ChannelChange:
    old, new = ({each.name for each in segments} for segments in (before, after))
    return ChannelChange(
        number,
        added=tuple(each.name for each in after if each.name not in old),
        removed=tuple(each.name for each in before if each.name not in new),
        kept=len(old & new),
        rows=_state_rows(after) - _state_rows(before),
        bytes=sum(each.bytes for each in after) - sum(each.bytes for each in before),
    )


def _state_rows(segments: Sequence[Segment]) -> int:
    """The number of rows of state; rows of levels below 0 only describe others."""
    return sum(each.rows for each in segments if each.level >= 0)
