"""The sample covariance of two numbers, from the same partial as their correlation."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.covar_pop import CovarPopDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["covar_samp"]


@dataclass(frozen=True, slots=True)
class CovarSampDefinition(CovarPopDefinition):
    """Products of deviations over the count minus one."""

    name = "covar_samp"
    sql_names = ("covar_samp",)
    least = 2


@defined_by(CovarSampDefinition)
def covar_samp(expression: str, other: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The sample covariance as a double; pairs with a null are skipped. Null for fewer than two pairs.

    >>> str(covar_samp("speed", "length"))
    'covar_samp(speed, length)'
    """
    return modified(Aggregate(CovarSampDefinition(), (expression, other)), where, distinct)
