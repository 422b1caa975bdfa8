# ruff: noqa: SLF001 -- RDDs of bytes, and their exchange, are not part of PySpark's public API
"""Tasks on Spark: RDDs of bytes, one exchange for a level, and receipts that come back as tasks finish.

An exchange takes pairs of a partition and a buffer, both as bytes, which tasks in Python give directly: Spark
neither pickles nor groups them. Spark runs the tasks up to the exchange; the driver then reads their
receipts, and only then says what the channels do. Receipts are added to an accumulator: Spark delivers what a
task added when it succeeds, and again if it has to run a second time, so a receipt names its attempt.
"""

import hashlib
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, accumulators, cloudpickle
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer, pack_long
from pyspark.sql import DataFrame, SparkSession

from penstock.runtime.cores import here
from penstock.runtime.dataflow.payloads import Payload, TaskId, new_task
from penstock.runtime.dataflow.receipts import TaskReceipt, Took
from penstock.runtime.dataflow.tasks import Compiled, EpochWork, Tell
from penstock.runtime.occupied import Occupied
from penstock.runtime.spark.worker_heap import freeze_worker

__all__ = ["Exchanged", "Job", "Shipped", "SparkJobs", "TaskFunction"]

TaskFunction = Callable[[Compiled, int, Iterable[Any], Any, Tell], Iterator[Payload]]
"""What a task does: with what is compiled, its number, what it reads, its identity, and who is told."""

BINARY = "value binary"
_MOST_TASKS = 1 << 20


@dataclass(frozen=True)
class Shipped:
    """What never changes in a run, pickled once; a worker unpickles it once."""

    data: bytes
    name: str

    @classmethod
    def of(cls, compiled: Compiled) -> "Shipped":
        """Pickle it; functions of the user go by value."""
        data: bytes = cloudpickle.dumps(compiled)  # type: ignore[no-untyped-call]
        return cls(data, hashlib.blake2b(data, digest_size=16).hexdigest())

    def open(self) -> Compiled:
        """The same in a worker."""
        return _opened(self)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shipped) and self.name == other.name


@lru_cache(maxsize=4)
def _opened(shipped: Shipped) -> Compiled:
    found: Compiled = pickle.loads(shipped.data)  # noqa: S301 -- the driver made it
    return found


class _Telling(AccumulatorParam[list[bytes]]):
    """Adds up what a task says; on the driver, tells it at once."""

    def __init__(self, hear: Callable[[bytes], None] | None = None) -> None:
        self._hear = hear

    def __reduce__(self) -> tuple[type["_Telling"], tuple[()]]:
        return _Telling, ()

    def zero(self, value: list[bytes]) -> list[bytes]:
        del value
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        if self._hear is None:
            return value1 + value2
        for each in value2:
            self._hear(each)
        return value1


@dataclass(frozen=True)
class _Task:
    """The callable that Spark ships to the workers: payloads out, in pairs of partition and bytes."""

    shipped: Shipped
    work: EpochWork
    level: int
    first: int
    function: TaskFunction
    told: Accumulator[list[bytes]]

    def identity(self) -> TaskId:
        """This attempt of the task that runs here."""
        context = TaskContext.get()
        assert context is not None
        return new_task(self.level, self.first + context.partitionId())

    def __call__(self, index: int, arrived: Iterable[Any]) -> Iterator[Any]:
        for payload in self.run(index, arrived):
            yield pack_long(  # type: ignore[no-untyped-call]
                self.work.partition(payload, self.level)
            )
            yield payload.to_bytes()

    def run(self, index: int, arrived: Iterable[Any]) -> Iterator[Any]:
        """What the function gives; the receipt says what the task took."""
        freeze_worker()
        with Occupied() as occupied:
            began = time.perf_counter(), occupied(), time.process_time()

            def tell(receipt: TaskReceipt) -> None:
                now = time.perf_counter(), occupied(), time.process_time()
                seconds, busy, cpu = (end - begin for begin, end in zip(began, now, strict=True))
                took = Took(here(), seconds, busy, cpu)
                self.told.add([pickle.dumps(replace(receipt, took=took))])

            yield from self.function(self.shipped.open(), index, arrived, self.identity(), tell)


@dataclass(frozen=True)
class _FrameTask:
    """The same over batches of a DataFrame."""

    task: _Task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for each in self.task(0, batches):
            yield pa.RecordBatch.from_arrays([pa.array([bytes(each)], pa.binary())], ["value"])


@dataclass(frozen=True)
class Exchanged:
    """Payloads in the files of a shuffle."""

    pairs: Any
    dependency: Any
    context: Any
    partitions: int

    def release(self) -> None:
        """Delete the files now, not when the JVM happens to collect garbage."""
        cleaner = self.context._jsc.sc().cleaner()
        if cleaner.isDefined():
            cleaner.get().doCleanupShuffle(self.dependency.shuffleId(), False)


