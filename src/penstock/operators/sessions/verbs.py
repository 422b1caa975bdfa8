"""The verb session: what a user gives, checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, get_args

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate
from penstock.errors import BadName, BadWindow
from penstock.expressions.durations import microseconds
from penstock.operators.aggregated import aggregated
from penstock.operators.names import Named, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, Duration, Groupable, R
from penstock.operators.sessions.node import Late, Sessions, shown_session
from penstock.operators.windows.top import TopVerbs

__all__ = ["SessionVerbs", "Sessioned"]

_LONGEST: Final = 1 << 61


class SessionVerbs(Groupable[R, D]):
    """The verb that puts session windows over tuples, or over those of each key."""

    def session(self, gap: Duration, *, late: str = "count") -> "Sessioned[R, D]":
        """Aggregate over sessions: tuples of which no two neighbours are further apart than the gap.

        A tuple exactly one gap after the last one belongs to the session. It is closed when the frontier has
        passed that time. ``window_start`` is the time of its first tuple and ``window_end`` one gap after the
        last; the latter is the event time of the result.

        With ``late="count"`` a tuple below the frontier counts as long as its session, with all that it
        joins, is not closed. With ``late="drop"`` it is late, and sessions are exactly those of a batch over
        the accepted tuples.

        >>> from penstock.aggregates import count
        >>> from penstock.query import stream
        >>> pages = stream("pages", "time timestamp, user string, url string", time="time")
        >>> pages.group_by("user").session("30 minutes").agg(pages=count())
        pages.group_by(user).session(30 minutes).agg(pages=count())
        """
        return sessions_of(*self.grouping, gap, late)


@dataclass(frozen=True)
class Sessioned(TopVerbs[R, D]):
    """A relation with session windows, waiting for its aggregates."""

    relation: Derivable[R, D]
    keys: Named
    gap: int
    late: Late

    def group_by(self, /, *names: str, **expressions: str) -> "Sessioned[R, D]":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        keys = group_keys(names, expressions, self.relation.schema)
        return Sessioned(self.relation, keys, self.gap, self.late)

    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        The event time of a result is the end of its session.
        """

        def operator(found: tuple[ResolvedAggregate, ...]) -> Sessions:
            return Sessions(self.keys, self.gap, found, self.late)

        return aggregated(self.relation, self.keys, aggregates, operator)

    def apply(self, function: Callable[..., Any], schema: Any) -> D:
        """Call a function with the rows of each session of each key.

        It takes and returns what a function over time windows does (see ``window(…).apply``). The results:
        window_start, window_end, the keys, then what the function makes. Their event time is the end of the
        session.

        >>> from penstock.query import stream
        >>> def visited(rows):
        ...     return {"way": [" ".join(rows["url"].to_pylist())]}
        >>> pages = stream("pages", "time timestamp, user string, url string", time="time")
        >>> pages.group_by("user").session("30 minutes").apply(visited, "way string")
        pages.group_by(user).session(30 minutes).apply(visited)
        """
        from penstock.operators.whole_sessions import WholeSessions  # noqa: PLC0415 -- it builds on sessions
        from penstock.operators.whole_windows import window_function  # noqa: PLC0415 -- it needs windows

        called = window_function(self.relation, self.keys, function, schema)
        return self.relation.derive(WholeSessions(self.keys, self.gap, called, self.late))

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}.{shown_session(self.gap, self.late)}"


def sessions_of(relation: Derivable[R, D], keys: Named, gap: Duration, late: str) -> Sessioned[R, D]:
    """Sessions as a user describes them."""
    length = microseconds(gap)
    if not 0 < length < _LONGEST:
        raise BadWindow(f"session({gap!r}); give a gap of more than 0 and less than 73,000 years")
    if late not in get_args(Late):
        raise BadWindow(
            f"late={late!r}; give 'count' (a tuple counts while its session is open) or 'drop' (a tuple "
            "below the frontier is late)"
        )
    return Sessioned(relation, keys, length, late)  # type: ignore[arg-type]
