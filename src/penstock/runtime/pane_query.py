"""The pane-level query of an epoch, and with it everything that happens before the shuffle.

Two forms give the channels the same partials: combined on the map side by Spark's generated code, or
raw rows that the channel combines itself. Both end in an exchange by the route, and what is observed
on the way there (the latest event time, the lowest and the highest pane) decides on the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import WindowPlan
from penstock.query import Query
from penstock.runtime.keyed import KEY
from penstock.runtime.prefix import REJECT, REJECTED
from penstock.runtime.records import EpochPlan
from penstock.runtime.segments import PANE
from penstock.runtime.stages import Shuffled, run_map_side

__all__ = ["EMPTY", "MapSide", "PaneQuery"]

_LATEST = "_ps_latest"
_METRICS = "penstock"
_VIEW = "_ps_rows"
# Evaluated for every row that is about to be shuffled, so no more than what decides on the epoch: the latest
# event time, and between which panes the rows lie. Tuples are counted by who takes or sets them aside.
_OBSERVED = f"""struct(
  max(CASE WHEN `{PANE}` <> {REJECTED}L THEN `{_LATEST}` END), min(`{PANE}`), max(`{PANE}`)
)"""


@dataclass(frozen=True)
class MapSide:
    """What the map side of an epoch gave: routed rows, the latest time of each stream, what to look for."""

    shuffled: Shuffled | None = None
    seen: Mapping[str, int] = field(default_factory=dict)
    taken: bool = False
    may_be_late: bool = False
    rejected: bool = False


EMPTY = MapSide()


@dataclass(frozen=True)
class PaneQuery:
    """Places tuples in panes, forms partials and routes them."""

    query: Query
    plan: WindowPlan

    def run(self, frame: DataFrame, plan: EpochPlan, first_open: int | None) -> MapSide:
        """Run the map side of an epoch."""
        combining = plan.combining == "map"
        form, columns = self._combined if combining else self._raw
        closed = self._closed_below(first_open)
        observed = _sql(frame, form).observe(_METRICS, F.expr(_OBSERVED).alias("seen"))
        taking = _sql(observed, f"SELECT {columns} FROM {_VIEW} WHERE `{PANE}` >= {closed}L")
        routed = taking.repartitionById(plan.channels, F.expr(self._route(plan.channels)))
        shuffled = run_map_side(routed, _METRICS, combining=combining)
        if shuffled is None:
            return EMPTY
        latest, lowest, highest = shuffled.observed
        if lowest is None or highest is None:
            return MapSide(shuffled)
        return MapSide(
            shuffled=shuffled,
            seen={} if latest is None else self._seen(frame, latest),
            taken=highest >= closed,
            # Rejects hide whether the pane after them is late; the late output finds out.
            may_be_late=lowest < closed and latest is not None and first_open is not None,
            rejected=lowest == REJECTED,
        )

    def late(self, frame: DataFrame, first_open: int | None) -> DataFrame:
        """The late tuples of an epoch."""
        return frame.where(f"`{PANE}` > {REJECTED}L AND `{PANE}` < {self._closed_below(first_open)}L")

    def rejected(self, frame: DataFrame) -> DataFrame:
        """The tuples of an epoch that do not fit the schema."""
        return frame.where(f"{REJECT} IS NOT NULL")

    @property
    def _keys(self) -> list[str]:
        return [KEY.format(place) for place in range(len(self.plan.keys))]

    @cached_property
    def _combined(self) -> tuple[str, str]:
        """Partials of each partition, by Spark SQL."""
        aggregates = [
            f"{sql} AS `{name}`"
            for partial in self.plan.partials
            for name, sql in zip(partial.wire, partial.combine, strict=True)
        ]
        by = ", ".join([*self._keys, PANE])
        selected = ", ".join([by, *aggregates, f"max({self.plan.time}) AS `{_LATEST}`"])
        wire = [f"`{name}`" for partial in self.plan.partials for name in partial.wire]
        return f"SELECT {selected} FROM {_VIEW} GROUP BY {by}", ", ".join([by, *wire])

    @cached_property
    def _raw(self) -> tuple[str, str]:
        """The rows themselves, reduced to what partials are formed from."""
        placed = [*self._keys, PANE]
        inputs = [f"{each.sql} AS `{each.name}`" for each in self.plan.inputs]
        selected = ", ".join([*placed, *inputs, f"{self.plan.time} AS `{_LATEST}`"])
        names = [f"`{each.name}`" for each in self.plan.inputs]
        return f"SELECT {selected} FROM {_VIEW}", ", ".join([*placed, *names])

    def _closed_below(self, first_open: int | None) -> int:
        """The pane below which tuples are late."""
        return REJECTED + 1 if first_open is None else self.plan.shape.closed_below(first_open)

    def _route(self, channels: int) -> str:
        keys = ", ".join(self._keys)
        return f"cast(pmod(xxhash64({keys}), {channels}L) AS int)" if keys else "0"

    def _seen(self, frame: DataFrame, latest: int) -> dict[str, int]:
        """The latest event time of each stream in the epoch."""
        key = self.query.relation.stream.key
        if key is None:
            return {"": latest}
        streams = frame.where(f"{REJECT} IS NULL").groupBy(F.col(key).cast("string").alias("stream"))
        found = streams.agg(F.expr(f"max({self.plan.time})").alias("latest")).collect()
        return {row["stream"] or "": row["latest"] for row in found}


def _sql(frame: DataFrame, text: str) -> DataFrame:
    """A query over a frame; a text is one call to the JVM, a list of columns one for every part."""
    frame.createOrReplaceTempView(_VIEW)
    return frame.sparkSession.sql(text)
