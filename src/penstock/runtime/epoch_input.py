"""The input of an epoch's stages: tuples of streams, and results of earlier stages in the same epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from penstock.compile import Feed, Port
from penstock.connect.results import Output
from penstock.operators.exchange import TIME
from penstock.query import Stream, quoted
from penstock.runtime.routers import Routers
from penstock.runtime.spark.frames import REJECT, from_on, stepped, steps_sql, valid
from penstock.runtime.spark.plans import Observed
from penstock.runtime.spark.source_notes import SourceNote
from penstock.state.storage import Location

__all__ = ["NEVER", "EpochInput", "PortInput", "StageFiles", "StreamSeen"]

NEVER = -(2**62)
"""A time before every tuple."""

# Evaluated for every tuple of the stream, so it holds only what decides on the epoch.
_OBSERVED = f"""struct(
  max(CASE WHEN {REJECT} IS NULL THEN {TIME} END), min(CASE WHEN {REJECT} IS NULL THEN {TIME} END),
  max(CASE WHEN {REJECT} IS NULL THEN 0 ELSE 1 END), count(1)
)"""


@dataclass(frozen=True)
class StreamSeen:
    """What an epoch saw of a stream: latest and earliest time, whether it has rejects, number of tuples.

    The number is None if the channels count instead.
    """

    latest: int | None = None
    earliest: int | None = None
    rejects: bool = False
    rows: int | None = None

    @classmethod
    def of(cls, observed: tuple[int | None, ...]) -> "StreamSeen":
        """From the values of an observation."""
        latest, earliest, rejects, rows = observed
        return cls(latest, earliest, bool(rejects), rows)


@dataclass(frozen=True)
class StageFiles:
    """The files that a stage leaves for the next stage, and their columns."""

    folder: Location
    schema: StructType
    outputs: tuple[Output, ...]


@dataclass
class EpochInput:
    """The tuples of one epoch, by origin.

    `arrivals` are the marked frames of streams with new tuples; tuples of a stream below its entry in
    `bounds` are late. `handed` grows as stages run. A port, identified by its stage and place, takes nothing
    from another stage below its entry in `floors`; only best effort has floors. Tuples left out for that
    reason are in `missed`, by the stage that they come from. `notes` is what sources said of themselves.
    """

    session: SparkSession
    arrivals: Mapping[str, DataFrame]
    bounds: Mapping[str, int | None]
    routers: Routers
    floors: Mapping[tuple[int, int], int] = field(default_factory=dict)
    handed: dict[tuple[int, int], StageFiles] = field(default_factory=dict)
    missed: list[tuple[int, DataFrame]] = field(default_factory=list)
    notes: Mapping[str, SourceNote] = field(default_factory=dict)
    seen: dict[str, StreamSeen] = field(default_factory=dict)
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
        start = self.session.sql(f"SELECT * FROM {rows}")
        return self._view(stepped(start, feed.outside, exchanges=exchanges if feed.exchanged else None))

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
                row = self.arrivals[stream].selectExpr(f"{_OBSERVED} AS seen").collect()[0]["seen"]
                found = tuple(row)
            self.seen[stream] = StreamSeen.of(found)
        self._watching.clear()

    def _of_stream(self, stream: Stream) -> str | None:
        rows = self.arrivals.get(stream.name)
        if rows is None:
            return None
        if stream.name not in self.seen and stream.name not in self._watching:
            rows = rows.observe(_metric(stream.name), F.expr(_OBSERVED).alias("seen"))
            self._watching.add(stream.name)
        return valid(self._view(rows), stream, self.bounds.get(stream.name))

    def _of_stage(self, stage: int, exit_number: int) -> str | None:
        handed = self.handed.get((stage, exit_number))
        if handed is None or not handed.outputs:
            return None
        paths = [f"{handed.folder.for_spark}/{output.name}" for output in handed.outputs]
        return self._view(self.session.read.schema(handed.schema).parquet(*paths))

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


def _metric(stream: str) -> str:
    """The name under which a stream is observed."""
    return f"penstock_{stream}"
