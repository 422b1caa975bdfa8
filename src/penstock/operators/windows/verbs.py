"""The verbs window, group_by and agg: what a user gives, checked."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, cast

from penstock.aggregates.aggregate import Aggregate, AggregateLike, resolve
from penstock.aggregates.sql_aggregate import taken_apart
from penstock.errors import BadAggregate, BadName
from penstock.expressions.durations import microseconds, signed_microseconds
from penstock.expressions.scalar import column, scalar
from penstock.operators.names import Named, check_names, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, Duration, GroupedVerbs, InputRelation, R
from penstock.operators.steps import Select
from penstock.operators.windows.node import WINDOW_END, WINDOW_START, Aggregation, Window

__all__ = ["GroupedWindowVerbs", "WindowVerbs", "Windowed", "window_of"]


class WindowVerbs(Derivable[R, D]):
    """The verb of a relation that puts windows over its tuples."""

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed[R, D]":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self, (), window_of(size, slide, offset))


class GroupedWindowVerbs(GroupedVerbs[R, D]):
    """The verb of a relation with keys that puts windows over the tuples of each key."""

    def window(
        self, size: Duration, slide: Duration | None = None, offset: Duration | None = None
    ) -> "Windowed[R, D]":
        """Aggregate over windows of this size, one every slide; without a slide they do not overlap."""
        return Windowed(self.relation, self.keys, window_of(size, slide, offset))


@dataclass(frozen=True)
class Windowed(Generic[R, D]):
    """A relation with a window, waiting for its aggregates."""

    relation: Derivable[R, D]
    keys: Named
    window: Window

    def group_by(self, /, *names: str, **expressions: str) -> "Windowed[R, D]":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        return Windowed(self.relation, group_keys(names, expressions, self.relation.schema), self.window)

    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        The event time of a result is the start of its window.
        """
        _check(self.keys, aggregates)
        parts, finishes = taken_apart(aggregates)
        results = self.relation.derive(_aggregation_of(self.relation, self.keys, self.window, parts))
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

        return self.relation.derive(
            applied(
                self.relation,
                self.keys,
                self.window,
                function,
                schema,
                partitioning=partitioning,
                batch=batch,
            )
        )

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}.window({self.window})"


def window_of(size: Duration, slide: Duration | None, offset: Duration | None) -> Window:
    """The window that a user's durations describe; the slide defaults to the size."""
    length = microseconds(size)
    return Window(
        size=length,
        slide=length if slide is None else microseconds(slide),
        offset=0 if offset is None else signed_microseconds(offset),
    )


def _aggregation_of(
    relation: InputRelation,
    keys: Named,
    window: Window,
    aggregates: Mapping[str, Aggregate | AggregateLike],
) -> Aggregation:
    check_names(_names(keys, aggregates))
    found = tuple(resolve(name, each, relation.schema) for name, each in aggregates.items())
    return Aggregation(keys, window, found)


def _check(keys: Named, aggregates: Iterable[str]) -> None:
    if not aggregates:
        raise BadAggregate("agg() needs at least one aggregate, such as reports=ps.count()")
    check_names(_names(keys, aggregates))


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