@dataclass
class Job:
    """The tasks that fill one exchange, or that end an epoch."""

    jobs: "SparkJobs"
    work: EpochWork
    level: int
    parts: list[Any] = field(default_factory=list)
    _made: int = 0

    def read(self, function: TaskFunction, tasks: int) -> None:
        """So many tasks that get their number alone."""
        if tasks:
            self.parts.append(self._python(self.jobs.numbers(tasks), function))

    def channels(self, exchanged: Exchanged | None, function: TaskFunction, partitions: int) -> None:
        """A task for each partition of an exchange, with its payloads; without an exchange there are none."""
        if exchanged is None:
            self.parts.append(self._python(self.jobs.numbers(partitions), _Alone(function)))
            return
        values = self.jobs.jvm.PythonRDD.valueOfPair(exchanged.pairs)
        self.parts.append(self._python(RDD(values, self.jobs.context, NoOpSerializer()), function))

    def frame(self, frame: DataFrame, function: TaskFunction) -> None:
        """The tasks of a DataFrame, with its batches."""
        made = frame.mapInArrow(_FrameTask(self._task(function)), BINARY)
        encoder = self.jobs.jvm.org.apache.spark.sql.Encoders.BINARY()
        self.parts.append(getattr(made._jdf, "as")(encoder).javaRDD())

    def rows(self, tasks: int, schema: Any, function: Any) -> DataFrame:
        """A DataFrame of the rows that tasks give as batches; they get their number alone."""
        frame = self.jobs.session.range(0, tasks, 1, tasks)
        return frame.mapInArrow(_RowsTask(self._task(function)), schema)

    def rows_of(self, frame: DataFrame, schema: Any, function: Any) -> DataFrame:
        """A DataFrame of the rows that tasks make of the batches of another."""
        return frame.mapInArrow(_RowsTask(self._task(function)), schema)

    def run(
        self, hear: Callable[[TaskReceipt], object] | None = None
    ) -> tuple[list[TaskReceipt], Exchanged | None]:
        """Run all tasks; their receipts, and the exchange that they have filled, if something comes after."""
        jobs = self.jobs
        if not self.parts:
            return [], None
        together, *others = self.parts
        for each in others:
            together = together.union(each)
        with jobs.hearing(hear) as receipts:
            partitions = self.work.partitions(self.level)
            if not partitions:
                together.count()
                return receipts, None
            pairs = jobs.jvm.PairwiseRDD(together.rdd()).asJavaPairRDD()
            pairs = pairs.partitionBy(jobs.jvm.PythonPartitioner(partitions, 0))
            dependency = pairs.rdd().dependencies().head()
            if together.getNumPartitions():
                jobs.context._jsc.sc().submitMapStage(dependency).get()
        return receipts, Exchanged(pairs, dependency, jobs.context, partitions)

    def _task(self, function: TaskFunction) -> _Task:
        # Tasks of one job may be in several of Spark's stages, each of which counts its partitions.
        self._made += 1
        first = self._made * _MOST_TASKS
        return _Task(self.jobs.shipped, self.work, self.level, first, function, self.jobs.told)

    def _python(self, rdd: Any, function: TaskFunction) -> Any:
        made = rdd.mapPartitionsWithIndex(self._task(function))
        made._bypass_serializer = True
        return made._jrdd


@dataclass(frozen=True)
class _RowsTask:
    """The callable that gives batches of rows to Spark."""

    task: _Task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from self.task.run(0, batches)


class SparkJobs:
    """Runs the tasks of one run."""

    def __init__(self, session: SparkSession, compiled: Compiled) -> None:
        self.session = session
        self.context = session.sparkContext
        self.jvm: Any = self.context._jvm
        self.shipped = Shipped.of(compiled)
        self.told: Accumulator[list[bytes]] = self.context.accumulator([], _Telling(self._hear))
        self._numbers: dict[int, Any] = {}
        self._heard: Callable[[bytes], None] | None = None

    def job(self, work: EpochWork, level: int) -> Job:
        """Tasks that fill an exchange; one level behind the last one ends the epoch."""
        return Job(self, work, level)

    @property
    def slots(self) -> int:
        """The number of tasks that can run at once."""
        return int(self.context.defaultParallelism)

    def numbers(self, tasks: int) -> Any:
        """An RDD of so many partitions, made once."""
        if tasks not in self._numbers:
            self._numbers[tasks] = self.context.parallelize(range(tasks), tasks)
        return self._numbers[tasks]

    def close(self) -> None:
        """Let go of what PySpark keeps for the receipts."""
        accumulators._accumulatorRegistry.pop(self.told.aid, None)

    def hearing(self, hear: Callable[[TaskReceipt], object] | None) -> "_Hearing":
        """While tasks run, collect their receipts."""
        return _Hearing(self, hear)

    def _hear(self, data: bytes) -> None:
        if self._heard is not None:
            self._heard(data)


class _Hearing:
    def __init__(self, jobs: SparkJobs, hear: Callable[[TaskReceipt], object] | None) -> None:
        self._jobs, self._hear = jobs, hear
        self._receipts: list[TaskReceipt] = []

    def __enter__(self) -> list[TaskReceipt]:
        self._jobs._heard = self._take
        return self._receipts

    def __exit__(self, *_: object) -> None:
        self._jobs._heard = None

    def _take(self, data: bytes) -> None:
        receipt: TaskReceipt = pickle.loads(data)  # noqa: S301 -- our own tasks made it
        self._receipts.append(receipt)
        if self._hear is not None:
            self._hear(receipt)


@dataclass(frozen=True)
class _Alone:
    """A task to which nothing has been sent; a worker that leaves what it is given would be lost."""

    function: TaskFunction

    def __call__(
        self, compiled: Compiled, index: int, arrived: Iterable[Any], task: Any, tell: Tell
    ) -> Iterator[Payload]:
        for _ in arrived:
            pass
        return self.function(compiled, index, (), task, tell)
