"""The verb by_window: groups of results by the windows that they have already."""

from dataclasses import dataclass, replace
from typing import Final, cast

from penstock.aggregates.aggregate import Aggregate, AggregateLike
from penstock.errors import BadName, BadWindow
from penstock.expressions.scalar import column
from penstock.operators.aggregated import CHANGE, WINDOW_END, WINDOW_START
from penstock.operators.names import Named, check_names, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, R
from penstock.operators.regroup.node import Rebound
from penstock.operators.windows import Windowed, window_of
from penstock.operators.windows.top import TopVerbs, free

__all__ = ["ByWindow", "ByWindowVerbs"]

_INSTANT: Final = "1 microsecond"


class ByWindowVerbs(Derivable[R, D]):
    """The verb of a relation that groups results by their windows."""

    def by_window(self) -> "ByWindow[R, D]":
        """Aggregate the results of each window once more, or take the first of them.

        The relation is made of windows: it has window_start and window_end. Results keep these bounds.

        >>> from penstock.aggregates import count
        >>> from penstock.query import stream
        >>> reports = stream("reports", "time timestamp, road string", time="time")
        >>> roads = reports.group_by("road").window("5 minutes").agg(reports=count())
        >>> roads.by_window().top(3, by="reports").schema.names
        ('window_start', 'window_end', 'road', 'reports', 'rank')
        """
        if not {WINDOW_START, WINDOW_END} <= set(self.pinned):
            raise BadWindow(
                f"by_window() of {self.label}, which has no windows; put some over it with window() first"
            )
        if CHANGE in self.pinned:
            raise BadWindow(
                f"by_window() of {self.label}, whose results are corrected later; leave out lateness "
                "and early"
            )
        return ByWindow(self, ())


@dataclass(frozen=True)
class ByWindow(TopVerbs[R, D]):
    """Results of windows, waiting for their aggregates by window."""

    relation: Derivable[R, D]
    keys: Named

    def group_by(self, /, *names: str, **expressions: str) -> "ByWindow[R, D]":
        """Aggregate for each window and each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        return replace(self, keys=group_keys(names, expressions, self.relation.schema))

    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        Results of one window have one event time, so a window of an instant has them all, and it closes as
        soon as no more of them can come.
        """
        keys = [name for name, _ in self.keys]
        check_names([WINDOW_START, WINDOW_END, *keys, *aggregates])
        own = self.relation.time
        other = WINDOW_END if own == WINDOW_START else WINDOW_START
        hidden = free("_bound", (*keys, *aggregates))
        bound = (hidden, column(other, self.relation.schema))
        windowed = Windowed(self.relation, (bound, *self.keys), (window_of(_INSTANT, None, None),))
        results = windowed.agg(**aggregates)
        schema = results.schema
        places = {own: WINDOW_START, other: hidden}
        bounds = tuple((name, column(places[name], schema)) for name in (WINDOW_START, WINDOW_END))
        rest = tuple((name, column(name, schema)) for name in (*keys, *aggregates))
        return cast("Derivable[R, D]", results).derive(Rebound(bounds + rest, own))

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}.by_window()"
