"""Rows through the exchange of a run, without a query: placed, sent to channels, received, and at what cost.

Tasks place rows on Arrow and send them through Spark's shuffle as the tasks of a run do. The cost is the
processor time of Spark's JVM and of its Python workers, since other work may share the machine.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
from pyspark.sql import SparkSession

from penstock.distribution.distribution import Placer, by_channel
from penstock.runtime.dataflow.payloads import Inbox, Payload, TaskId
from penstock.runtime.dataflow.receipts import SentSeen, TaskReceipt
from penstock.runtime.dataflow.tasks import HOME, Compiled, EpochWork, LevelPart, Tell
from penstock.runtime.spark.jobs import SparkJobs
from penstock.state.storage import Location

__all__ = ["Exchanging", "Taken"]

Tables = Callable[[int], Iterable[Any]]
Open = Callable[[int], Placer]


@dataclass(frozen=True)
class Taken:
    """Seconds by the clock and of processor time, and how many rows came to the channels."""

    wall_s: float
    cpu_s: float
    rows: int


class Exchanging:
    """The exchange of one session."""

    def __init__(self, session: SparkSession) -> None:
        nothing = Compiled({}, {}, {}, (), {}, {}, routers=Location("/"))
        self._jobs = SparkJobs(session, nothing)
        jvm: Any = session._jvm  # noqa: SLF001 -- Spark has no public way to ask for its process
        self._spark = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())

    def take(self, tables: Tables, placer: Open, channels: int, tasks: int = 2) -> Taken:
        """Send the tables of each task where its placer says."""
        work = EpochWork(0, {}, (), levels=((LevelPart(0, HOME, 0, channels),),))
        wall, cpu = time.perf_counter(), self._processor()
        sending = self._jobs.job(work, 0)
        sending.read(_Sending(tables, placer), tasks)
        _, exchanged = sending.run()
        receiving = self._jobs.job(work, 1)
        receiving.channels(exchanged, _received, channels)
        receipts, _ = receiving.run()
        taken = Taken(
            time.perf_counter() - wall,
            self._processor() - cpu,
            sum(each.sent[0].rows for each in receipts),
        )
        if exchanged is not None:
            exchanged.release()
        return taken

    def _processor(self) -> float:
        """The processor seconds of Spark's processes so far, with those of workers that have ended."""
        found = 0.0
        for each in (self._spark, *self._spark.children(recursive=True)):
            try:
                times = each.cpu_times()
            except psutil.NoSuchProcess:
                continue
            found += times.user + times.system + times.children_user + times.children_system
        return float(found)


@dataclass(frozen=True)
class _Sending:
    tables: Tables
    placer: Open

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        del compiled
        for _ in arrived:
            pass
        number, placer = 0, self.placer(index)
        for table in self.tables(index):
            for channel, rows in by_channel(table, placer):
                number += 1
                yield Payload.of(
                    rows, stage=0, channel=channel, port=0, formed=False, hop=HOME, task=task, number=number
                )
        tell(TaskReceipt(task))


def _received(
    compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
) -> Iterator[Payload]:
    """Take all rows of a channel in their order."""
    del compiled, index
    inbox = Inbox()
    for data in arrived:
        inbox.add(Payload.from_bytes(data))
    rows = sum(payload.rows().num_rows for payload in inbox.payloads())
    tell(TaskReceipt(task, sent={0: SentSeen(rows=rows)}))
    return iter(())
