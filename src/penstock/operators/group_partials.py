"""What channels form of the rows of a key: partials with their first and last event times, and results.

Operators whose windows follow from the rows themselves (sessions, windows of counts) share it: the columns
that they send, the partials that they merge, and how a result follows from these. Several partials of one key
are kept as one version, in lists, so that they are found and moved together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.aggregates.kinds import Fold
from penstock.aggregates.merges import Lanes
from penstock.aggregates.partials import Inputs, PaneColumns, Partial
from penstock.distribution import by_key
from penstock.expressions.types import arrow_type
from penstock.operators.aggregate_columns import WindowResult, aggregate_columns, panes_of, received
from penstock.operators.exchange import HASH, KEY, TIME, Bucket, Combine, Exchange, Form, SqlColumn
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.operators.windows.block import PaneBlock
from penstock.routing.spark_hash import spark_hash
from penstock.state.keys import number_keys
from penstock.state.pane_table import PANE
from penstock.state.version_table import KNOWN, TIMER, OpenVersionTable, Versions

__all__ = ["GroupPartials", "HeldKeys", "compile_groups"]

_NUMBER = "_ps_number"
_ONE_KEY = pa.int8()

Places = NDArray[np.int64]


@dataclass(frozen=True)
class GroupPartials:
    """The keys, partials and results of groups.

    `keys` are named as in the result; `inputs` are the columns of raw rows that partials are formed from.
    `first` and `last` name the partials with the event times of the first and the last row, and `time` is the
    type in which people read them.
    """

    keys: tuple[SqlColumn, ...]
    inputs: tuple[SqlColumn, ...]
    partial_columns: tuple[Partial, ...]
    results: tuple[WindowResult, ...]
    first: str
    last: str
    time: Any

    # What is sent.

    @property
    def forms(self) -> tuple[Form, ...]:
        """Where partials may be formed, the better guess first: on the map side, or in the channel."""
        if any(each.lift is None for each in self.partial_columns):
            return ("combined",)
        return ("combined", "rows") if self.split else ("rows",)

    @property
    def accumulates(self) -> bool:
        """Whether code of users forms partials."""
        return any(each.accumulated for each in self.partial_columns)

    @property
    def split(self) -> bool:
        """Whether all code of users allows that rows of a group are formed apart and merged in any order."""
        return all(each.accumulated.aggregate.split for each in self.partial_columns if each.accumulated)

    def exchange(self, bucket: Bucket, combine: Combine | None, *, parts: bool = False) -> Exchange:
        """Rows or partials by their keys."""
        keys = tuple(
            SqlColumn(name, key.sql, key.type) for name, key in zip(self.sent_keys, self.keys, strict=True)
        )
        return Exchange(
            (*keys, *self.inputs),
            by_key(self.sent_keys, mergeable=parts, slices=bucket.name),
            bucket=bucket,
            combine=combine,
        )

    @property
    def sent_keys(self) -> tuple[str, ...]:
        """The names of the keys on their way and in segments."""
        return tuple(KEY.format(place) for place in range(len(self.keys)))

    @property
    def schema(self) -> Any:
        """The columns of partials: keys, pane, partials."""
        keys = [(name, key.type) for name, key in zip(self.sent_keys, self.keys, strict=True)]
        return pa.schema([*keys, (PANE, pa.int64()), *self.partial_fields])

    @property
    def raw(self) -> Any:
        """The columns of rows from which partials are formed in the channel."""
        keys = [(name, key.type) for name, key in zip(self.sent_keys, self.keys, strict=True)]
        return pa.schema([*keys, *((each.name, each.type) for each in self.inputs), (PANE, pa.int64())])

    def received(self, rows: Any) -> Any:
        """What Spark combined, as partials: lists of rows that it collected are accumulated."""
        return received(self.partial_columns, rows, self.schema)

    def formed(self, rows: Any) -> Any:
        """The partials of raw rows, one for each pane and key."""
        block = PaneBlock(self.sent_keys, self.partial_columns, [], rows)
        return block.table(block.rows)

    def merged(self, partials: Any) -> Any:
        """One partial for each pane and key, merged in their order."""
        return PaneBlock(self.sent_keys, self.partial_columns, [partials]).combined(1)

    # What is kept.

    @property
    def held_keys(self) -> tuple[str, ...]:
        """The key columns of versions; without a key all is kept under one."""
        return self.sent_keys or (KEY.format(0),)

    def kept(self, *own: tuple[str, Any]) -> Any:
        """The columns of a version: keys, their hash, columns of the operator, and partials in lists."""
        types = [key.type for key in self.keys] or [_ONE_KEY]
        keys = list(zip(self.held_keys, types, strict=True))
        lists = [(name, pa.list_(type_)) for name, type_ in [(PANE, pa.int64()), *self.partial_fields]]
        marks = [(HASH, pa.int64()), (TIMER, pa.int64()), (KNOWN, pa.bool_())]
        return pa.schema([*keys, *marks, *own, *lists])

    @property
    def labels(self) -> Mapping[str, str]:
        """What columns are called in front of people."""
        found = {name: key.name for name, key in zip(self.sent_keys, self.keys, strict=True)}
        found |= {} if self.keys else {KEY.format(0): ""}
        for each in self.partial_columns:
            found |= dict(zip(each.columns, each.texts, strict=True))
        return {**found, self.first: "_first", self.last: "_last"}

    def numbered(self, states: OpenVersionTable, rows: Any, due: Any = None) -> "HeldKeys":
        """The keys of new rows and those that are due, each with a number, and what is kept of them."""
        tables = [_with_key(rows, self.held_keys)] if rows is not None else []
        tables += [due.select(list(self.held_keys))] if due is not None else []
        schema = pa.schema([states.schema.field(name) for name in self.held_keys])
        keys = pa.concat_tables([each.cast(schema) for each in tables])
        numbers, distinct = number_keys(keys.columns, keys.num_rows)
        table = pa.table(distinct, schema=schema)
        hashes = spark_hash(table.columns, table.num_rows)
        return HeldKeys(self, numbers[: 0 if rows is None else rows.num_rows], table, hashes, states)

    # What comes out.

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """The columns of results: the end of the window, which is its event time, its start, keys, values."""
        keys = [(key.name, key.type) for key in self.keys]
        values = [(each.name, each.type) for each in self.results]
        return [("window_end", self.time), ("window_start", self.time), *keys, *values, (TIME, pa.int64())]

    def finished(self, bounds: tuple[Places, Places], keys: Any, stored: list[list[Any]]) -> Any:
        """Rows of the result, from the bounds of windows, their keys, and the columns of their partials."""
        columns: dict[str, Any] = {}
        for each, made in zip(self.partial_columns, stored, strict=True):
            columns.update(zip(each.columns, made, strict=True))
        start, end = (pa.array(each) for each in bounds)
        values = [each.finish(columns) for each in self.results]
        shown = keys.columns if self.keys else []
        arrays = [end.cast(self.time), start.cast(self.time), *shown, *values, end]
        return pa.Table.from_arrays(arrays, schema=pa.schema(self.fields))

    @property
    def partial_fields(self) -> list[tuple[str, Any]]:
        """The names and types of the columns that hold partials."""
        return [
            pair for each in self.partial_columns for pair in zip(each.columns, each.kind.types, strict=True)
        ]

    def lane(self, lanes: Sequence[Lanes], name: str) -> Places:
        """The only lane of a partial that is a time."""
        place = next(number for number, each in enumerate(self.partial_columns) if each.name == name)
        return lanes[place][0]


@dataclass(frozen=True, eq=False)
class HeldKeys:
    """The keys of an epoch by number, the number of each new row, and what is kept of the keys."""

    groups: GroupPartials
    numbers: Places
    keys: Any
    hashes: NDArray[np.uint64]
    states: OpenVersionTable

    @cached_property
    def found(self) -> Versions:
        """The newest versions of the keys."""
        return self.states.find(self.hashes, self.keys)

    def __len__(self) -> int:
        return len(self.hashes)

    def block(self, fresh: Any, numbers: Places, *, raw: bool) -> PaneBlock:
        """What is kept, then new rows or partials, with the numbers of their keys.

        The keys of the block's rows are these numbers, too.
        """
        given = None if fresh is None else fresh.append_column(_NUMBER, pa.array(numbers))
        tables = [self.rows]
        if given is not None and not raw:
            tables = [*tables, given]
        block = PaneBlock([_NUMBER], self.groups.partial_columns, tables, given if raw else None)
        known = block.keys[0].to_numpy(zero_copy_only=False)
        block.rows = replace(block.rows, key=known[block.rows.key])
        return block

    @cached_property
    def rows(self) -> Any:
        """The partials that are kept of the keys, one after another, with the numbers of their keys."""
        lists = self.found.state.select(
            [PANE, *(name for name, _ in self.groups.partial_fields)]
        ).combine_chunks()
        whole = [_array(column) for column in lists.columns]
        parents = pc.list_parent_indices(whole[0]).cast(pa.int64())
        return pa.table([parents, *(each.flatten() for each in whole)], names=[_NUMBER, *lists.column_names])

    def versions(
        self, block: PaneBlock, rows: Any, timers: Places, known: NDArray[np.bool_], **own: Places
    ) -> Any:
        """The versions of all keys afterwards; `rows` are the partials to keep, ascending by key."""
        counts = np.bincount(rows.key, minlength=len(self))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        held = [pa.array(rows.pane)]
        held += [column for stored in block.stored(rows.lanes) for column in stored]
        lists = [pa.ListArray.from_arrays(offsets, _array(column)) for column in held]
        marks = [pa.array(self.hashes.view(np.int64)), pa.array(timers), pa.array(known)]
        columns = [*self.keys.columns, *marks, *(pa.array(each) for each in own.values()), *lists]
        table = pa.Table.from_arrays(columns, names=self.states.schema.names).cast(self.states.schema)
        return table.filter(pa.array(known | self.found.present))


def _with_key(rows: Any, names: Sequence[str]) -> Any:
    if names[0] in rows.column_names:
        return rows.select(list(names))
    return pa.table({names[0]: pa.array(np.zeros(rows.num_rows, np.int8))})


def _array(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def compile_groups(
    keys: Named, aggregates: Sequence[ResolvedAggregate], time_type: str, describe: Describe | None
) -> GroupPartials:
    """The partials of aggregates over groups of keys.

    Without `describe`, what the query itself could infer is used, which is enough to explain it.
    """
    panes = panes_of(describe)
    first, last = (_extreme(panes, "min"), _extreme(panes, "max"))
    parts = aggregate_columns(keys, aggregates, panes, describe)
    return GroupPartials(**parts, first=first, last=last, time=arrow_type(time_type))


def _extreme(panes: PaneColumns, operation: Any) -> str:
    lift = Inputs((panes.event_time(),), (pa.int64(),))
    return panes.partial(Fold(operation, pa.int64()), (f"{operation}({panes.time})",), lift).name
