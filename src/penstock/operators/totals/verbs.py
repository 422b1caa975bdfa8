"""The verbs agg and top without a window: what a user gives, checked."""

from collections.abc import Sequence
from functools import partial

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate
from penstock.errors import BadAggregate, BadName
from penstock.expressions.durations import microseconds
from penstock.operators.aggregated import CHANGE, aggregated
from penstock.operators.operator import D, Duration, Groupable, R
from penstock.operators.totals.node import Totals
from penstock.operators.windows.top import first_rows, order_of

__all__ = ["TotalsVerbs"]


class TotalsVerbs(Groupable[R, D]):
    """The verbs over all tuples so far, of each key or of all."""

    def agg(self, /, *, keep: Duration | None = None, **aggregates: Aggregate | AggregateLike) -> D:
        """The totals of each key, or of all tuples, so far; every epoch gives the groups that it changed.

        Results begin with a column ``change``: a group that is new is an ``insert``; for one that has
        changed, a ``retract`` has the old values and an ``update`` the new ones. With ``keep``, a group is
        forgotten when the frontier is so far past its latest tuple, and its next tuple begins it anew.

        >>> from penstock import count
        >>> from penstock.query import stream
        >>> orders = stream("orders", "time timestamp, customer bigint, price double", time="time")
        >>> orders.group_by("customer").agg(n=count(), keep="1 day")
        orders.group_by(customer).agg(n=count(), keep=1 day)
        >>> orders.agg(n=count())
        orders.agg(n=count())
        """
        relation, keys = self.grouping
        if isinstance(keep, (Aggregate, AggregateLike)):
            raise BadAggregate(
                "keep is how long a group is kept, such as '1 day'; name the aggregate otherwise"
            )
        kept = None if keep is None else microseconds(keep)
        if kept is not None and kept <= 0:
            raise BadAggregate(f"keep={keep!r}; a group has to be kept for longer than no time")
        if not keys and not aggregates:
            raise BadAggregate("agg() without a key and without an aggregate; give one, such as n=ps.count()")

        def operator(found: tuple[ResolvedAggregate, ...]) -> Totals:
            return Totals(keys, found, kept)

        return aggregated(relation, keys, aggregates, operator, (CHANGE,))

    def top(
        self,
        n: int,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,  # noqa: FBT001, FBT002 -- as users write it
        *,
        ties: bool = False,
        keep: Duration | None = None,
    ) -> D:
        """The first n rows of each key, or of all tuples, so far; every epoch gives what it changed.

        The results: ``change``, the keys, the other columns of the rows, and ``rank``. Where the first rows
        of a key have changed, all of the old ones are retracted and all of the new ones given as updates. The
        order is that of ``top`` over windows, ``keep`` that of ``agg``.

        >>> from penstock.query import stream
        >>> bids = stream("bids", "time timestamp, item bigint, price double", time="time")
        >>> bids.group_by("item").top(10, by="price").schema.names
        ('change', 'item', 'time', 'price', 'rank')
        """
        if CHANGE in {each.lower() for each in self.grouping[0].schema.names}:
            raise BadName(
                f"top() adds a column {CHANGE!r}, and there is one already; rename yours with select()"
            )
        agg = partial(self.agg, keep=keep)
        return first_rows(agg, self.grouping, n, order_of(by, descending), ties=ties)
