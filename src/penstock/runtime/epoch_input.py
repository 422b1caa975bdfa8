"""The input of an epoch's stages: tuples of streams, and results of earlier stages in the same epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from penstock.compile import Feed, Port
from penstock.connect import ARRIVED
from penstock.connect.results import Output
from penstock.operators import Step
from penstock.operators.exchange import TIME
from penstock.query import Stream, quoted
from penstock.runtime.refusals import EpochRefusals
from penstock.runtime.routers import Routers
from penstock.runtime.spark.calling import called_apart
from penstock.runtime.spark.frames import REJECT, from_on, stepped, steps_sql, valid
from penstock.runtime.spark.offsets import SourceNote
from penstock.runtime.spark.plans import Observed, observed_by
from penstock.state.storage import Location

__all__ = ["NEVER", "EpochInput", "PortInput", "StageFiles", "StreamSeen"]

NEVER = -(2**62)
"""A time before every tuple."""

# Evaluated for every tuple of the stream, so it holds only what decides on the epoch.
_OBSERVED = f"""
  max(CASE WHEN {REJECT} IS NULL THEN {TIME} END), min(CASE WHEN {REJECT} IS NULL THEN {TIME} END),
  max(CASE WHEN {REJECT} IS NULL THEN 0 ELSE 1 END), count(1)
