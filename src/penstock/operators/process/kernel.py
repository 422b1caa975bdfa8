"""The channels of a keyed function: rows released by the frontier and timers that fire, in event order.

A row waits until the frontier has passed it, so that every key sees its rows and timers in the order of
event time whatever the order of arrival. States and timers of keys are kept as versions; an epoch writes
the keys that it touches.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution import by_key
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.event_order import ALWAYS, EventOrderKernel, in_event_order, or_never, released
from penstock.operators.exchange import HASH, KEY, TIME, Digest, Exchange, SqlColumn
from penstock.operators.kernel import Channel, Describe
from penstock.operators.names import arrow_types
from penstock.operators.poison import Refuse
from penstock.operators.process.events import Events, Horizon
from penstock.operators.process.node import Process
from penstock.operators.process.processor import NO_TIMER, Processor
from penstock.operators.process.sparing import Sparing
from penstock.operators.process.stepping import stepped
from penstock.operators.process.touched import KeysAfter, Shapes, Touched
from penstock.operators.process.visiting import visited
from penstock.state.keys import find, normal_keys, ordered
from penstock.state.segments import Segment
from penstock.state.time_table import TimeTable
from penstock.state.version_table import KNOWN, TIMER, OpenVersionTable, VersionTable

__all__ = ["ProcessKernel", "compile_process"]

_WAITING, _STATES = "rows", "state"


@dataclass(frozen=True)
class ProcessKernel(EventOrderKernel):
    """A keyed function in channels.

    `keys` and `columns` are sent, as SQL over the port; a column that is a key or the time is sent once.
    `time` is the type in which people read times.
    """

    operator: Process
    keys: tuple[SqlColumn, ...]
    columns: tuple[SqlColumn, ...]
    time: Any

    @property
    def schema(self) -> Any:
        """The columns of a result, then its event time in microseconds."""
        fields = [(self.operator.time, self.time)]
        fields += [(name, key.type) for (name, _), key in zip(self.operator.keys, self.keys, strict=True)]
        return pa.schema([*fields, *self._shapes.result, (TIME, pa.int64())])

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows by their keys; the hash goes along, since channels group and look up by it."""
        columns = (*self.keys, SqlColumn(TIME, TIME, pa.int64()), *self.columns)
        names = tuple(key.name for key in self.keys)
        return (Exchange(columns, by_key(names), digests=(Digest(HASH, names),)),)

    @property
    def tables(self) -> tuple[VersionTable, TimeTable]:
        """States and timers of keys; rows that wait for the frontier."""
        names = tuple(key.name for key in self.keys)
        labels = {name: shown for name, (shown, _) in zip(names, self.operator.keys, strict=True)}
        return (
            VersionTable(_STATES, keys=names, labels=labels),
            TimeTable(_WAITING, keys=names, labels=labels, lives=(0, 0)),
        )

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Call the function with what the frontier has passed."""
        before, after = (or_never(each.frontier(0)) for each in (channel.before, channel.after))
        until = ALWAYS if channel.ended or self.operator.order == "arrival" else after
        new = None if channel.new[0] is None else channel.new[0].select(self._sent.names).cast(self._sent)
        versions, rows = self.tables
        states = versions.open(channel.store, self._kept)
        waiting = rows.open(channel.store, self._sent, channel.before.frontiers)
        touched = self._touched(
            released(channel, waiting, new, until), states, before, ALWAYS if channel.ended else after
        )
        changed = None
        if touched is not None:
            left = self._called(touched.given, Horizon(after, channel.ended), channel.refuse)
            channel.emit(self._results(touched.given, left))
            alive = touched.there | left.known | (left.timers != NO_TIMER)
            changed = self._versions(touched, left).filter(pa.array(alive))
        return (*states.close(changed), *waiting.close_by_time(until, new))

    def _touched(
        self, taken: list[Any], states: OpenVersionTable, before: int, until: int
    ) -> "_TouchedKeys | None":
        """The keys with rows that are released and those whose timers fire; None if there are none."""
        names = [key.name for key in self.keys]
        rows = pa.concat_tables([self._sent.empty_table(), *taken]).combine_chunks()
        hashes, times = rows[HASH].to_numpy().view(np.uint64), rows[TIME].to_numpy()
        row_keys = normal_keys(rows.select(names))
        seen = self._rows(rows)
        found = in_event_order(ordered(hashes, times, row_keys), times, seen)
        first = found.order[found.first]
        hashes, keys = hashes[first], row_keys.take(pa.array(first))
        due = states.due(before, until)
        if due.num_rows:
            due_hashes = due[HASH].to_numpy().view(np.uint64)
            alone = find(hashes, keys, due_hashes, due.select(names)) < 0
            hashes = np.concatenate([hashes, due_hashes[alone]])
            keys = pa.concat_tables([keys, due.select(names).filter(pa.array(alone))]).combine_chunks()
        if not len(hashes):
            return None
        versions = states.find(hashes, keys)
        events = Events(found.order, found.groups, times[found.order])
        shown = keys.rename_columns([name for name, _ in self.operator.keys])
        given = Touched(seen, events, shown, versions.state, versions.known, versions.timers)
        return _TouchedKeys(given, hashes, versions.present)

    def _called(self, touched: Touched, horizon: Horizon, refuse: Refuse | None) -> KeysAfter:
        """The function over all events; `refuse` takes rows for which it raises."""
        if refuse is None:
            return self._call(touched, horizon)
        return Sparing(self._call, str(self.operator), self._shapes, refuse).keys(touched, horizon)

    def _call(self, touched: Touched, horizon: Horizon) -> KeysAfter:
        function, timeout = self.operator.function, self.operator.timeout
        if isinstance(function, Processor):
            return stepped(function, touched, timeout, horizon, self._shapes)
        return visited(function, touched, timeout, horizon, self._shapes)

    def _results(self, touched: Touched, left: KeysAfter) -> Any:
        """Result rows in full, from the keys, what the function gave and the times of both."""
        micros = pa.array(left.times)
        keys = touched.keys.take(pa.array(left.groups))
        columns = [micros.cast(self.time), *keys.columns, *left.results.columns, micros]
        return pa.table(columns, schema=self.schema)

    def _versions(self, touched: "_TouchedKeys", left: KeysAfter) -> Any:
        columns = [*touched.given.keys.columns, pa.array(touched.hashes.view(np.int64))]
        columns += [pa.array(left.timers), pa.array(left.known), *left.state.columns]
        return pa.table(columns, schema=self._kept)

    def _rows(self, table: Any) -> Any:
        """What the function sees of rows: the event time, and the columns that are no keys."""
        names = [each.name for each in self.columns]
        columns = [table[TIME].cast(self.time), *table.select(names).columns]
        return pa.table(columns, names=[self.operator.time, *names])

    @property
    def _sent(self) -> Any:
        """The columns of a row in a channel and in a segment of rows."""
        fields = [(key.name, key.type) for key in self.keys]
        fields += [(HASH, pa.int64()), (TIME, pa.int64())]
        return pa.schema(fields + [(each.name, each.type) for each in self.columns])

    @property
    def _kept(self) -> Any:
        """The columns of a key in a segment of states."""
        fields = [(key.name, key.type) for key in self.keys]
        fields += [(HASH, pa.int64()), (TIMER, pa.int64()), (KNOWN, pa.bool_())]
        return pa.schema([*fields, *self._shapes.state])

    @property
    def _shapes(self) -> Shapes:
        """What the function declares."""
        return Shapes(
            _nullable(self.operator.state.arrow()), _nullable(self.operator.result.arrow()), self.time
        )


@dataclass(frozen=True, eq=False)
class _TouchedKeys:
    """What is given to the function, the hashes of its keys, and which keys have a version already."""

    given: Touched
    hashes: NDArray[np.uint64]
    there: NDArray[np.bool_]


def compile_process(operator: Process, time_type: str, describe: Describe) -> ProcessKernel:
    """The kernel of a keyed function, with what Spark says about the types."""
    texts = [key.sql for _, key in operator.keys]
    sent_as_keys = {text.lower() for text in texts}
    names = [
        name
        for name in operator.given.names
        if quoted(name).lower() not in sent_as_keys and name.lower() != operator.time.lower()
    ]
    found = arrow_types(operator.keys, names, describe)
    keys = tuple(
        SqlColumn(KEY.format(place), text, type_)
        for place, (text, type_) in enumerate(zip(texts, found, strict=False))
    )
    columns = tuple(
        SqlColumn(name, quoted(name), type_) for name, type_ in zip(names, found[len(texts) :], strict=True)
    )
    return ProcessKernel(operator, keys, columns, arrow_type(time_type))


def _nullable(schema: Any) -> Any:
    return pa.schema([field.with_nullable(True) for field in schema])
