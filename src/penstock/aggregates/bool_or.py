"""Whether a condition holds for any tuple; see `bool_and`."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.bool_and import BoolAndDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["bool_or"]


@dataclass(frozen=True, slots=True)
class BoolOrDefinition(BoolAndDefinition):
    """Folds conditions; nulls are skipped."""

    name = "bool_or"
    sql_names = ("bool_or", "any", "some")
    operation = "bool_or"


@defined_by(BoolOrDefinition)
def bool_or(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """Whether the condition is true for at least one tuple; null where it is null for all.

    >>> str(bool_or("speed > 120"))
    'bool_or(speed > 120)'
    """
    return modified(Aggregate(BoolOrDefinition(), (expression,)), where, distinct)
