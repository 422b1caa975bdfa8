"""The values themselves under Spark's name, in the order of `array_agg`."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, check_whole, defined_by
from penstock.aggregates.array_agg import ArrayAggDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["collect_list"]


@dataclass(frozen=True, slots=True)
class CollectListDefinition(ArrayAggDefinition):
    """Spark leaves the order open; here it is that of event time."""

    name = "collect_list"
    sql_names = ("collect_list",)
    numbers = {"collect_list": (0, 1)}  # noqa: RUF012 -- a ClassVar of the base


@defined_by(CollectListDefinition)
def collect_list(
    expression: str, limit: int = 10_000, *, where: str | None = None, distinct: bool = False
) -> Aggregate:
    """The values in event-time order, equal times by value, as ``array_agg``; Spark leaves the order open.

    Holds at most ``limit`` values of a group, the earliest. Nulls are skipped; empty where there is no value.

    >>> str(collect_list("vehicle", limit=100))
    'collect_list(vehicle, limit=100)'
    """
    check_whole("collect_list", "limit", limit, 1, 1_000_000)
    return modified(Aggregate(CollectListDefinition(limit), (expression,)), where, distinct)
