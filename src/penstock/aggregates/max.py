"""The greatest value; see `min`, whose counterpart it is."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.min import MinDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["max"]


@dataclass(frozen=True, slots=True)
class MaxDefinition(MinDefinition):
    """Folds values in Spark's order: nulls are skipped, NaN is greater than every number."""

    name = "max"
    sql_names = ("max",)
    extreme = "max"


@defined_by(MaxDefinition)
def max(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:  # noqa: A001 -- users write ps.max
    """The greatest value; null where there is no value.

    >>> str(max("speed"))
    'max(speed)'
    """
    return modified(Aggregate(MaxDefinition(), (expression,)), where, distinct)
