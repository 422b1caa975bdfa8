"""The merger of an output: results leave as channels finish, at most so far out of order as was asked for.

The unit of order is what one channel has of one window. How many rows a window has is known only when its
channel has finished, but which windows an epoch closes is known before, and a channel that has finished
closes those of its windows that are empty. Each receiver has its own bound, and so its own merge ([004]
§2.5). Epochs follow each other, so the order of windows across them holds in any case.

Results of single tuples, such as those of a join, have no windows: all of an epoch have the same rank, and a
channel's are one unit; with a disorder of 0 they leave together, in order of time. Corrections of closed
windows and early results of open ones go with the nearest window that the epoch closes. Where several stages
feed an output, or it takes steps outside the channels, it leaves at the end of the epoch, in order.
"""

import logging
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.connect import EpochId, Output, ResultFormat, Results
from penstock.operators.kernel import Ends
from penstock.routing import DisorderMeter, KOrderedMerge
from penstock.runtime.dataflow.receipts import TaskReceipt
from penstock.threads import service

__all__ = ["EpochMergers", "Finished", "Merger", "Receiver", "Way"]

_log = logging.getLogger("penstock.run")
_Ranks = NDArray[np.int64]

Way = tuple[int, int]
"""A stage and one of its exits."""

Finished = Callable[[TaskReceipt], object]
"""Told what a task has done, when it has finished."""


class Receiver(Protocol):
    """What takes results before their epoch is whole."""

    @property
    def disorder(self) -> int | None:
        """The most that results may be out of order; None: any."""

    def give(self, epoch: EpochId, rows: pa.Table) -> None:
        """Take a channel's results of one window, or all of a channel if they have no windows."""


@dataclass
class _Merge:
    """The way to one receiver in one epoch; what has no `parts` waits for the end of the epoch."""

    receiver: Receiver
    parts: KOrderedMerge[tuple[int, pa.Table]] | None = None
    meter: DisorderMeter = field(default_factory=DisorderMeter)

    def give(self, epoch: EpochId, leaving: Sequence[tuple[int, pa.Table]]) -> None:
        for rank, rows in leaving:
            self.meter.add(rank)
            self.receiver.give(epoch, rows)


class Merger:
    """The results of one output in one epoch, from the files of its channels to receivers."""

    def __init__(
        self, epoch: EpochId, target: ResultFormat, schema: Any, order: Sequence[str], to: Sequence[Receiver]
    ) -> None:
        self._results = Results(epoch, schema, target, (), tuple(order))
        self._merges = [_Merge(each) for each in to]
        self._starts: _Ranks = np.zeros(1, np.int64)
        self._channels: set[int] = set()

    def begin(self, ends: Ends, channels: int) -> None:
        """Before the channels run: which windows they close."""
        if ends is not None and self._results.order and ends.times:
            self._starts = np.unique(np.asarray(ends.times, np.int64) - np.asarray(ends.size, np.int64))
        in_order_of_time = ends is None and bool(self._results.order)
        expected = list(range(len(self._starts))) * channels
        self._channels = set(range(channels))
        for each in self._merges:
            if not (in_order_of_time and each.receiver.disorder == 0):
                each.parts = KOrderedMerge(each.receiver.disorder, expected)

    def channel(self, number: int, files: Sequence[Output]) -> None:
        """A channel has finished; it may be told twice."""
        if number not in self._channels or all(each.parts is None for each in self._merges):
            return
        self._channels.remove(number)
        parts = self._parts(replace(self._results, files=tuple(files)).table())
        empty = sorted(set(range(len(self._starts))) - parts.keys())
        for each in self._merges:
            if each.parts is not None:
                each.give(self._results.epoch, each.parts.close(*empty))
                for rank, rows in parts.items():
                    each.give(self._results.epoch, each.parts.offer(rank, (rank, rows)))

    def end(self, files: Sequence[tuple[int, Output]], *, windowed: bool) -> None:
        """Every file is there: what has not left leaves now."""
        for number in sorted(self._channels):
            self.channel(number, [output for channel, output in files if channel == number])
        waiting = [each for each in self._merges if each.parts is None]
        if waiting and files:
            table = replace(self._results, files=tuple(output for _, output in files)).table()
            if windowed and self._results.order:
                self._starts = np.unique(_times(table, self._results.order[0]))
            for rank, rows in self._parts(table).items():
                for each in waiting:
                    each.give(self._results.epoch, [(rank, rows)])

    @property
    def disorder(self) -> int:
        """The most that results were out of order for any receiver."""
        return max((each.meter.most for each in self._merges), default=0)

    def _parts(self, table: pa.Table) -> dict[int, pa.Table]:
        """A sorted table by window; a time that no window has belongs to the window before it."""
        if len(self._starts) == 1 or not table.num_rows:
            return {0: table} if table.num_rows else {}
        times = _times(table, self._results.order[0])
        ranks = np.maximum(np.searchsorted(self._starts, times, side="right") - 1, 0)
        begins = np.flatnonzero(np.append(True, ranks[1:] != ranks[:-1])).tolist()
        stops = [*begins[1:], len(ranks)]
        return {
            int(ranks[begin]): table.slice(begin, stop - begin)
            for begin, stop in zip(begins, stops, strict=True)
        }


def _times(table: pa.Table, name: str) -> _Ranks:
    """A column of times in microseconds; null comes last, as in a sorted table."""
    micros = table[name].cast(pa.timestamp("us", getattr(table[name].type, "tz", None))).cast(pa.int64())
    return np.asarray(micros.fill_null(np.iinfo(np.int64).max).to_numpy())


@dataclass
class EpochMergers:
    """The mergers of an epoch, by output; `ways` are those by which a stage alone feeds an output."""

    mergers: Mapping[int, Merger] = field(default_factory=dict)
    ways: Mapping[Way, int] = field(default_factory=dict)

    @property
    def disorder(self) -> int | None:
        """The most that results were out of order; None if all left with their epoch."""
        return max((each.disorder for each in self.mergers.values()), default=None)

    @contextmanager
    def running(self, ends: Mapping[int, Ends], channels: Mapping[int, int]) -> Iterator[Finished | None]:
        """While the channels of some stages run, take what they finish; None if nobody takes it.

        Results are read and given in a thread, so that whoever tells of a channel never waits. The end of the
        context waits for the thread: a slow receiver holds up its epoch.
        """
        found = {way: self.mergers[place] for way, place in self.ways.items() if way[0] in ends}
        if not found:
            yield None
            return
        for (stage, _), merger in found.items():
            merger.begin(ends[stage], channels[stage])
        told: queue.SimpleQueue[TaskReceipt | None] = queue.SimpleQueue()
        failed: list[Exception] = []

        def merge() -> None:
            while (each := told.get()) is not None:
                _merge(each, found)

        thread = service("penstock-merger", merge, _log, failed.append)
        thread.start()
        try:
            yield told.put
        finally:
            told.put(None)
            thread.join()
        if failed:
            raise failed[0]


def _merge(receipt: TaskReceipt, mergers: Mapping[Way, Merger]) -> None:
    """Pass on what the channels of a task have written."""
    for (stage, exit_), merger in mergers.items():
        for each in receipt.channels.get(stage, ()):
            merger.channel(each.channel, [output for output in each.outputs if output.exit == exit_])
