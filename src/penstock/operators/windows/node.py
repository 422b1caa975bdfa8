"""Windowed aggregation: keys, windows, and the aggregates of each of their groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.errors import BadWindow, QueryError
from penstock.expressions.durations import words
from penstock.expressions.schema import Schema
from penstock.operators.aggregated import CHANGE, WINDOW_BOUNDS, WINDOW_START, AggregateOperator
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.operators.operator import NATIVE, Inputs, Operator
from penstock.operators.windows.shapes import WindowValue
from penstock.routing.resources import CCC, LLL, Resources

if TYPE_CHECKING:
    from penstock.operators.windows.kernel import WindowKernel

__all__ = ["Aggregation", "Late", "shown_rules", "shown_windows"]

Late = Literal["count", "drop"]
"""What happens to a tuple of which some windows are closed: it counts in the others, or in none."""

_PARTIALS_OF_ROWS: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class Aggregation(AggregateOperator):
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
        rules = shown_rules(self.late, self.lateness, self.early)
        return self.shown(shown_windows(self.windows, rules))

    def meaning(self) -> list[object]:
        """Keys, window and aggregates."""
        windows = [each.meaning() for each in self.windows]
        rules: list[object] = [self.late, self.lateness, self.early]
        return ["aggregation", self.meaning_of_keys(), windows, rules, self.meaning_of_aggregates()]

    @property
    def revising(self) -> bool:
        """Whether a window may be delivered more than once."""
        return bool(self.lateness) or self.early is not None

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the results: the bounds of the window, the keys, the aggregates.

        Where results may be corrected, the kind of change is the first.
        """
        changes = {CHANGE: "string"} if self.revising else {}
        return self.results(changes | dict.fromkeys(WINDOW_BOUNDS, inputs[0].time_type))

    def event_time(self, inputs: Inputs) -> str:
        """The start of the window."""
        return WINDOW_START

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window, after the kind of change."""
        return (CHANGE, *WINDOW_BOUNDS) if self.revising else WINDOW_BOUNDS

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

    def resources(self, form: Form = "rows") -> Resources:
        """One partial for each pane, however frequent the key, unless an aggregate keeps values of tuples.

        What channels receive are as many rows as tuples, or the partials that were formed elsewhere.
        """
        if self.keeps_values:
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
        from penstock.operators.windows.compiling import compile_windows  # noqa: PLC0415 -- it needs this class

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