"""


@dataclass(frozen=True)
class StreamSeen:
    """What an epoch saw of a stream: latest and earliest time, whether it has rejects, number of tuples.

    The number is None if the channels count instead. The first and the last arrival are in microseconds since
    1970, None if the source does not tell.
    """

    latest: int | None = None
    earliest: int | None = None
    rejects: bool = False
    rows: int | None = None
    arrived_first: int | None = None
    arrived_last: int | None = None

    @classmethod
    def of(cls, observed: tuple[int | None, ...]) -> "StreamSeen":
        """From the values of an observation."""
        latest, earliest, rejects, rows, *arrived = observed
        return cls(latest, earliest, bool(rejects), rows, *arrived)


@dataclass(frozen=True)
class StageFiles:
    """The files that a stage or a function leaves for what follows in the epoch, and their columns."""

    folder: Location
    schema: StructType
    outputs: tuple[Output, ...]


@dataclass
class EpochInput:
    """The tuples of one epoch, by origin.

    `arrivals` are the marked frames of streams with new tuples; tuples of a stream below its entry in
    `bounds` are late. `handed` grows as stages run. A port, identified by its stage and place, takes nothing
    from another stage below its entry in `floors`; only best effort has floors. Tuples left out for that
    reason are in `missed`, by the stage that they come from; those that channels found to be too late are in
    `judged`, by the stage that judged. `notes` is what sources said of themselves.
    Tuples for which a function raises go to `refused`, and `called` is what functions made of the others.
    """

    session: SparkSession
    arrivals: Mapping[str, DataFrame]
    bounds: Mapping[str, int | None]
    routers: Routers
    floors: Mapping[tuple[int, int], int] = field(default_factory=dict)
    handed: dict[tuple[int, int], StageFiles] = field(default_factory=dict)
    missed: list[tuple[int, DataFrame]] = field(default_factory=list)
    judged: list[tuple[int, DataFrame]] = field(default_factory=list)
    notes: Mapping[str, SourceNote] = field(default_factory=dict)
    seen: dict[str, StreamSeen] = field(default_factory=dict)
    refused: EpochRefusals | None = None
    called: dict[tuple[object, ...], StageFiles] = field(default_factory=dict)
    _watching: set[str] = field(default_factory=set)
    _views: int = 0

    def rows(
        self,
        feed: Feed,
        exit_number: int | None,
        *,
        exchanges: int,
        port: tuple[int, int] | None = None,
    ) -> str | None:
        """The tuples of a feed as a FROM source, None if it has none in this epoch."""
        if isinstance(feed.origin, Stream):
            rows = self._of_stream(feed.origin)
        else:
            assert exit_number is not None
            rows = self._of_stage(feed.origin, exit_number)
        if rows is None:
            return None
        floor = None if port is None else self.floors.get(port)
        if floor is not None and isinstance(feed.origin, int):
            self.missed.append(
                (feed.origin, self.session.sql(f"SELECT * FROM {rows} WHERE {TIME} < {floor}L"))
            )
            rows = f"(SELECT * FROM {rows} WHERE {from_on(floor)})"
        if not feed.exchanged and not any(step.calls for step in feed.outside):
            return steps_sql(feed.outside, rows, TIME)
        if self.refused is not None and any(step.calls for step in feed.outside):
            place = (_name(feed), exit_number, floor, feed.exchanged)
            return self._called_apart(feed, rows, place, exchanges if feed.exchanged else None)
        start = self.session.sql(f"SELECT * FROM {rows}")
        return self._view(stepped(start, feed.outside, exchanges=exchanges if feed.exchanged else None))

    def _called_apart(
        self, feed: Feed, rows: str, place: tuple[object, ...], exchanges: int | None
    ) -> str | None:
        """The tuples of a feed after its steps, each function in a job of its own; None if none is left.

        Feeds that begin with the same steps share what their functions made, so that each function sees a
        tuple once. `place` is where the rows come from.
        """
        steps, done = feed.outside, 0
        for number, step in enumerate(steps):
            if not step.calls:
                continue
            way = (*place, steps[: number + 1])
            if way not in self.called:
                frame = self.session.sql(f"SELECT * FROM {rows}")
                frame = stepped(frame, steps[done:number], exchanges=exchanges)
                frame = frame if exchanges is None else frame.repartition(exchanges)
                self.called[way] = self._call(frame, step, _name(feed))
            if not self.called[way].outputs:
                return None
            rows, done = self._read(self.called[way]), number + 1
        if exchanges is None:
            return steps_sql(steps[done:], rows, TIME)
        rest = self.session.sql(f"SELECT * FROM {rows}")
        return self._view(stepped(rest, steps[done:], exchanges=exchanges))

    def _call(self, frame: DataFrame, step: Step, origin: str | int) -> StageFiles:
        assert self.refused is not None
        between = self.refused.between
        found = called_apart(frame, step, between, self.refused.refusals(origin))
        self.settle(observed_by(found.job, self.watched()))
        self.refused.take(origin, found.refused)
        return StageFiles(between.folder, found.schema, found.made)

    def route(self, router: str, hashed: str) -> Column:
        """The channel that a router gives for a hash given as SQL."""
        return self.routers.column(router, hashed)

    def watched(self) -> list[str]:
        """The observations that frames made since the last call of `settle` need."""
        return [_metric(stream) for stream in sorted(self._watching)]

    def settle(self, observed: Observed) -> None:
        """Take in the observations, and scan streams again if Spark left theirs out."""
        for stream in sorted(self._watching):
            found = observed.get(_metric(stream))
            if found is None:
                frame = self.arrivals[stream]
                row = frame.selectExpr(f"{_observed(frame)} AS seen").collect()[0]["seen"]
                found = tuple(row)
            self.seen[stream] = StreamSeen.of(found)
        self._watching.clear()

    def _of_stream(self, stream: Stream) -> str | None:
        rows = self.arrivals.get(stream.name)
        if rows is None:
            return None
        if stream.name not in self.seen and stream.name not in self._watching:
            rows = rows.observe(_metric(stream.name), F.expr(_observed(rows)).alias("seen"))
            self._watching.add(stream.name)
        return valid(self._view(rows), stream, self.bounds.get(stream.name))

    def _of_stage(self, stage: int, exit_number: int) -> str | None:
        handed = self.handed.get((stage, exit_number))
        if handed is None or not handed.outputs:
            return None
        return self._read(handed)

    def _read(self, files: StageFiles) -> str:
        paths = [f"{files.folder.for_spark}/{output.name}" for output in files.outputs]
        return self._view(self.session.read.schema(files.schema).parquet(*paths))

    def _view(self, frame: DataFrame) -> str:
        """A view name for a frame; the next epoch uses the names again, so there are never many."""
        name = f"_ps_view{self._views}"
        self._views += 1
        frame.createOrReplaceTempView(name)
        return name


@dataclass(frozen=True)
class PortInput:
    """What comes into a port: its feeds, each with the exit of the stage that it comes from.

    `number` is the stage of the port and its place there.
    """

    number: tuple[int, int]
    port: Port
    exits: tuple[int | None, ...]

    def rows(self, intake: EpochInput, exchanges: int) -> str | None:
        """The tuples of the epoch as a FROM source, None if there are none."""
        found = [
            intake.rows(feed, exit_number, exchanges=exchanges, port=self.number)
            for feed, exit_number in zip(self.port, self.exits, strict=True)
        ]
        sources = [rows for rows in found if rows is not None]
        if len(sources) < 2:
            return sources[0] if sources else None
        columns = ", ".join([*map(quoted, self.port[0].end.schema.names), TIME])
        return f"({' UNION ALL '.join(f'SELECT {columns} FROM {each}' for each in sources)})"


def _observed(frame: DataFrame) -> str:
    """What is observed of a stream's tuples."""
    stamps = f", min({ARRIVED}), max({ARRIVED})" if ARRIVED in frame.columns else ""
    return f"struct({_OBSERVED}{stamps})"


def _name(feed: Feed) -> str | int:
    """The stream or the stage that a feed comes from."""
    return feed.origin.name if isinstance(feed.origin, Stream) else feed.origin


def _metric(stream: str) -> str:
    """The name under which a stream is observed."""
    return f"penstock_{stream}"
