"""The splits of document 000 as native Spark expressions: no Python touches a row to route it.

Each agrees with the `route` of its router on every row. `sequence` is a running number of the rows; Spark's
own `monotonically_increasing_id()` counts them within a partition and costs an addition. A split key or pane
is merged again after its channels, so a task that runs anew may deal its rows out in another order.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.routing import PlainPanes, RatePanes, SubKeys
from penstock.runtime.route_column import literal_array, route_column

__all__ = ["plain_pane_column", "rate_pane_column", "sub_key_column"]


def sub_key_column(hashes: Column, sequence: Column, router: SubKeys) -> Column:
    """The channel of every row from the 64-bit hash of its key, hot keys dealt out over their sub-keys."""
    route = route_column(hashes, router.arrays)
    if not len(router.targets):
        return route
    place = F.bitwise_not(route)
    turn = F.pmod(sequence, literal_array(router.counts)[place])
    target = literal_array(router.targets)[literal_array(router.starts)[place] + turn]
    return F.when(route >= 0, route).otherwise(target.cast("int"))


def plain_pane_column(panes: Column, router: PlainPanes) -> Column:
    """The channel of every row from the id of its pane: whole panes in turn."""
    return F.pmod(panes, F.lit(router.channels)).cast("int")


def rate_pane_column(panes: Column, sequence: Column, router: RatePanes) -> Column:
    """The channel of every row from the id of its pane, split panes dealt out over their slots."""
    plain = plain_pane_column(panes, PlainPanes(router.channels))
    if not len(router.homes):
        return plain
    home = literal_array(router.homes)[panes - F.lit(router.first)]
    channel = home
    if len(router.slots):
        place = F.bitwise_not(home) + sequence.bitwiseAND(F.lit(router.width - 1))
        channel = F.when(home >= 0, home).otherwise(literal_array(router.slots)[place])
    planned = panes.between(router.first, router.first + len(router.homes) - 1)
    return F.when(planned, channel.cast("int")).otherwise(plain)
