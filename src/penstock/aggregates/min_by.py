"""The value of the tuple with the least other value: the least pair of both; see `max_by`."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.max_by import MaxByDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["min_by"]


@dataclass(frozen=True, slots=True)
class MinByDefinition(MaxByDefinition):
    """Keeps both values of one tuple; of several tuples the one that is least in the first value too."""

    name = "min_by"
    sql_names = ("min_by",)
    detail = "of several the least; null is less than every value"
    extreme = "min"


@defined_by(MinByDefinition)
def min_by(expression: str, by: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value of the expression where ``by`` is least; of several tuples the least value.

    Tuples with a null in ``by`` are skipped; a null in the expression counts as the least value.

    >>> str(min_by("vehicle", "speed"))
    'min_by(vehicle, speed)'
    """
    return modified(Aggregate(MinByDefinition(), (expression, by)), where, distinct)
