"""The verbs window, cumulate, windows, group_by and agg: what a user gives, checked."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from penstock.aggregates.aggregate import Aggregate, AggregateLike, resolve
from penstock.aggregates.sql_aggregate import taken_apart
from penstock.errors import BadName, BadWindow
from penstock.expressions.scalar import column, scalar
from penstock.operators.names import Named, check_names, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, Duration, GroupedVerbs, InputRelation, R
from penstock.operators.steps import Select
from penstock.operators.windows.node import WINDOW_END, WINDOW_START, Aggregation, Late, shown_windows
from penstock.operators.windows.shapes import WindowValue, cumulation_of, window_of
from penstock.operators.windows.top import TopVerbs

if TYPE_CHECKING:
    from penstock.operators.counts import CountWindowed

__all__ = ["GroupedWindowVerbs", "WindowVerbs", "Windowed"]


class WindowVerbs(Derivable[R, D]):
    """The verbs of a relation that put windows over its tuples."""

    @overload
    def window(
        self,
        size: Duration,
        slide: Duration | None = None,
        offset: Duration | None = None,
        *,
        late: Late = "count",
    ) -> "Windowed[R, D]": ...

    @overload
    def window(
        self, size: int, slide: int | None = None, *, rows: Literal[True]
    ) -> "CountWindowed[R, D]": ...

    def window(
        self,
        size: Duration | int,
        slide: Duration | int | None = None,
        offset: Duration | None = None,
        *,
        rows: bool = False,
        late: Late = "count",
    ) -> "Windowed[R, D] | CountWindowed[R, D]":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap.

        A tuple that comes when some of its windows are closed counts in the others; with late="drop" it
        counts in none. With rows=True size and slide are counts: windows of the last so many rows, in event
        order.
        """
        if rows:
            from penstock.operators.counts import counted_of  # noqa: PLC0415 -- it builds on windows

            return counted_of(self, (), size, slide, offset=offset)
        return Windowed(self, (), (window_of(size, slide, offset),), _late(late))

    def cumulate(
        self, size: Duration, step: Duration, offset: Duration | None = None, *, late: Late = "count"
    ) -> "Windowed[R, D]":
        """Aggregate over windows that start together and grow by the step until they have this size."""
        return Windowed(self, (), (cumulation_of(size, step, offset),), _late(late))

    def windows(self, /, *windows: WindowValue, late: Late = "count") -> "Windowed[R, D]":
        """Aggregate over all of these windows at once; tuples are read and combined once for all."""
        return Windowed(self, (), _several(windows), _late(late))


class GroupedWindowVerbs(GroupedVerbs[R, D]):
    """The verbs of a relation with keys that put windows over the tuples of each key."""

    @overload
    def window(
        self,
        size: Duration,
        slide: Duration | None = None,
        offset: Duration | None = None,
        *,
        late: Late = "count",
    ) -> "Windowed[R, D]": ...

    @overload
    def window(
        self, size: int, slide: int | None = None, *, rows: Literal[True]
    ) -> "CountWindowed[R, D]": ...

    def window(
        self,
        size: Duration | int,
        slide: Duration | int | None = None,
        offset: Duration | None = None,
        *,
        rows: bool = False,
        late: Late = "count",
    ) -> "Windowed[R, D] | CountWindowed[R, D]":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap.

        A tuple that comes when some of its windows are closed counts in the others; with late="drop" it
        counts in none. With rows=True size and slide are counts: windows of the last so many rows, in event
        order.
        """
        if rows:
            from penstock.operators.counts import counted_of  # noqa: PLC0415 -- it builds on windows

            return counted_of(self.relation, self.keys, size, slide, offset=offset)
        return Windowed(self.relation, self.keys, (window_of(size, slide, offset),), _late(late))

    def cumulate(
        self, size: Duration, step: Duration, offset: Duration | None = None, *, late: Late = "count"
    ) -> "Windowed[R, D]":
        """Aggregate over windows that start together and grow by the step until they have this size."""
        return Windowed(self.relation, self.keys, (cumulation_of(size, step, offset),), _late(late))

    def windows(self, /, *windows: WindowValue, late: Late = "count") -> "Windowed[R, D]":
        """Aggregate over all of these windows at once; tuples are read and combined once for all."""
        return Windowed(self.relation, self.keys, _several(windows), _late(late))


@dataclass(frozen=True)
class Windowed(TopVerbs[R, D]):
    """A relation with windows, waiting for its aggregates."""

    relation: Derivable[R, D]
    keys: Named
    windows: tuple[WindowValue, ...]
    late: Late = "count"

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
        check_names(_names(self.keys, aggregates))
        parts, finishes = taken_apart(aggregates)
        check_names(_names(self.keys, parts))
        found = tuple(resolve(name, each, self.relation.schema) for name, each in parts.items())
        results = self.relation.derive(Aggregation(self.keys, self.windows, found, self.late))
        return _finished(results, self.keys, list(aggregates), finishes) if finishes else results

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
            self.relation, self.keys, self.windows, function, schema, self.late, partitioning, batch
        )
        return self.relation.derive(found)

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}.{shown_windows(self.windows)}"


def _several(windows: tuple[WindowValue, ...]) -> tuple[WindowValue, ...]:
    wrong = [each for each in windows if not isinstance(each, WindowValue)]
    if wrong:
        raise BadWindow(f"windows({wrong[0]!r}); give windows as ps.window('1 minute', slide='10 seconds')")
    if not windows:
        raise BadWindow("windows() needs at least one window, such as ps.window('1 minute')")
    twice = [each for place, each in enumerate(windows) if each in windows[:place]]
    if twice:
        raise BadWindow(f"windows(): {twice[0]} is there twice; its results could not be told apart")
    return windows


def _late(late: Late) -> Late:
    if late not in {"count", "drop"}:
        raise BadWindow(f"late={late!r}; it is 'count' or 'drop'")
    return late


def _names(keys: Named, aggregates: Iterable[str]) -> list[str]:
    return [WINDOW_START, WINDOW_END, *(name for name, _ in keys), *aggregates]


def _finished(results: D, keys: Named, aggregates: list[str], finishes: Mapping[str, str]) -> D:
    """The results with the partials of aggregates in SQL made into their values."""
    schema = results.schema
    columns = tuple(
        (name, scalar(finishes[name], schema) if name in finishes else column(name, schema))
        for name in _names(keys, aggregates)
    )
    return cast("Derivable[InputRelation, D]", results).derive(Select(columns))
