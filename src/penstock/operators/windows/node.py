"""Windowed aggregation: keys, windows, and the aggregates of each of their groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from penstock.aggregates.aggregate import ResolvedAggregate, stable_text
from penstock.errors import BadWindow, QueryError, WrongType
from penstock.expressions.durations import words
from penstock.expressions.schema import Column, Schema
from penstock.functions import SqlSetting
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, shown_keys
from penstock.operators.operator import NATIVE, Inputs, Operator, lowered
from penstock.operators.windows.shapes import WindowValue
from penstock.routing.resources import CCC, LLL, Resources

if TYPE_CHECKING:
    from penstock.operators.windows.kernel import WindowKernel

__all__ = [
    "CHANGE",
    "WINDOW_END",
    "WINDOW_START",
    "Aggregation",
    "Late",
    "check_decimals",
    "meaning_of",
    "result_column",
    "shown_rules",
    "shown_windows",
]

Late = Literal["count", "drop"]
"""What happens to a tuple of which some windows are closed: it counts in the others, or in none."""

CHANGE: Final = "change"
WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
_PARTIALS_OF_ROWS: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class Aggregation(Operator):
    """Aggregates over the tuples of each key in each window of each shape.

    Closed windows are corrected for `lateness`, open ones are delivered `early`, in microseconds of event
    time. A frequent key has a tuple in every pane, so it keeps as many partials as any other frequent key.
    """

    stateful: ClassVar[bool] = True

    keys: Named
    windows: tuple[WindowValue, ...]
    aggregates: tuple[ResolvedAggregate, ...]
    late: Late = "count"
    lateness: int = 0
    early: int | None = None

    def __str__(self) -> str:
        keys = f"{shown_keys(self.keys).lstrip('.')}." if self.keys else ""
        aggregates = ", ".join(f"{each.name}={each}" for each in self.aggregates)
        rules = shown_rules(self.late, self.lateness, self.early)
        return f"{keys}{shown_windows(self.windows, rules)}.agg({aggregates})"

    def meaning(self) -> list[object]:
        """Keys, window and aggregates."""
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        windows = [each.meaning() for each in self.windows]
        rules: list[object] = [self.late, self.lateness, self.early]
        return ["aggregation", keys, windows, rules, [meaning_of(each) for each in self.aggregates]]

    @property
    def revising(self) -> bool:
        """Whether a window may be delivered more than once."""
        return bool(self.lateness) or self.early is not None

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the results: the bounds of the window, the keys, the aggregates.

        Where results may be corrected, the kind of change is the first.
        """
        time_type = inputs[0].time_type
        changes = (Column(CHANGE, "string", nullable=False),) if self.revising else ()
        bounds = tuple(Column(name, time_type, nullable=False) for name in (WINDOW_START, WINDOW_END))
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema(changes + bounds + keys + tuple(result_column(each) for each in self.aggregates))

    def event_time(self, inputs: Inputs) -> str:
        """The start of the window."""
        return WINDOW_START

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window, after the kind of change."""
        return (CHANGE, WINDOW_START, WINDOW_END) if self.revising else (WINDOW_START, WINDOW_END)

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by. The bounds of windows are no keys: a group has tuples of many of them."""
        return tuple((name, each.sql) for name, each in self.keys)

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What keys and aggregates read."""
        given = [each for _, each in self.keys]
        given += [each for aggregate in self.aggregates for each in aggregate.arguments]
        return lowered(name for each in given for name in each.columns)

    def why_last(self) -> str | None:
        """What was corrected would have to be taken back from results behind it, too."""
        if not self.revising:
            return None
        return (
            f"{self}: its results are corrected later, and no operator with state can follow, since it would "
            "have to take back what it made of them; end the query here, or leave out lateness and early"
        )

    def refused(self, why: str) -> QueryError:
        """Windows that cannot be where they are."""
        return BadWindow(why)

    def why_single(self) -> str | None:
        """Without a key there is one group; several channels are worth it where user code forms partials."""
        if self.keys or self._kernel().by_window is not None:
            return None
        return "without a key there is one group, and its partials are few"

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The keys: a group lies whole in one channel."""
        return frozenset(self.key_names)

    def shares_channels(self) -> bool:
        """Whether partials can be formed in a channel; what only Spark SQL can combine, a sketch, cannot."""
        return "rows" in self._kernel().forms

    def taken_in_place(self) -> tuple[str, ...]:
        """What keys and aggregates read of a tuple."""
        read = [each.sql for _, each in self.keys]
        return (*read, *(each.sql for aggregate in self.aggregates for each in aggregate.arguments))

    def check_setting(self, inputs: Inputs, setting: SqlSetting) -> None:
        """Without ANSI mode a sum of decimals that overflows is null in Spark, and a merge would skip it."""
        check_decimals(self.aggregates, setting)

    def resources(self, form: Form = "rows") -> Resources:
        """One partial for each pane, however frequent the key, unless an aggregate keeps values of tuples.

        What channels receive are as many rows as tuples, or the partials that were formed elsewhere.
        """
        if any(each.definition.keeps_values for each in self.aggregates):
            return LLL
        return _PARTIALS_OF_ROWS if form == "rows" else CCC

    def words(self) -> list[str]:
        """Panes, the two sub-queries, and why they are formed where they are."""
        from penstock.operators.windows.words import window_words  # noqa: PLC0415 -- words need the kernel

        return window_words(self._kernel(), self.windows)

    @property
    def route(self) -> str:
        """By key, or by time."""
        return "hash" if self.keys else "window"

    def route_words(self) -> str:
        """The router and the reason for it."""
        if self.keys:
            return Operator.route_words(self)
        return (
            "rows in runs of a mean pane to channels that form partials; partials by time, to the channel of "
            f"their windows and the next, {NATIVE}"
        )

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "WindowKernel":
        """Partials of panes, closed into windows."""
        return self._kernel(time_type, ports[0])

    def _kernel(self, time_type: str = "timestamp", describe: Describe | None = None) -> "WindowKernel":
        """Words and the place of partials depend neither on the type of time nor on what Spark says."""
        from penstock.operators.windows.kernel import compile_windows  # noqa: PLC0415 -- it needs this class

        return compile_windows(self, time_type, describe)


