"""The verbs window, cumulate, windows, group_by and agg: what a user gives, checked."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate
from penstock.errors import BadName, BadWindow
from penstock.expressions.durations import microseconds
from penstock.operators.aggregated import CHANGE, WINDOW_BOUNDS, aggregated
from penstock.operators.names import Named, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, Duration, Groupable, R
from penstock.operators.windows.node import Aggregation, Late, shown_rules, shown_windows
from penstock.operators.windows.shapes import WindowValue, coinciding, cumulate, window_of
from penstock.operators.windows.top import TopVerbs

if TYPE_CHECKING:
    from penstock.operators.counts import CountWindowed

__all__ = ["Rules", "WindowVerbs", "Windowed"]


@dataclass(frozen=True)
class Rules:
    """How windows deal with late tuples, and how often they are delivered."""

    late: Late = "count"
    lateness: int = 0
    early: int | None = None

    @classmethod
    def of(cls, late: Late, lateness: Duration | None, early: Duration | None) -> "Rules":
        """From what a user gives."""
        if late not in {"count", "drop"}:
            raise BadWindow(f"late={late!r}; it is 'count' or 'drop'")
        allowed = 0 if lateness is None else microseconds(lateness)
        often = None if early is None else microseconds(early)
        if allowed < 0 or (often is not None and often <= 0):
            raise BadWindow(
                f"lateness={lateness!r}, early={early!r}; lateness cannot be below zero, and early has to be "
                "above zero"
            )
        if late == "drop" and allowed:
            raise BadWindow(
                "late='drop' with a lateness: windows that are closed would be corrected for tuples that "
                "count in none of their windows; leave one of the two out"
            )
        return cls(late, allowed, often)


class WindowVerbs(Groupable[R, D]):
    """The verbs that put windows over tuples, or over those of each key."""

    @overload
    def window(
        self,
        size: Duration,
        slide: Duration | None = None,
        offset: Duration | None = None,
        *,
        late: Late = "count",
        lateness: Duration | None = None,
        early: Duration | None = None,
    ) -> "Windowed[R, D]": ...

    @overload
    def window(
        self, size: int, slide: int | None = None, *, rows: Literal[True]
    ) -> "CountWindowed[R, D]": ...

    def window(  # noqa: PLR0913 -- the options of a window
        self,
        size: Duration | int,
        slide: Duration | int | None = None,
        offset: Duration | None = None,
        *,
        rows: bool = False,
        late: Late = "count",
        lateness: Duration | None = None,
        early: Duration | None = None,
    ) -> "Windowed[R, D] | CountWindowed[R, D]":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap.

        If the slide is longer than the size, tuples between windows are in none.

        - ``late``: a tuple that comes when some of its windows are closed counts in the others ("count"), or
          in none ("drop").
        - ``lateness``: closed windows are corrected for so long, in event time.
        - ``early``: windows that are open are delivered each time the frontier passes a multiple of it, and
          whenever a window closes, if they changed.

        With either of the last two, results begin with a column ``change``: insert, retract or update.

        With ``rows=True`` size and slide are counts: windows of the last so many rows, in event order.
        """
        if rows:
            from penstock.operators.counts import counted_of  # noqa: PLC0415 -- it builds on windows

            relation, keys = self.grouping
            own = None if late == "count" else late
            return counted_of(
                relation, keys, size, slide, offset=offset, late=own, lateness=lateness, early=early
            )
        rules = Rules.of(late, lateness, early)
        return Windowed(*self.grouping, (window_of(size, slide, offset),), rules)

    def cumulate(  # noqa: PLR0913 -- the options of a window
        self,
        size: Duration,
        step: Duration,
        offset: Duration | None = None,
        *,
        late: Late = "count",
        lateness: Duration | None = None,
        early: Duration | None = None,
    ) -> "Windowed[R, D]":
        """Aggregate over windows that start together and grow by the step until they have this size.

        The options are those of ``window``.
        """
        rules = Rules.of(late, lateness, early)
        return Windowed(*self.grouping, (cumulate(size, step, offset),), rules)

    def windows(
        self,
        /,
        *windows: WindowValue,
        late: Late = "count",
        lateness: Duration | None = None,
        early: Duration | None = None,
    ) -> "Windowed[R, D]":
        """Aggregate over all of these windows at once; tuples are read and combined once for all.

        Windows are values: ``ps.window("1 minute")``, ``ps.cumulate("1 day", "1 hour")``. The options are
        those of ``window``.
        """
        return Windowed(*self.grouping, _several(windows), Rules.of(late, lateness, early))


