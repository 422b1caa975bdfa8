"""Reads the state of a checkpoint without running the query: what `penstock state` shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import NoCheckpoint, UnknownEpoch, UnknownKey, UnknownStage
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.keyed import number_keys
from penstock.runtime.records import Manifest, Moment
from penstock.runtime.stage_notes import StageNote
from penstock.runtime.state_rows import StateRows, key_columns
from penstock.runtime.storage import Location

__all__ = ["NULL", "ChannelState", "KeyState", "StateView"]

NULL = "\\N"
"""How a null is written where a key is asked for."""


@dataclass(frozen=True)
class ChannelState:
    """What a channel keeps: segments, living rows, distinct keys, and bytes of its files."""

    channel: int
    segments: int
    rows: int
    keys: int
    bytes: int


@dataclass(frozen=True)
class KeyState:
    """The rows of a key in one channel of a stage."""

    stage: int
    channel: int
    rows: Any


class StateView:
    """A checkpoint that is looked at; nothing is written to it, and a run may go on meanwhile.

    A run deletes what its last three manifests do not name, so look at the newest epoch of a live one.
    """

    def __init__(self, path: str | Path) -> None:
        self.checkpoint = Checkpoint(Location.of(path))
        try:
            there = self.checkpoint.root.has("query.json")
        except pa.ArrowInvalid as error:
            raise NoCheckpoint(f"{path} is neither a path nor a URI that can be read: {error}") from error
        if not there:
            raise NoCheckpoint(
                f"{self.checkpoint.root.uri} is no checkpoint: it has no query.json; give the folder that "
                "was given to start(checkpoint=...)"
            )
        self.query = self.checkpoint.owner()

    @cached_property
    def moments(self) -> list[Moment]:
        """The epochs whose manifests are kept, oldest first."""
        return self.checkpoint.moments()

    def manifest(self, epoch: str | None = None) -> Manifest:
        """The manifest of an epoch (12, or 12-drain for the draining after it), by default the newest."""
        chosen = [each for each in self.moments if epoch is None or epoch in {_short(each), str(each)}]
        if not chosen:
            kept = ", ".join(map(_short, self.moments)) or "none: no epoch has happened yet"
            raise UnknownEpoch(f"no epoch {epoch or 'at all'} in the checkpoint; kept are {kept}")
        found = self.checkpoint.manifest(chosen[-1])
        if found is None:
            raise UnknownEpoch(f"epoch {epoch} was deleted meanwhile by the run; ask for a newer one")
        return found

    def note(self, stage: int) -> StageNote:
        """What is known of a stage; little, for a checkpoint of an older version."""
        notes = self.query.get("stages", [])
        return StageNote.from_json(notes[stage]) if stage < len(notes) else StageNote()

    def rows(self, manifest: Manifest, stage: int) -> StateRows:
        """The state of a stage."""
        if not 0 <= stage < len(manifest.stages):
            known = ", ".join(map(str, range(len(manifest.stages)))) or "none"
            raise UnknownStage(f"no stage {stage}; the stages are {known}")
        return StateRows(self.checkpoint.segments, self.note(stage), manifest.stages[stage])

    def channels(self, manifest: Manifest, stage: int) -> list[ChannelState]:
        """What every channel of a stage keeps; counting keys reads the key columns."""
        rows = self.rows(manifest, stage)
        return [self._channel(rows, number) for number in range(len(rows.record.channels))]

    def of_key(self, manifest: Manifest, key: Sequence[str], stage: int | None = None) -> list[KeyState]:
        """The rows of a key, given as text for each key column, in one stage or in all."""
        stages = range(len(manifest.stages)) if stage is None else [stage]
        found, failures = [], []
        for number in stages:
            rows = self.rows(manifest, number)
            try:
                found += [KeyState(number, *each) for each in self._with_key(rows, key)]
            except UnknownKey as failure:
                failures.append(failure)
        if not found and failures:
            raise failures[0]
        if not found:
            shown = ", ".join(key)
            where = f"stage {stage}" if stage is not None else "any stage"
            raise UnknownKey(
                f"no state of key {shown} in {where} at epoch {_short(manifest.moment)}; it may have left "
                f"with its last window; write null as {NULL}"
            )
        return found

    def export(self, manifest: Manifest, stage: int, file: str | Path) -> int:
        """Write the living state of a stage as one Parquet file; how many rows there are."""
        rows = self.rows(manifest, stage)
        schema = self._schema(rows)
        written = 0
        with pq.ParquetWriter(file, schema) as writer:
            for table in self._tables(rows):
                writer.write_table(_fitting(table, schema))
                written += table.num_rows
        return written

    def _channel(self, rows: StateRows, number: int) -> ChannelState:
        segments = rows.record.channels[number]
        tables = list(rows.tables(number))
        keyed = [table.select(key_columns(table)) for table in tables if table.num_rows]
        keys = 0
        if keyed and keyed[0].num_columns:
            together = pa.concat_tables(keyed)
            keys = int(number_keys(together.columns, together.num_rows)[0].max()) + 1
        living = sum(table.num_rows for table in tables)
        return ChannelState(number, len(segments), living, keys, sum(each.bytes for each in segments))

    def _with_key(self, rows: StateRows, key: Sequence[str]) -> Iterator[tuple[int, Any]]:
        for channel in range(len(rows.record.channels)):
            alike: dict[Any, list[Any]] = {}
            for table in rows.tables(channel):
                chosen = table.filter(_matching(table, key))
                if chosen.num_rows:
                    alike.setdefault(tuple(chosen.column_names), []).append(rows.named(chosen))
            yield from ((channel, pa.concat_tables(tables)) for tables in alike.values())

    def _tables(self, rows: StateRows) -> Iterator[Any]:
        for channel in range(len(rows.record.channels)):
            for table in rows.tables(channel):
                shown = rows.named(table)
                yield shown.add_column(0, "_channel", pa.array(np.full(shown.num_rows, channel, np.int32)))

    def _schema(self, rows: StateRows) -> Any:
        """All columns of all tables; where two parts have a column of one name and two types, as text."""
        fields: dict[str, Any] = {"_channel": pa.int32()}
        for table in self._tables(rows):
            for field in table.schema:
                known = fields.setdefault(field.name, field.type)
                if known != field.type:
                    fields[field.name] = pa.string()
        return pa.schema(list(fields.items()))


def _matching(table: Any, key: Sequence[str]) -> Any:
    names = key_columns(table)
    if len(names) != len(key):
        raise UnknownKey(
            f"key {', '.join(key)} has {len(key)} parts, the state has {len(names)} key columns; "
            "give one --key for each"
        )
    mask = np.ones(table.num_rows, np.bool_)
    for name, text in zip(names, key, strict=True):
        column = table[name]
        found = pc.is_null(column) if text == NULL else pc.equal(column, _parsed(text, column.type))
        mask &= pc.fill_null(found, False).to_numpy()
    return pa.array(mask)


def _parsed(text: str, type_: Any) -> Any:
    try:
        return pa.scalar(text).cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnknownKey(f"key {text!r} is no {type_}, the type of the key column: {error}") from error


def _fitting(table: Any, schema: Any) -> Any:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _short(moment: Moment) -> str:
    return f"{moment.epoch}-drain" if moment.drain else str(moment.epoch)
