"""How tuples enter the tasks of an epoch: splits that workers read, and what only Spark can read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.connect import ResultFormat, Split
from penstock.runtime.dataflow.channels import ChannelTask
from penstock.runtime.dataflow.payloads import Payload, TaskId
from penstock.runtime.dataflow.receipts import TaskReceipt
from penstock.runtime.dataflow.tasks import (
    Compiled,
    EpochWork,
    Tell,
    judged_files,
    judged_rows,
    run_after,
    run_channel,
    run_reads,
    run_rows,
    taken_rows,
    written_late,
)
from penstock.runtime.dataflow.ways import ToFile, Way
from penstock.runtime.graph import Graph, SparkWay
from penstock.runtime.spark.frames import exchanged, reads_nothing, stepped, unknown_frame
from penstock.runtime.spark.jobs import Job
from penstock.state.storage import Location

__all__ = ["LEAST_BYTES", "Channels", "Entries", "Judging", "Reads", "shared_out"]

LEAST_BYTES = 1 << 20
"""So much is worth a task of its own, about, as long as nobody has measured what it costs."""

Task = tuple[tuple[str, Split], ...]


@dataclass(frozen=True)
class Reads:
    """What an epoch reads: splits by task, and for each stream the frames that Spark reads."""

    tasks: tuple[Task, ...] = ()
    frames: Mapping[str, Sequence[DataFrame]] = field(default_factory=dict)


def shared_out(
    splits: Mapping[str, Sequence[Split]], tasks: int, grain: int = LEAST_BYTES
) -> tuple[Task, ...]:
    """Splits shared out to at most so many tasks of `grain` bytes, in their order and about equally."""
    every = [(stream, split) for stream, own in splits.items() for split in own]
    total = sum(split.size for _, split in every)
    count = max(1, min(tasks, -(-total // grain), len(every)))
    found: list[list[tuple[str, Split]]] = [[] for _ in range(count)]
    passed = 0
    for stream, split in every:
        # By the middle of the split, so that its larger part lies with its task.
        at = min(count - 1, (2 * passed + split.size) * count // (2 * total)) if total else 0
        found[at].append((stream, split))
        passed += split.size
    return tuple(tuple(each) for each in found if each)


@dataclass(frozen=True)
class Entries:
    """Adds to the jobs of an epoch the tasks that do not come from an exchange."""

    graph: Graph
    work: EpochWork
    reads: Reads
    session: SparkSession

    def enter(self, job: Job, level: int, files: Mapping[int, Sequence[str]]) -> None:
        """Add the tasks that read at the first level, and ways through Spark; `files` are those of stages."""
        if level == 0:
            self._read(job)
        for way in self.graph.spark_ways:
            if self._enters(way) == level:
                self._through_spark(job, way, files.get(way.number, ()))

    def _enters(self, way: SparkWay) -> int:
        """The level whose exchange a way through Spark leads to, or the job after that of its stage."""
        if isinstance(way.origin, str):
            return 0
        for level, parts in enumerate(self.work.levels):
            if way.stage is not None and any(part.stage == way.stage for part in parts):
                return level
        ends = [
            level
            for level, parts in enumerate(self.work.levels)
            if any(p.stage in self._roots(way.origin) for p in parts)
        ]
        return max(ends, default=-1) + 2

    def _roots(self, stage: int) -> set[int]:
        """The stage in whose channels a stage runs."""
        members = self.graph.compiled.members
        return {root for root, own in members.items() if stage in own}

    def _read(self, job: Job) -> None:
        through = self._observers()
        tasks = tuple(
            tuple((stream, split) for stream, split in task if stream not in through)
            for task in self.reads.tasks
        )
        tasks = tuple(each for each in tasks if each)
        job.read(_Reading(self.work, tasks), len(tasks))
        for stream, frames in self.reads.frames.items():
            for frame in frames if stream not in through else ():
                job.frame(frame, _Framed(self.work, stream))

    def _observers(self) -> dict[str, int]:
        """Streams that feed nothing but ways through Spark, and the way that observes them.

        Where Spark knows that no row passes a condition, it does not even read the rows. They are read all
        the same then, since time passes with them and some may be rejects.
        """
        found: dict[str, int] = {}
        for way in self.graph.spark_ways:
            alone = isinstance(way.origin, str) and not self.graph.compiled.ways[way.origin]
            if alone and way.origin not in found and not self._never(way):
                found[str(way.origin)] = way.number
        return found

    def _never(self, way: SparkWay) -> bool:
        """Whether Spark knows that no row passes a way."""
        known = self.graph.never
        if way.number not in known:
            probe = unknown_frame(self.session, way.before.schema)
            known[way.number] = reads_nothing(self._made(probe, way))
        return known[way.number]

    @staticmethod
    def _made(frame: DataFrame, way: SparkWay) -> DataFrame:
        """A frame after all that Spark does on a way."""
        made = stepped(frame, way.steps)
        return made if way.exchange is None else exchanged(made, way.exchange)

    def _through_spark(self, job: Job, way: SparkWay, files: Sequence[str]) -> None:
        for frame in self._rows(job, way, files):
            job.frame(self._made(frame, way), _After(self.work, way.number))

    def _rows(self, job: Job, way: SparkWay, files: Sequence[str]) -> Iterator[DataFrame]:
        """The rows before the steps of Spark."""
        schema = from_arrow_schema(way.before.schema)
        if isinstance(way.origin, int):
            end = way.before.end
            assert isinstance(end, ToFile)
            if files:
                paths = [f"{end.target.folder.for_spark}/{name}" for name in files]
                yield self.session.read.schema(schema).parquet(*paths)
            return
        observed = self._observers().get(way.origin) == way.number
        taking = _Taking(self.work, way.origin, way.before, observed)
        tasks = [[split for stream, split in task if stream == way.origin] for task in self.reads.tasks]
        tasks = [each for each in tasks if each]
        if tasks:
            yield job.rows(len(tasks), schema, partial(taking.splits, tuple(map(tuple, tasks))))
        for frame in self.reads.frames.get(way.origin, ()):
            yield job.rows_of(frame, schema, taking.batches)


@dataclass(frozen=True)
class Judging:
    """A second look for tuples that a stage found to be too late, by hash of key and bucket."""

    work: EpochWork
    stage: int
    late: tuple[tuple[int, int], ...]
    target: ResultFormat
    between: Location

    def enter(self, job: Job, reads: Reads, held: Sequence[tuple[int, str]]) -> None:
        """A task for each that has read, and one for all files that were kept for this."""
        tasks: list[Any] = list(reads.tasks)
        files = tuple(held)
        job.read(_Judge(self, tuple(tasks), files), len(tasks) + (1 if files else 0))


@dataclass(frozen=True)
class _Judge:
    judging: Judging
    tasks: tuple[Task, ...]
    files: tuple[tuple[int, str], ...]

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        for _ in arrived:
            pass
        given = self.judging
        if index < len(self.tasks):
            rows = judged_rows(compiled, given.work, given.stage, self.tasks[index], given.late)
        else:
            rows = judged_files(compiled, given.stage, given.between, self.files, given.late)
        files = written_late(rows, given.stage, given.target)
        tell(TaskReceipt(task, files=files))
        return iter(())


@dataclass(frozen=True)
class Channels:
    """The tasks of the channels of a level."""

    work: EpochWork
    tasks: Mapping[int, ChannelTask]
    level: int

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        """What a task does with the payloads of its partition."""
        return run_channel(compiled, self.work, self.tasks, self.level, index, arrived, task, tell)


@dataclass(frozen=True)
class _Reading:
    work: EpochWork
    tasks: tuple[Task, ...]

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        for _ in arrived:
            pass
        return run_reads(compiled, self.work, task, self.tasks[index], tell)


@dataclass(frozen=True)
class _Framed:
    work: EpochWork
    stream: str

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        del index
        return run_rows(compiled, self.work, task, self.stream, arrived, tell)


@dataclass(frozen=True)
class _After:
    work: EpochWork
    number: int

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Payload]:
        del index
        return run_after(compiled, self.work, task, self.number, arrived, tell)


@dataclass(frozen=True)
class _Taking:
    work: EpochWork
    stream: str
    way: Way
    observed: bool

    def splits(  # noqa: PLR0913, PLR0917 -- what a task is given
        self,
        tasks: tuple[tuple[Split, ...], ...],
        compiled: Compiled,
        index: int,
        arrived: Iterable[Any],
        task: TaskId,
        tell: Tell,
    ) -> Iterator[Any]:
        """The rows of splits; what arrives is the number of the task, once."""
        numbers = [number for batch in arrived for number in batch.column(0).to_pylist()]
        del index
        reads = [split for number in numbers for split in tasks[number]]
        return taken_rows(
            compiled, self.work, task, self.stream, reads, self.way, tell, observed=self.observed
        )

    def batches(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: TaskId, tell: Tell
    ) -> Iterator[Any]:
        """The rows of batches that Spark has read."""
        del index
        return taken_rows(
            compiled, self.work, task, self.stream, arrived, self.way, tell, observed=self.observed
        )
