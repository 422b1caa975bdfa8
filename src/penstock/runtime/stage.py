"""The one shape of a stage: a map side that routes new tuples, and a kernel in every channel.

A stage object is made once when a run starts; what changes from epoch to epoch comes in as arguments and
goes out as a record, so the last manifest is all that a run remembers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.compile import Combining, Port, Stage
from penstock.runtime.exits import Exit
from penstock.runtime.intake import Intake, united
from penstock.runtime.map_side import MapSide
from penstock.runtime.placing import Homes, Placing
from penstock.runtime.receipts import Receipt
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.segments import Segment
from penstock.runtime.storage import Location

__all__ = ["Entrance", "StageRunner", "StageTask", "Task", "Turn", "beside", "run_channels"]

_RECEIPT = StructType([StructField("stage", IntegerType()), StructField("receipt", StringType())])


@dataclass(frozen=True)
class Entrance:
    """A port, and for each of its feeds the exit of the stage before through which it comes.

    `number` is its stage and its place there.
    """

    number: tuple[int, int]
    port: Port
    exits: tuple[int | None, ...]

    def rows(self, intake: Intake, exchanges: int) -> str | None:
        """The tuples of the epoch as what may stand after FROM, None if there are none."""
        found = [
            intake.rows(feed, exit_number, exchanges=exchanges, port=self.number)
            for feed, exit_number in zip(self.port, self.exits, strict=True)
        ]
        sources = [rows for rows in found if rows is not None]
        if len(sources) < 2:
            return sources[0] if sources else None
        return united(sources, self.port[0].end.schema.names)


@dataclass(frozen=True)
class Turn:
    """How far a stage comes in an epoch: the frontiers of its ports, its promise, its first open window.

    `idle` says that its channels have nothing to do, `ended` that nothing more will ever come.
    """

    frontiers: tuple[int | None, ...]
    promise: int | None
    first_open: int | None = None
    idle: bool = False
    ended: bool = False


class Task(Protocol):
    """One epoch's work for every channel of a stage, shipped to the workers."""

    def work(self, channel: int, new: Any) -> tuple[Receipt, Mapping[int, Any]]:
        """From new rows (None if there are none) to a receipt, and what goes on in the same channel."""
        ...


class StageRunner(Protocol):
    """What runs one stage of a query."""

    @property
    def stage(self) -> Stage:
        """What it runs."""
        ...

    @property
    def entrances(self) -> tuple[Entrance, ...]:
        """Its ports, left and right for a join."""
        ...

    @property
    def exits(self) -> tuple[Exit, ...]:
        """Its ways out."""
        ...

    @property
    def combinings(self) -> tuple[Combining, ...]:
        """Where partials may be formed, the better guess first; of no meaning for joins."""
        ...

    def bound(self, record: StageRecord, port: int) -> int | None:
        """The time below which tuples come too late for a port."""
        ...

    def map_side(self, intake: Intake, plan: StagePlan, record: StageRecord) -> MapSide:
        """Run everything up to the exchange."""
        ...

    def turn(
        self, record: StageRecord, frontiers: tuple[int | None, ...], side: MapSide, drained: int | None
    ) -> Turn:
        """How far the stage comes; `drained` is where all streams have ended, if they have."""
        ...

    def task(self, record: StageRecord, turn: Turn, plan: StagePlan, folder: Location, label: str) -> Task:
        """The work of its channels."""
        ...

    def placing(self, before: Homes, after: Homes) -> Placing:
        """Where its state goes when the router of its channels changes."""
        ...

    def joined(self, own: tuple[Segment, ...], came: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The segments of a channel that kept its own and got others."""
        ...


def beside(stages: Sequence[StageRunner], number: int) -> list[StageRunner]:
    """The stages that run in the channels of a stage, each after the one that feeds it."""
    found: list[StageRunner] = []
    for runner in stages:
        if runner.stage.beside == number:
            found += [runner, *beside(stages, runner.stage.number)]
    return found


def run_channels(
    session: SparkSession, side: MapSide, channels: int, tasks: tuple["StageTask", ...]
) -> dict[int, list[Receipt]]:
    """Run the kernels on every channel; one without new rows still has windows to close."""
    rows = side.shuffled.rows if side.shuffled else _no_rows(session, channels)
    found = rows.mapInArrow(_Kernel(tasks), _RECEIPT).collect()
    receipts: dict[int, list[Receipt]] = {each.stage: [] for each in tasks}
    for row in found:
        receipts[row["stage"]].append(Receipt.from_json(row["receipt"]))
    return {stage: sorted(each, key=lambda one: one.channel) for stage, each in receipts.items()}


@dataclass(frozen=True)
class StageTask:
    """A stage's task and, if it runs in the channels of another stage, through which exit its rows come."""

    stage: int
    task: Task
    beside: int | None = None
    exit: int | None = None


@dataclass(frozen=True)
class _Kernel:
    """What Spark ships to the workers: the tasks, told their channel by the partition they run on."""

    tasks: tuple[StageTask, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        channel = context.partitionId()
        passed: dict[tuple[int, int], Any] = {}
        for each in self.tasks:
            if each.beside is None:
                new = _table(batches)
            else:
                assert each.exit is not None
                new = passed.get((each.beside, each.exit))
            receipt, onward = each.task.work(channel, new)
            passed |= {(each.stage, number): table for number, table in onward.items()}
            yield pa.RecordBatch.from_arrays(
                [pa.array([each.stage], pa.int32()), pa.array([receipt.to_json()])],
                names=["stage", "receipt"],
            )


def _table(batches: Iterator[Any]) -> Any:
    """All rows of the epoch for this channel, or None.

    Any column may have nulls: where Spark has proved that one has none, in this epoch or that, its rows must
    still go together with those of segments.
    """
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return None
    table = pa.Table.from_batches(held)
    return pa.Table.from_arrays(table.columns, names=table.column_names)


def _no_rows(session: SparkSession, channels: int) -> DataFrame:
    """What the channels of an epoch without tuples start from."""
    return session.range(0, numPartitions=1).repartitionById(channels, F.lit(0))
