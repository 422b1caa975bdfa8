"""What follows window(..., rows=True): what a user gives, checked."""

from dataclasses import dataclass
from typing import Generic

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate
from penstock.errors import BadName, BadWindow
from penstock.operators.aggregated import aggregated
from penstock.operators.counts.node import CountWindow, CountWindows
from penstock.operators.names import Named, group_keys, shown_keys
from penstock.operators.operator import D, Derivable, R

__all__ = ["CountWindowed", "counted_of"]


@dataclass(frozen=True)
class CountWindowed(Generic[R, D]):
    """A relation with windows of counts, waiting for its aggregates.

    >>> from penstock.aggregates import avg
    >>> from penstock.query import stream
    >>> trades = stream("trades", "time timestamp, symbol string, price double", time="time")
    >>> trades.group_by("symbol").window(100, slide=10, rows=True).agg(mean=avg("price"))
    trades.group_by(symbol).window(100 rows slide 10).agg(mean=avg(`price`))
    """

    relation: Derivable[R, D]
    keys: Named
    window: CountWindow

    def group_by(self, /, *names: str, **expressions: str) -> "CountWindowed[R, D]":
        """Aggregate for each value of these columns and expressions."""
        if self.keys:
            raise BadName("group_by() is there twice; give all keys to one of them")
        return CountWindowed(self.relation, group_keys(names, expressions, self.relation.schema), self.window)

    def agg(self, /, **aggregates: Aggregate | AggregateLike) -> D:
        """The results: window_start, window_end, the keys, then these aggregates under their names.

        The bounds are the event times of the first and the last row of the window, both included; the latter
        is the event time of the result.
        """

        def operator(found: tuple[ResolvedAggregate, ...]) -> CountWindows:
            return CountWindows(self.keys, self.window, found)

        return aggregated(self.relation, self.keys, aggregates, operator)

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}.window({self.window})"


def counted_of(
    relation: Derivable[R, D], keys: Named, size: object, slide: object, **others: object
) -> CountWindowed[R, D]:
    """Windows of counts as a user describes them; the slide defaults to the size.

    `others` are options of windows over time, which have no meaning here.
    """
    for name, value in others.items():
        if value is not None:
            raise BadWindow(
                f"window(rows=True, {name}={value!r}); {name} is for windows over time, leave it out"
            )
    window = CountWindow(size, size if slide is None else slide)  # type: ignore[arg-type]
    return CountWindowed(relation, keys, window)
