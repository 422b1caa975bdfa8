"""What comes into an epoch's stages: tuples of streams and what earlier stages of the epoch handed on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from penstock.compile import TIME, Feed
from penstock.query import Map, Stream, quoted
from penstock.runtime.results import Output
from penstock.runtime.routers import Routers
from penstock.runtime.spark.frames import REJECT, from_on, stepped, steps_sql, valid
from penstock.runtime.spark.plans import Observed
from penstock.runtime.storage import Location

__all__ = ["NEVER", "Handed", "Intake", "Seen", "metric", "united"]

NEVER = -(2**62)
"""A time before every tuple."""

# Evaluated for every tuple of the stream, so no more than what decides on the epoch.
_OBSERVED = f"""struct(
  max(CASE WHEN {REJECT} IS NULL THEN {TIME} END), min(CASE WHEN {REJECT} IS NULL THEN {TIME} END),
  max(CASE WHEN {REJECT} IS NULL THEN 0 ELSE 1 END), count(1)
)"""


@dataclass(frozen=True)
class Seen:
    """What an epoch saw of a stream: latest and earliest time, whether there are rejects, how many tuples.

    The number is None where the channels count.
    """

    latest: int | None = None
    earliest: int | None = None
    rejects: bool = False
    rows: int | None = None

    @classmethod
    def of(cls, observed: tuple[int | None, ...]) -> "Seen":
        """From the numbers of an observation."""
        latest, earliest, rejects, rows = observed
        return cls(latest, earliest, bool(rejects), rows)


@dataclass(frozen=True)
class Handed:
    """Files that a stage left for the next, and their columns."""

    folder: Location
    schema: StructType
    outputs: tuple[Output, ...]


@dataclass
class Intake:
    """The tuples of one epoch, by where they come from.

    `arrivals` are marked frames of the streams that have new tuples; `bounds` are the times below which
    tuples of a stream are late. `handed` grows as stages run. `floors` are the times below which a port,
    numbered by its stage and place, takes nothing from another stage any more; only best effort has them.
    What is left out for that is in `missed`, by the stage that it comes from.
    """

    session: SparkSession
    arrivals: Mapping[str, DataFrame]
    bounds: Mapping[str, int | None]
    routers: Routers
    floors: Mapping[tuple[int, int], int] = field(default_factory=dict)
    handed: dict[tuple[int, int], Handed] = field(default_factory=dict)
    missed: list[tuple[int, DataFrame]] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)
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
        """The tuples of a feed as what may stand after FROM, None if it has none in this epoch."""
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
        if not feed.exchanged and not any(isinstance(step, Map) for step in feed.outside):
            return steps_sql(feed.outside, rows, TIME)
        start = self.session.sql(f"SELECT * FROM {rows}")
        return self._view(stepped(start, feed.outside, exchanges=exchanges if feed.exchanged else None))

    def route(self, router: str, hashed: str) -> Column:
        """The channel by a router of a hash that is given as SQL."""
        return self.routers.column(router, hashed)

    def watched(self) -> list[str]:
        """The observations that frames made since the last settling ask for."""
        return [metric(stream) for stream in sorted(self._watching)]

    def settle(self, observed: Observed) -> None:
        """Take what was observed, and look again at streams of which Spark has left the observation out."""
        for stream in sorted(self._watching):
            found = observed.get(metric(stream))
            if found is None:
                row = self.arrivals[stream].selectExpr(f"{_OBSERVED} AS seen").collect()[0]["seen"]
                found = tuple(row)
            self.seen[stream] = Seen.of(found)
        self._watching.clear()

    def _of_stream(self, stream: Stream) -> str | None:
        rows = self.arrivals.get(stream.name)
        if rows is None:
            return None
        if stream.name not in self.seen and stream.name not in self._watching:
            rows = rows.observe(metric(stream.name), F.expr(_OBSERVED).alias("seen"))
            self._watching.add(stream.name)
        return valid(self._view(rows), stream, self.bounds.get(stream.name))

    def _of_stage(self, stage: int, exit_number: int) -> str | None:
        handed = self.handed.get((stage, exit_number))
        if handed is None or not handed.outputs:
            return None
        paths = [f"{handed.folder.uri}/{output.name}" for output in handed.outputs]
        return self._view(self.session.read.schema(handed.schema).parquet(*paths))

    def _view(self, frame: DataFrame) -> str:
        """A name for a frame; names are used again by the next epoch, so there are never many."""
        name = f"_ps_view{self._views}"
        self._views += 1
        frame.createOrReplaceTempView(name)
        return name


def metric(stream: str) -> str:
    """The name under which a stream is observed."""
    return f"penstock_{stream}"


def united(rows: list[str], names: tuple[str, ...]) -> str:
    """Several sources of the same columns as what may stand after FROM."""
    columns = ", ".join([*map(quoted, names), TIME])
    return f"({' UNION ALL '.join(f'SELECT {columns} FROM {each}' for each in rows)})"
