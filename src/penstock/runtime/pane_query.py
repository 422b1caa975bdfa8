"""The pane-level query of an epoch, and with it everything that happens before the shuffle.

Two forms give the channels the same partials: combined on the map side by Spark's generated code, or
raw rows that the channel combines itself. Both end in an exchange by the route, and what is observed
on the way there decides on the epoch.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.compile import TIME, Feed, WindowPlan
from penstock.query import Stream
from penstock.runtime.former import Former
from penstock.runtime.intake import NEVER, Intake, Seen
from penstock.runtime.keyed import KEY
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.records import StagePlan
from penstock.runtime.segments import PANE
from penstock.runtime.spark.frames import REJECT, sql_over, steps_sql
from penstock.runtime.spark.plans import Shuffled, run_map_side
from penstock.runtime.spark.routes import sub_key_column

__all__ = ["PaneQuery"]

_LATEST = "_ps_latest"
_METRICS = "penstock"
_VIEW = "_ps_rows"
_DEALT = "_ps_dealt"
# A pane that no tuple has; the smallest bigint has no literal in SQL.
REJECTED = -(2**63) + 1
# Evaluated for every row that is about to be shuffled, so no more than what decides on the epoch: the latest
# event time, and between which panes the rows lie. Tuples are counted by who takes or sets them aside.
_OBSERVED = f"""struct(
  max(CASE WHEN `{PANE}` <> {REJECTED}L THEN `{_LATEST}` END), min(`{PANE}`), max(`{PANE}`)
)"""


@dataclass(frozen=True)
class PaneQuery:
    """Places tuples in panes, forms partials and routes them."""

    plan: WindowPlan

    def run(self, intake: Intake, rows: str, plan: StagePlan) -> MapSide:
        """The map side over tuples that are valid and in time."""
        formed = intake.session.sql(self._form(self._placed(rows, self.plan.pane), plan))
        return self._shuffled(intake, formed, plan, closed=None)

    def run_alone(self, intake: Intake, feed: Feed, plan: StagePlan, closed: int | None) -> MapSide:
        """The map side of a stream that feeds nothing else, without a condition on the way.

        Nothing is looked at before the combine: rejects and late tuples are combined as well, each in
        panes of their own, and left out after it. That saves an observation of every single tuple.
        """
        stream = feed.origin
        assert isinstance(stream, Stream)
        frame = intake.arrivals.get(stream.name)
        if frame is None:
            return EMPTY
        pane = f"CASE WHEN {REJECT} IS NOT NULL THEN {REJECTED}L ELSE {self.plan.pane} END"
        rows = self._placed(steps_sql(feed.outside, _VIEW, TIME, REJECT), pane)
        lowest = REJECTED + 1 if closed is None else closed
        side = self._shuffled(intake, sql_over(frame, self._form(rows, plan)), plan, closed=lowest)
        if side.shuffled is None:
            return side
        latest, first, last = side.shuffled.observed[_METRICS]
        if first is None or latest is None:
            earliest = None
        elif first > REJECTED:
            earliest = self.plan.shape.pane_start(first)
        else:
            # Rejects hide whether the pane after them is late; the late output finds out.
            earliest = NEVER
        intake.seen[stream.name] = Seen(latest, earliest, first == REJECTED)
        return replace(side, taken=last is not None and last >= lowest)

    def _shuffled(self, intake: Intake, formed: DataFrame, plan: StagePlan, *, closed: int | None) -> MapSide:
        observed = formed.observe(_METRICS, F.expr(_OBSERVED).alias("seen"))
        columns = self._columns(plan)
        late = "" if closed is None else f" WHERE `{PANE}` >= {closed}L"
        taking = sql_over(observed, f"SELECT {columns} FROM {_VIEW}{late}")
        routed = self._dealt(taking, plan) if plan.sub_keys else self._sent_home(intake, taking, plan)
        metrics = [_METRICS, *intake.watched()]
        shuffled = run_map_side(routed, metrics, combining=plan.combining == "map")
        intake.settle(shuffled.observed if shuffled else {})
        if shuffled is None:
            return EMPTY
        _, _, last = shuffled.observed.get(_METRICS, (None, None, None))
        newest = None if last == REJECTED else last
        side = MapSide(shuffled, taken=newest is not None, newest=newest)
        return (
            replace(side, shuffled=self._formed(intake, shuffled, plan), dealt=shuffled)
            if plan.sub_keys
            else side
        )

    def _sent_home(self, intake: Intake, rows: DataFrame, plan: StagePlan) -> DataFrame:
        """Each row to the channel that keeps its key."""
        return rows.repartitionById(plan.channels, self._route(intake, plan))

    def _dealt(self, rows: DataFrame, plan: StagePlan) -> DataFrame:
        """Each row to a former: those of hot keys to their sub-keys in turn.

        Turns go by a hash of the row's place, since the place itself may follow a pattern of the keys.
        """
        assert plan.sub_keys is not None
        turn = F.xxhash64(F.monotonically_increasing_id())
        route = sub_key_column(F.xxhash64(*self._keys), turn, plan.sub_keys.router(plan.channels))
        return rows.withColumn(_DEALT, route).repartitionById(plan.channels, F.col(_DEALT))

    def _formed(self, intake: Intake, dealt: Shuffled, plan: StagePlan) -> Shuffled | None:
        """Run the formers, and send their partials to the channels that keep the keys."""
        former = Former(self.plan)
        partials = dealt.rows.drop(_DEALT).mapInArrow(former, from_arrow_schema(former.schema))
        shuffled = run_map_side(self._sent_home(intake, partials, plan), [], combining=False)
        return shuffled and replace(shuffled, observed=dealt.observed)

    @property
    def _keys(self) -> list[str]:
        return [KEY.format(place) for place in range(len(self.plan.keys))]

    def _placed(self, source: str, pane: str) -> str:
        keys = [f"{key.sql} AS `{name}`" for key, name in zip(self.plan.keys, self._keys, strict=True)]
        return f"(SELECT {', '.join(['*', *keys, f'{pane} AS `{PANE}`'])} FROM {source})"

    def _form(self, rows: str, plan: StagePlan) -> str:
        return f"{self._combined[0] if plan.combining == 'map' else self._raw[0]}".format(rows=rows)

    def _columns(self, plan: StagePlan) -> str:
        return self._combined[1] if plan.combining == "map" else self._raw[1]

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
        return f"SELECT {_plain(selected)} FROM {{rows}} GROUP BY {by}", ", ".join([by, *wire])

    @cached_property
    def _raw(self) -> tuple[str, str]:
        """The rows themselves, reduced to what partials are formed from."""
        placed = [*self._keys, PANE]
        inputs = [f"{each.sql} AS `{each.name}`" for each in self.plan.inputs]
        selected = ", ".join([*placed, *inputs, f"{self.plan.time} AS `{_LATEST}`"])
        names = [f"`{each.name}`" for each in self.plan.inputs]
        return f"SELECT {_plain(selected)} FROM {{rows}}", ", ".join([*placed, *names])

    def _route(self, intake: Intake, plan: StagePlan) -> Column:
        if not plan.router:
            return F.lit(0)
        return intake.route(plan.router, f"xxhash64({', '.join(self._keys)})")


def _plain(text: str) -> str:
    """A text that str.format leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")
