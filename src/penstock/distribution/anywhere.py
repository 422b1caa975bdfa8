"""Rows that any channel may take: they stay where they are, go in turn, or by what they cost ([001] §5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.distribution.cost_columns import CostColumns
from penstock.distribution.dealing import InTurn
from penstock.distribution.distribution import (
    Distribution,
    Files,
    Forming,
    Held,
    Layout,
    Measured,
    Placed,
    Placer,
    Receipt,
    Sample,
    Settings,
    Steering,
    Told,
    salts,
)
from penstock.distribution.learnt_costs import LearntCosts
from penstock.distribution.on_grid import GridPlacing
from penstock.errors import BadRescale
from penstock.routing import Grid, Grouping, place_by_cost
from penstock.routing.spark_hash import spark_hash
from penstock.sketches import MeanCost, ValueCosts

__all__ = ["AnyLayout", "Anywhere", "Grouped"]

_MOST_TASKS = 1024  # that an observation tells of


@dataclass(frozen=True, kw_only=True)
class AnyLayout(Layout):
    """How rows find a channel, and the sketch of what they cost; it is empty while nothing is known.

    `by` are the columns that costs go by, if these had to be found.
    """

    grouping: Grouping
    costs: str = ""
    by: tuple[str, ...] = ()

    kind: ClassVar[str] = "anywhere"

    @property
    def stays(self) -> bool:  # type: ignore[override]
        """Whether rows stay in the tasks that have them."""
        return self.grouping == "in place"

    @property
    def files(self) -> tuple[str, ...]:
        """The sketch."""
        return (self.costs,) if self.costs else ()

    def words(self) -> dict[str, str]:
        """How rows find a channel."""
        return {"grouping": self.grouping}

    @classmethod
    def read(cls, value: dict[str, Any], forming: Forming | None) -> "AnyLayout":
        """The layout from its own plain values; those of earlier versions name no columns."""
        return cls(**{**value, "by": tuple(value.get("by", ()))}, forming=forming)


@dataclass(frozen=True)
class Anywhere(Distribution):
    """Rows of an operator that keeps nothing and has no key.

    `groupings` are the ways in which rows may find a channel, that of the first epoch first. `by` are the
    columns on which the cost of a row depends; where they are not known, they are looked for among
    `candidates`.
    """

    groupings: tuple[Grouping, ...]
    by: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()

    def home(self, layout: AnyLayout, files: Files, port: int, task: int) -> Placer:
        """By cost, or in turn."""
        del port
        if layout.grouping != "by cost":
            return InTurn(layout.channels, task)
        costs = files.find(layout.costs, ValueCosts).means
        return CostPlacer(self.view(layout), costs, layout.channels, task)

    def view(self, layout: AnyLayout) -> tuple[str, ...]:
        """The columns that costs go by, as far as they are known."""
        return self.by or layout.by

    def move(self, before: AnyLayout, after: AnyLayout, files: Files) -> GridPlacing:
        """There is no state."""
        del before, after, files
        return GridPlacing(Grid(1, 1), Grid(1, 1))

    def steering(self, settings: Settings, files: Files) -> "AnySteering":
        """By what rows cost."""
        return AnySteering(self, settings, files)


@dataclass(frozen=True)
class CostPlacer:
    """Rows that cost differently go where the channels should take equally long."""

    by: tuple[str, ...]
    costs: MeanCost
    channels: int
    task: int

    def place(self, rows: Any) -> Placed:
        """By the cost of the value of each row; among rows of equal cost their content decides."""
        hashes = spark_hash([rows[name] for name in self.by], rows.num_rows)
        return None, place_by_cost(hashes, salts(rows), self.costs, self.channels, self.task)


@dataclass(frozen=True)
class Grouped:
    """How the rows of a stage where any channel will do found theirs in an epoch, and what came of it.

    `allowed` are the groupings that may be chosen. `tasks` are the busy seconds of each task: of channels or,
    in place, of those that had the rows. `seconds` is how long the stage took, its map side included. The
    cost of a row has a mean in seconds, and its standard deviation is so many times the mean; both are 0
    while nothing is known, and `unknown` says why.
    """

    grouping: Grouping
    allowed: tuple[Grouping, ...]
    tasks: tuple[float, ...]
    seconds: float
    mean: float = 0.0
    deviation: float = 0.0
    unknown: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Grouped":
        """From its plain values."""
        lists = {each: tuple(value[each]) for each in ("allowed", "tasks")}
        return cls(**{**value, **lists})


@dataclass
class AnySteering(Steering):
    """Changes the way of rows as asked for, finds out what costs go by, and keeps their sketch up to date."""

    costs: LearntCosts = field(default_factory=LearntCosts)
    columns: CostColumns = field(init=False)
    _by_cost: bool = field(init=False, default=False)
    """Whether rows had to go by cost in any plan."""

    def __post_init__(self) -> None:
        self.columns = CostColumns(self.distribution.candidates)

    def first(self, channels: int, sample: Sample) -> AnyLayout:
        """The first of the ways that are allowed."""
        del sample
        return self._layout(channels, None)

    def follow(self, before: AnyLayout, asked: Mapping[str, Any], held: Held, sample: Sample) -> AnyLayout:
        """As asked for, as before, or as at first."""
        del held, sample
        wish = asked["grouping"].value if "grouping" in asked else before.grouping
        return self._layout(self.channels(before, asked), wish)

    def _layout(self, channels: int, wanted: Grouping | None) -> AnyLayout:
        allowed = self.distribution.groupings
        costs = self.costs.stored(self.files)
        chosen: Grouping = allowed[0] if wanted is None or wanted not in allowed else wanted
        self._by_cost |= chosen == "by cost"
        # Rows are dealt out in turn while nothing is known of what they cost.
        grouping: Grouping = "round robin" if chosen == "by cost" and not costs else chosen
        return AnyLayout(channels=channels, grouping=grouping, costs=costs, by=self.columns.found)

    def resume(self, layout: AnyLayout, remembered: Any) -> None:
        """Continue from the columns and the sketch of the last plan."""
        del remembered
        self._adopt(layout)
        self.costs.resume(layout.costs, self.files)

    def learn(self, layout: AnyLayout, receipts: Sequence[Receipt]) -> None:
        """What rows cost by their value, or which columns make that value."""
        self._adopt(layout)
        self.columns.update([rows for one in receipts if (rows := one.rows_learnt)])
        self.costs.update([each for one in receipts if (each := one.learnt)])

    def _adopt(self, layout: AnyLayout) -> None:
        """Go by the columns of a plan, which an earlier run may have made."""
        if layout.by:
            self.columns.found = layout.by

    def measures(self, epoch: int) -> bool:
        """Where rows may go by cost, as long as columns are looked for or costs are being learnt."""
        may = self.settings.adapts != "off" and "by cost" in self.distribution.groupings
        if not may and not self._by_cost:
            return False
        if not self.distribution.by and not self.columns.found:
            return self.columns.sampled(epoch)
        return self.costs.sampled(epoch)

    def choices(self) -> tuple[str, ...]:
        """The grouping; where there is only one, those who choose it choose the number of channels alone."""
        return ("grouping",)

    def check(self, change: Any) -> None:
        """One of the ways that are allowed."""
        if change.setting != "grouping":
            super().check(change)
            return
        allowed = self.distribution.groupings
        if change.value not in allowed:
            raise BadRescale(
                f"stage {change.stage} cannot have its rows {change.value}; give one of {', '.join(allowed)}"
            )

    def told(self, before: AnyLayout, after: AnyLayout) -> Iterator[Told]:
        """Columns that were found, and another way."""
        if before.by != after.by:
            yield Told("by", f"costs by {', '.join(after.by)}", self.columns.why)
        if before.grouping != after.grouping:
            yield Told("grouping", f"rows {after.grouping}", "costs are known")

    def observed(self, measured: Measured) -> dict[str, Any]:
        """How rows found their channel; busy is processor time, unless functions wait."""
        if measured.tasks is None:
            return super().observed(measured)
        known = self.costs.known
        waits = known is not None and known.clock == "wall"
        busy = [each.seconds if waits else each.cpu_seconds for each in measured.tasks]
        grouped = Grouped(
            grouping=measured.layout.grouping,
            allowed=self.distribution.groupings,
            tasks=_bounded(busy),
            seconds=measured.seconds,
            mean=0.0 if known is None else known.mean,
            deviation=0.0 if known is None else known.deviation,
            unknown="" if self.distribution.by or self.columns.found else self._unknown(),
        )
        return {**super().observed(measured), "grouped": grouped}

    def _unknown(self) -> str:
        """Why nobody knows what rows cost, where rows might go by it."""
        return self.columns.why if "by cost" in self.distribution.groupings else ""


def _bounded(busy: Sequence[float]) -> tuple[float, ...]:
    """Busy seconds of at most so many tasks; of more, several count as one."""
    return tuple(sum(busy[place::_MOST_TASKS]) for place in range(min(len(busy), _MOST_TASKS)))
