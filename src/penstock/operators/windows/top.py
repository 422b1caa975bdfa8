"""The verb top: the first rows of each window and key."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic

from penstock.aggregates.aggregate import Aggregate, AggregateLike
from penstock.aggregates.top_rows import RANK, top_rows
from penstock.errors import BadName, BadWindow
from penstock.expressions.schema import quoted
from penstock.operators.names import Named
from penstock.operators.operator import D, Derivable, R

__all__ = ["TopVerbs", "first_rows", "free", "order_of"]

_MOST_ROWS = 100_000


class TopVerbs(Generic[R, D]):
    """The verb of a relation with windows that keeps the first rows of each window and key."""

    relation: Derivable[R, D]
    keys: Named

    @abstractmethod
    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results of these aggregates."""

    def top(
        self,
        n: int,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,  # noqa: FBT001, FBT002 -- as users write it
        *,
        ties: bool = False,
    ) -> D:
        """The first n rows of each window and key by an expression, with their ``rank`` from 1 on.

        The results: window_start, window_end, the keys, the other columns of the rows, and ``rank``. With
        several expressions, give for each whether it descends, or one answer for all. Nulls are the least
        values. Rows that are equal go by event time, the earliest first, then by their content; with ``ties``
        they share a rank, and all rows of a rank up to n are there, however many.

        >>> from penstock.query import stream
        >>> reports = stream("reports", "time timestamp, road string, speed double", time="time")
        >>> reports.group_by("road").window("5 minutes").top(3, by="speed").schema.names
        ('window_start', 'window_end', 'road', 'time', 'speed', 'rank')
        """
        bounds = ("window_start", "window_end")
        order = order_of(by, descending)
        return first_rows(self.agg, (self.relation, self.keys), n, order, ties=ties, apart=bounds)


def first_rows(  # noqa: PLR0913 -- what top() takes, and what it is over
    agg: Callable[..., D],
    grouping: tuple[Derivable[R, D], Named],
    n: int,
    order: list[tuple[str, bool]],
    *,
    ties: bool,
    apart: Sequence[str] = (),
) -> D:
    """The first n rows of each group that ``agg`` aggregates; the columns ``apart`` belong to the group."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_ROWS:
        raise BadWindow(f"top({n!r}); give a whole number of rows from 1 to {_MOST_ROWS:,}")
    relation, keys = grouping
    names = [name for name, _ in keys]
    taken = {each.lower() for each in (*names, *apart)}
    columns = [each for each in relation.schema.names if each.lower() not in taken]
    if RANK in {each.lower() for each in (*names, *columns)}:
        raise BadName(f"top() adds a column {RANK!r}, and there is one already; rename yours with select()")
    hidden = free("_rows", (*names, *columns))
    results: Any = agg(**{hidden: top_rows(n, order, columns, ties=ties)})
    rows = results.explode(**{hidden: quoted(hidden)})
    fields = {name: f"{quoted(hidden)}.{quoted(name)}" for name in (*columns, RANK)}
    found: D = rows.select(*names, **fields)
    return found


def order_of(by: str | Sequence[str], descending: bool | Sequence[bool]) -> list[tuple[str, bool]]:  # noqa: FBT001 -- as users write it
    """The expressions, each with whether it descends."""
    texts = [by] if isinstance(by, str) else list(by)
    downs = [descending] * len(texts) if isinstance(descending, bool) else list(descending)
    if not texts or len(texts) != len(downs):
        raise BadWindow(
            f"top() got by={by!r} and descending={descending!r}; give at least one expression, and for each "
            "of several whether it descends"
        )
    return list(zip(texts, downs, strict=True))


def free(name: str, taken: Sequence[str]) -> str:
    """The name, or with more underscores one that is not taken."""
    known = {each.lower() for each in taken}
    while name.lower() in known:
        name = f"_{name}"
    return name
