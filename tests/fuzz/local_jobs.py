"""The tasks of a run one after another in this process, in place of Spark's jobs.

They run in any order, some of them twice or lost on their way, and payloads arrive in any order. Sizes from
which on the product cuts, combines or spills are drawn, so that it does so to few rows too.
"""

import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.connect.sources.rows import RowsReader
from penstock.distribution import on_grid
from penstock.runtime.dataflow import payloads, ports
from penstock.runtime.dataflow.payloads import Payload, new_task
from penstock.runtime.dataflow.receipts import TaskReceipt
from penstock.runtime.spark import entries
from penstock.state import compaction

__all__ = ["Jobs", "any_sizes"]


@dataclass(frozen=True)
class _Exchanged:
    """Payloads by partition, as bytes and in any order."""

    partitions: list[list[bytes]]

    def release(self) -> None:
        """Nothing is held."""


@dataclass
class _Job:
    """Tasks that run here one after another, in any order; of several attempts the last one counts."""

    jobs: "Jobs"
    work: Any
    level: int
    tasks: list[tuple[int, Any, int, Sequence[bytes]]] = field(default_factory=list)
    _parts: int = 0

    def read(self, function: Any, tasks: int) -> None:
        """So many tasks that get their number alone."""
        self._add(function, [()] * tasks)

    def channels(self, exchanged: _Exchanged | None, function: Any, partitions: int) -> None:
        """A task for each partition of an exchange."""
        self._add(function, [()] * partitions if exchanged is None else exchanged.partitions)

    def _add(self, function: Any, arrived: Sequence[Sequence[bytes]]) -> None:
        self._parts += 1
        first = self._parts << 20
        self.tasks += [(first + index, function, index, data) for index, data in enumerate(arrived)]

    def run(self, hear: Any = None) -> tuple[list[TaskReceipt], _Exchanged | None]:
        """Run all tasks; their receipts, and what they have sent, unless nothing comes after."""
        if not self.tasks:
            return [], None
        told: list[TaskReceipt] = []
        partitions = self.work.partitions(self.level)
        sent: list[list[bytes]] = [[] for _ in range(partitions)]
        for place in self.jobs.rng.permutation(len(self.tasks)):
            for payload in self._attempted(*self.tasks[place], told):
                sent[self.work.partition(payload, self.level)].append(bytes(payload.to_bytes()))
        for each in sent:
            self.jobs.rng.shuffle(each)
        for receipt in told if hear is not None else ():
            hear(receipt)
        return told, _Exchanged(sent) if partitions else None

    def _attempted(
        self, number: int, function: Any, index: int, arrived: Sequence[bytes], told: list[TaskReceipt]
    ) -> list[Payload]:
        """What arrives of a task: all of one attempt, seldom some channels' part of another."""
        rng = self.jobs.rng

        def attempt(told: list[TaskReceipt]) -> list[Payload]:
            task = new_task(self.level, number)
            tell = lambda receipt: told.append(pickle.loads(pickle.dumps(receipt)))  # noqa: E731
            return list(function(self.jobs.compiled, index, iter(arrived), task, tell))

        if not self.jobs.restless or rng.random() > 0.1:
            return attempt(told)
        # The first attempt is lost before it tells anything, or after it.
        first = attempt([] if rng.random() < 0.5 else told)
        again = attempt(told)
        if rng.random() < 0.95:
            return again
        some = {each.channel for each in again if rng.random() < 0.5}
        return [each for each in first if each.channel in some] + [
            each for each in again if each.channel not in some
        ]


@dataclass
class Jobs:
    """Runs the tasks of one run; what Spark ships is pickled here too."""

    compiled: Any
    rng: Any
    restless: bool
    session: Any = None
    slots: int = 1

    def job(self, work: Any, level: int) -> _Job:
        """Tasks that fill an exchange."""
        return _Job(self, work, level)


@contextmanager
def any_sizes(rng: Any) -> Iterator[None]:
    """Let what the product does for many rows, such as cutting, combining and spilling, happen to few."""
    drawn = {
        (sys.modules[RowsReader.__module__], "ROWS_PER_SPLIT"): [9, 131_072],
        (compaction, "BUDGET"): [100, 400, 8 << 20],
        (entries, "LEAST_BYTES"): [1, 1 << 20],
        (on_grid, "_FEWEST_ROWS"): [1, 1_000],
        (ports, "_PAYS"): [0.0, 1.3, np.inf],
        (ports, "_FLUSHED"): [13, 1 << 20],
        (payloads, "_HELD"): [1000, 64 * 2**20, 64 * 2**20, 64 * 2**20],
    }
    with ExitStack() as stack:
        for (module, name), values in drawn.items():
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, values[int(rng.integers(len(values)))])
        yield
