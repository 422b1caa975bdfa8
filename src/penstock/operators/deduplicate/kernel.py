"""The channels of a deduplication: tuples released by the frontier, and when each key passes again.

A tuple waits until the frontier has passed it. Then no earlier one can come, so what passes does not depend
on the order of arrival or on how epochs are cut. All that is kept of a key is the time from which on it
passes again. A key is forgotten as soon as the frontier has passed that time: its next tuple passes then
anyway. To find the keys to forget, an epoch scans the segments that have such keys: O(keys kept).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution import by_key
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.deduplicate.node import Deduplicate
from penstock.operators.event_order import ALWAYS, EventOrderKernel, in_event_order, or_never, released
from penstock.operators.exchange import HASH, KEY, TIME, Digest, Exchange, SqlColumn
from penstock.operators.kernel import Channel, Describe
from penstock.operators.names import arrow_types
from penstock.state.keys import find, normal_keys, ordered
from penstock.state.segments import Segment
from penstock.state.time_table import TimeTable
from penstock.state.version_table import KNOWN, NO_TIMER, TIMER, OpenVersionTable, VersionTable

__all__ = ["DeduplicateKernel", "compile_deduplicate", "passing"]

_WAITING, _PASSED = "rows", "passed"

Mask = NDArray[np.bool_]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class DeduplicateKernel(EventOrderKernel):
    """A deduplication in channels.

    `keys` and `columns` are sent, as SQL over the port; a column that is a key or the time is sent once.
    `time` is the type in which people read times.
    """

    operator: Deduplicate
    keys: tuple[SqlColumn, ...]
    columns: tuple[SqlColumn, ...]
    time: Any

    @property
    def schema(self) -> Any:
        """The columns of a tuple as it came, then its event time in microseconds."""
        sent = self.exchanges[0].schema
        fields = [
            (name, self.time if held == TIME else sent.field(held).type) for name, held in self._held.items()
        ]
        return pa.schema([*fields, (TIME, pa.int64())])

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Tuples by their keys; the hash goes along, since channels group and look up by it."""
        columns = (*self.keys, SqlColumn(TIME, TIME, pa.int64()), *self.columns)
        return (Exchange(columns, by_key(self._key_names), digests=(Digest(HASH, self._key_names),)),)

    @property
    def tables(self) -> tuple[VersionTable, TimeTable]:
        """When keys pass again; tuples that wait for the frontier."""
        labels = dict(zip(self._key_names, self.operator.key_names, strict=True))
        return (
            VersionTable(_PASSED, keys=self._key_names, labels={**labels, TIMER: "_passes_again"}),
            TimeTable(_WAITING, keys=self._key_names, labels=labels, lives=(0, 0)),
        )

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Let pass what may, of the tuples that the frontier has passed.

        Where all input has ended no tuple waits any more, but keys are still forgotten by the frontier alone:
        a run that goes on with more input drops what it would have dropped without the end.
        """
        before, after = (or_never(each.frontier(0)) for each in (channel.before, channel.after))
        until = ALWAYS if channel.ended else after
        new = None if channel.new[0] is None else channel.new[0].select(self._sent.names).cast(self._sent)
        passed, rows = self.tables
        states = passed.open(channel.store, self._kept)
        waiting = rows.open(channel.store, self._sent, channel.before.frontiers)
        taken = released(channel, waiting, new, until)
        together = pa.concat_tables([self._sent.empty_table(), *taken]).combine_chunks()
        changed = self._decided(together, states, channel, before, after)
        return (*states.close(changed), *waiting.close_by_time(until, new))

    def _decided(self, rows: Any, states: OpenVersionTable, channel: Channel, before: int, after: int) -> Any:
        """Emit what passes; the versions of all keys for which something changes."""
        hashes, times = rows[HASH].to_numpy().view(np.uint64), rows[TIME].to_numpy()
        row_keys = normal_keys(rows.select(self._key_names))
        found = in_event_order(ordered(hashes, times, row_keys), times, self._shown(rows))
        first = found.order[found.first]
        hashes, keys, sorted_times = hashes[first], row_keys.take(pa.array(first)), times[found.order]
        timers = states.find(hashes, keys).timers
        within = self.operator.within
        free = np.where(timers == NO_TIMER, or_never(None), timers)
        passes = passing(found.groups, sorted_times, free, within)
        if passes.any():
            at = found.order[passes]
            channel.emit(self._shown(rows.take(pa.array(at[np.argsort(times[at], kind="stable")]))))
        # In the order of time, so the last one of a key is what stays.
        free[found.groups[passes]] = sorted_times[passes] + within
        again = np.where(free <= after, NO_TIMER, free)
        differs = again != timers
        due = states.due(before, after)
        due_hashes = due[HASH].to_numpy().view(np.uint64)
        alone = find(hashes, keys, due_hashes, due.select(self._key_names)) < 0
        return pa.concat_tables(
            [
                self._versions(keys.filter(pa.array(differs)), hashes[differs], again[differs]),
                self._versions(
                    due.select(self._key_names).filter(pa.array(alone)),
                    due_hashes[alone],
                    np.full(np.count_nonzero(alone), NO_TIMER),
                ),
            ]
        )

    def _versions(self, keys: Any, hashes: NDArray[np.uint64], again: Places) -> Any:
        columns = [*keys.columns, pa.array(hashes.view(np.int64)), pa.array(again)]
        return pa.table([*columns, pa.array(np.zeros(len(again), np.bool_))], schema=self._kept)

    def _shown(self, rows: Any) -> Any:
        """Rows as they came, from what is sent of them."""
        columns = [rows[held].cast(self.time) if held == TIME else rows[held] for held in self._held.values()]
        return pa.table([*columns, rows[TIME]], schema=self.schema)

    @property
    def _held(self) -> dict[str, str]:
        """The columns of a tuple, and the name under which each is sent and kept."""
        held = {name.lower(): KEY.format(place) for place, name in enumerate(self.operator.key_names)}
        held[self.operator.time.lower()] = TIME
        return {name: held.get(name.lower(), name) for name in self.operator.given.names}

    @property
    def _key_names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @property
    def _sent(self) -> Any:
        """The columns of a row in a channel and in a segment of rows."""
        return self.exchanges[0].schema

    @property
    def _kept(self) -> Any:
        """The columns of a key in a segment; there is no state but the time from which on it passes again."""
        fields = [(key.name, key.type) for key in self.keys]
        return pa.schema([*fields, (HASH, pa.int64()), (TIMER, pa.int64()), (KNOWN, pa.bool_())])


def passing(groups: Places, times: Places, free: Places, within: int) -> Mask:
    """Which rows pass, of rows in the order of their keys' numbers and times; `free` is when each key passes.

    A row that is `within` or more after the row before it passes, whatever became of that one. So rows fall
    into runs that do not depend on each other. In a run shorter than `within` only the first row passes: n
    rows cost O(n). In longer runs, of m rows in all, each row looks for the first row that could pass after
    it, and the rows that are reached from the first one of the run are found by jumps that double their
    length. That costs O(m log m): the number of rounds is the logarithm of the most rows in a run, whatever
    the number of keys.

    >>> passing(np.zeros(6, np.int64), np.array([0, 2, 4, 6, 8, 20]), np.array([1]), 4).tolist()
    [False, True, False, True, False, True]
    """
    at = np.flatnonzero(times >= free[groups])
    begins = np.ones(len(at), np.bool_)
    begins[1:] = (np.diff(groups[at]) != 0) | (np.diff(times[at]) >= within)
    first = np.flatnonzero(begins)
    size = np.diff(np.append(first, len(at)))
    long = times[at[first + size - 1]] - times[at[first]] >= within
    chosen = begins.copy()
    if long.any():
        inside = np.repeat(long, size)
        chosen[inside] = _reached(times[at[inside]], size[long], within)
    passed = np.zeros(len(times), np.bool_)
    passed[at[chosen]] = True
    return passed


def _reached(times: Places, size: Places, within: int) -> Mask:
    """Which rows pass, of runs of these sizes; the first row of each run does."""
    count, end = len(times), np.cumsum(size)
    low, high = np.arange(1, count + 1), np.repeat(end, size)
    # A binary search of all rows at once. The last row that passes finds the next run, whose first row passes
    # in any case.
    while (searching := low < high).any():
        middle = (low + high) // 2
        far = searching & (times[np.minimum(middle, count - 1)] - times >= within)
        low, high = np.where(searching & ~far, middle + 1, low), np.where(far, middle, high)
    jump, reached = np.append(low, count), np.zeros(count + 1, np.bool_)
    reached[end - size] = reached[count] = True
    # Before each round all rows are reached that are fewer jumps from a first row than one jump is long now.
    while not reached[targets := jump[reached]].all():
        reached[targets] = True
        jump = jump[jump]
    return reached[:count]


def compile_deduplicate(operator: Deduplicate, time_type: str, describe: Describe) -> DeduplicateKernel:
    """The kernel of a deduplication, with what Spark says about the types."""
    texts = [key.sql for _, key in operator.keys]
    apart = {name.lower() for name in (*operator.key_names, operator.time)}
    names = [name for name in operator.given.names if name.lower() not in apart]
    found = arrow_types(operator.keys, names, describe)
    sent = [*zip(map(KEY.format, range(len(texts))), texts, strict=False)]
    sent += [(name, quoted(name)) for name in names]
    columns = tuple(SqlColumn(name, text, type_) for (name, text), type_ in zip(sent, found, strict=True))
    return DeduplicateKernel(operator, columns[: len(texts)], columns[len(texts) :], arrow_type(time_type))