def shown_windows(windows: Sequence[WindowValue], rules: str = "") -> str:
    """The windows as a user would write them."""
    name = windows[0].verb if len(windows) == 1 else "windows"
    return f"{name}({', '.join(map(str, windows))}{rules})"


def shown_rules(late: Late, lateness: int, early: int | None) -> str:
    """What is not as usual, as a user would write it."""
    found = ["" if late == "count" else f", late={late}"]
    found += [f", lateness={words(lateness)}"] if lateness else []
    found += [] if early is None else [f", early={words(early)}"]
    return "".join(found)


def check_decimals(aggregates: Sequence[ResolvedAggregate], setting: SqlSetting) -> None:
    """Refuse sums of decimals whose parts could be lost."""
    for each in aggregates:
        decimal = each.type is not None and each.type.startswith("decimal(")
        if decimal and not setting.ansi and each.definition.name in {"sum", "avg"}:
            raise WrongType(
                f"{each.definition.name} of decimals as {each.name!r} in a session without ANSI mode: "
                "parts that overflow would be lost; set spark.sql.ansi.enabled to true, or cast to double"
            )


def result_column(aggregate: ResolvedAggregate) -> Column:
    """The column of an aggregate's results."""
    return Column(aggregate.name, aggregate.type, nullable=not aggregate.definition.never_null)


def meaning_of(aggregate: ResolvedAggregate) -> list[object]:
    """What gives an aggregate its meaning, as plain values for a fingerprint."""
    definition = aggregate.definition
    return [
        aggregate.name,
        definition.name,
        [each.sql for each in aggregate.arguments],
        [[name, stable_text(value)] for name, value in definition.options],
        definition.meaning(),
    ]
