"""The population variance, from the same partial as the sample variance."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Finish
from penstock.aggregates.var import VarDefinition, Variance

__all__ = ["PopulationVariance", "var_pop"]


@dataclass(frozen=True, slots=True)
class VarPopDefinition(VarDefinition):
    """Squared deviations over the count."""

    name = "var_pop"
    sql_names = ("var_pop",)

    def finish(self, count: str, squares: str) -> Finish:
        """Defined from one value on."""
        return PopulationVariance(count, squares, root=False)


@dataclass(frozen=True)
class PopulationVariance(Variance):
    """Population variance, or its root; null where there is no value."""

    least: ClassVar[int] = 1


@defined_by(VarPopDefinition)
def var_pop(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The population variance as a double; zero for one value, null for none.

    >>> str(var_pop("speed"))
    'var_pop(speed)'
    """
    return modified(Aggregate(VarPopDefinition(), (expression,)), where, distinct)
