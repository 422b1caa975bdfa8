"""Two runs in one session that take turns, an epoch each, so that a machine that changes changes both alike.

A run has the machine to itself from the moment it may ask its source for the next epoch until it asks again.
What it took in its turns is counted; the other one waits in its own source meanwhile. The order turns around
with every epoch (a b, b a, a b, ...), so that neither always has the warmer caches.
"""

import threading
import time
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import penstock as ps
from penstock.connect import Ahead, Offset, Reader, SourceContext, SourceNote, Split
from penstock_lab.bench.memory import used_cpu_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.expressions.schema import Schema

__all__ = ["InTurn", "Spent", "Turns"]


@dataclass(frozen=True)
class Spent:
    """Time by the clock, and processor time of driver, JVM and workers."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


class Turns:
    """Whose turn it is of two, and what each has spent in its turns; `first` and `second` are their names."""

    def __init__(self, first: str, second: str) -> None:
        self.spent = {first: Spent(0.0, 0.0), second: Spent(0.0, 0.0)}
        self._changed = threading.Condition()
        self._order: Iterator[str] = cycle((first, second, second, first))
        self._next = next(self._order)
        self._ready: set[str] = set()
        self._left: set[str] = set()
        self._running: str | None = None
        self._before = Spent(0.0, 0.0)

    def take(self, name: str) -> None:
        """End the turn of a run, if it has one, and wait for its next; the first begins when both ask."""
        with self._changed:
            self._end(name)
            self._ready.add(name)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may(name))
            self._running = name
            cpu = used_cpu_s()
            self._before = Spent(time.perf_counter(), cpu)

    def leave(self, name: str) -> None:
        """A run has ended, or could not start: all turns are the other one's."""
        with self._changed:
            self._end(name)
            self._left.add(name)
            self._skip()
            self._changed.notify_all()

    def _may(self, name: str) -> bool:
        return len(self._ready | self._left) == len(self.spent) and self._next == name

    def _end(self, name: str) -> None:
        if self._running != name:
            return
        now, cpu = time.perf_counter(), used_cpu_s()
        self.spent[name] += Spent(now - self._before.wall_s, cpu - self._before.cpu_s)
        self._running, self._next = None, next(self._order)
        self._skip()

    def _skip(self) -> None:
        if len(self._left) < len(self.spent):
            while self._next in self._left:
                self._next = next(self._order)


@dataclass(frozen=True)
class InTurn(ps.Source):
    """The tuples of another source, of which each epoch waits for the turn of its run."""

    source: ps.Source
    turns: Turns
    name: str

    @property
    def bounded(self) -> bool:
        """As the other one."""
        return self.source.bounded

    @property
    def whole_folder(self) -> str | None:
        """As the other one."""
        return self.source.whole_folder

    def conform(self, name: str, schema: "Schema") -> Self:
        """As the other one."""
        return replace(self, source=self.source.conform(name, schema))

    def open(self, context: SourceContext) -> "_ReaderInTurn":
        """Its reader, which waits."""
        return _ReaderInTurn(self.source.open(context), self.turns, self.name)


@dataclass(frozen=True)
class _ReaderInTurn(Reader):
    reader: Reader
    turns: Turns
    name: str

    def ahead(self, after: Offset) -> Ahead | None:
        self.turns.take(self.name)
        return self.reader.ahead(after)

    def splits(self, after: Offset, upto: Offset, tasks: int) -> "Sequence[Split]":
        return self.reader.splits(after, upto, tasks)

    def frames(self, session: "SparkSession", after: Offset, upto: Offset) -> "Sequence[DataFrame]":
        return self.reader.frames(session, after, upto)

    def note(self, upto: Offset) -> SourceNote:
        return self.reader.note(upto)

    @property
    def ended(self) -> bool:
        return self.reader.ended

    def commit(self, upto: Offset) -> Any:
        self.reader.commit(upto)

    def close(self) -> None:
        self.turns.leave(self.name)
        self.reader.close()
