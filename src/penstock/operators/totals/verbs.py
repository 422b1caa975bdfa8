"""The verb agg without a window: what a user gives, checked."""

from penstock.aggregates.aggregate import Aggregate, AggregateLike, ResolvedAggregate
from penstock.errors import BadAggregate
from penstock.expressions.durations import microseconds
from penstock.operators.aggregated import CHANGE, aggregated
from penstock.operators.operator import D, Duration, Groupable, R
from penstock.operators.totals.node import Totals

__all__ = ["TotalsVerbs"]


class TotalsVerbs(Groupable[R, D]):
    """The verb that aggregates all tuples so far, of each key or of all."""

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
