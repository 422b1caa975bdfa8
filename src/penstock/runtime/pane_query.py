"""The pane-level query of an epoch, and with it everything that happens before the shuffle.

Two forms give the channels the same partials: combined on the map side by Spark's generated code, or
raw rows that the channel combines itself. Both end in an exchange by the route, and what is observed
on the way there (rows, late rows, rejects, the latest event time) decides the frontier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import ROWS, WindowPlan
from penstock.query import Query
from penstock.runtime.keyed import KEY
from penstock.runtime.prefix import REJECT, REJECTED
from penstock.runtime.records import Counts, EpochPlan
from penstock.runtime.segments import PANE
from penstock.runtime.stages import Shuffled, run_map_side

__all__ = ["EMPTY", "MapSide", "PaneQuery"]

_LATEST = "_ps_latest"
_METRICS = "penstock"
_VIEW = "_ps_rows"


@dataclass(frozen=True)
class MapSide:
    """What the map side of an epoch gave: routed rows, counts, the latest time of each stream."""

    shuffled: Shuffled | None = None
    counts: Counts = field(default_factory=Counts)
    seen: Mapping[str, int] = field(default_factory=dict)
    partials: int = 0
    shrinkage: float | None = None


EMPTY = MapSide()


@dataclass(frozen=True)
class PaneQuery:
    """Places tuples in panes, forms partials and routes them."""

    query: Query
    plan: WindowPlan

    def run(self, frame: DataFrame, plan: EpochPlan, first_open: int | None) -> MapSide:
        """Run the map side of an epoch."""
        combining = plan.combining == "map"
        rows, form, columns = self._combined if combining else self._raw
        closed = self._closed_below(first_open)
        metrics = F.expr(f"struct({', '.join(_metrics(rows, closed))})")
        observed = _sql(frame, form).observe(_METRICS, metrics.alias("seen"))
        taking = _sql(observed, f"SELECT {columns} FROM {_VIEW} WHERE `{PANE}` >= {closed}L")
        routed = taking.repartitionById(plan.channels, F.expr(self._route(plan.channels)))
        shuffled = run_map_side(routed, _METRICS, combining=combining)
        if shuffled is None:
            return EMPTY
        taken, late, rejected, latest, partials = (value or 0 for value in shuffled.observed)
        seen = self._seen(frame, latest) if taken or late else {}
        return MapSide(
            shuffled=shuffled,
            counts=Counts(rows=taken + late + rejected, late=late, rejected=rejected),
            seen=seen,
            partials=partials,
            shrinkage=taken / partials if partials and combining else None,
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
    def _combined(self) -> tuple[str, str, str]:
        """Partials of each partition, by Spark SQL."""
        aggregates = [
            f"{sql} AS `{name}`"
            for partial in self.plan.partials
            for name, sql in zip(partial.wire, partial.combine, strict=True)
        ]
        by = ", ".join([*self._keys, PANE])
        selected = ", ".join([by, *aggregates, f"max({self.plan.time}) AS `{_LATEST}`"])
        wire = [f"`{name}`" for partial in self.plan.partials for name in partial.wire]
        return f"`{ROWS}`", f"SELECT {selected} FROM {_VIEW} GROUP BY {by}", ", ".join([by, *wire])

    @cached_property
    def _raw(self) -> tuple[str, str, str]:
        """The rows themselves, reduced to what partials are formed from."""
        placed = [*self._keys, PANE]
        inputs = [f"{each.sql} AS `{each.name}`" for each in self.plan.inputs]
        selected = ", ".join([*placed, *inputs, f"{self.plan.time} AS `{_LATEST}`"])
        names = [f"`{each.name}`" for each in self.plan.inputs]
        return "1L", f"SELECT {selected} FROM {_VIEW}", ", ".join([*placed, *names])

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


def _metrics(rows: str, closed: int) -> list[str]:
    """Tuples taken, late and rejected, the latest event time, and the rows that go to channels."""
    rejected, late = f"`{PANE}` = {REJECTED}L", f"`{PANE}` < {closed}L"
    return [
        f"sum(CASE WHEN NOT {late} THEN {rows} END) AS taken",
        f"sum(CASE WHEN {late} AND NOT {rejected} THEN {rows} END) AS late",
        f"sum(CASE WHEN {rejected} THEN {rows} END) AS rejected",
        f"max(CASE WHEN NOT {rejected} THEN `{_LATEST}` END) AS latest",
        f"count(CASE WHEN NOT {late} THEN 1 END) AS partials",
    ]