@dataclass(frozen=True)
class Windowed(TopVerbs[R, D]):
    """A relation with windows, waiting for its aggregates."""

    relation: Derivable[R, D]
    keys: Named
    windows: tuple[WindowValue, ...]
    rules: Rules = Rules()

    def group_by(self, /, *names: str, **expressions: str) -> "Windowed[R, D]":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        return replace(self, keys=group_keys(names, expressions, self.relation.schema))

    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        Without an aggregate the results are the groups themselves: windows and keys that hold a tuple. The
        event time of a result is the start of its window.
        """

        def operator(found: tuple[ResolvedAggregate, ...]) -> Aggregation:
            return Aggregation(self.keys, self.windows, found, *astuple(self.rules))

        revising = self.rules.lateness or self.rules.early is not None
        pinned = (CHANGE, *WINDOW_BOUNDS) if revising else WINDOW_BOUNDS
        return aggregated(self.relation, self.keys, aggregates, operator, pinned)

    def apply(
        self,
        function: Callable[..., Any],
        schema: Any,
        *,
        partitioning: str = "auto",
        batch: int | None = None,
    ) -> D:
        """Call a function with the rows of each key in each window.

        It takes a pyarrow.Table of all columns in sight, in the order of event time, and returns a table or a
        dict of columns with those of ``schema``, in any number of rows. A function of two arguments gets a
        ``ps.WindowInfo`` in front: the bounds of the window and the values of the keys. The results:
        window_start, window_end, the keys, then what the function makes.

        Without a key, windows are shared out over channels: single ones, or ``"batches"`` of neighbours
        where they overlap. ``partitioning`` forces ``"keys"``, ``"windows"`` or ``"batches"``. ``batch`` is
        the number of windows in a batch; without it, it follows from what windows and rows cost.

        >>> from penstock.query import stream
        >>> def spread(rows):
        ...     speeds = rows["speed"].to_numpy()
        ...     return {"spread": [speeds.max() - speeds.min()]}
        >>> reports = stream("reports", "time timestamp, speed double", time="time")
        >>> reports.window("10 minutes", slide="1 minute").apply(spread, "spread double")
        reports.window(10 minutes slide 1 minute).apply(spread)
        """
        from penstock.operators.whole_windows import applied  # noqa: PLC0415 -- it needs windows

        found = applied(
            self.relation, self.keys, self.windows, function, schema, self.rules, partitioning, batch
        )
        return self.relation.derive(found)

    def __repr__(self) -> str:
        windows = shown_windows(self.windows, shown_rules(*astuple(self.rules)))
        return f"{self.relation!r}{shown_keys(self.keys)}.{windows}"


def _several(windows: tuple[WindowValue, ...]) -> tuple[WindowValue, ...]:
    wrong = [each for each in windows if not isinstance(each, WindowValue)]
    if wrong:
        raise BadWindow(
            f"windows({wrong[0]!r}); give windows as ps.window('1 minute', slide='10 seconds') or "
            "ps.cumulate('1 day', '1 hour')"
        )
    if not windows:
        raise BadWindow("windows() needs at least one window, such as ps.window('1 minute')")
    for place, each in enumerate(windows):
        for other in windows[:place]:
            if coinciding(each, other):
                raise BadWindow(
                    f"windows(): some windows of {each} are also windows of {other}, and their results could "
                    "not be told apart; leave one of the two out"
                )
    return windows
