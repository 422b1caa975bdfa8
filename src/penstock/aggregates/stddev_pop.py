"""The population standard deviation: the root of the population variance, from the same partial."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Finish
from penstock.aggregates.var import VarDefinition
from penstock.aggregates.var_pop import PopulationVariance

__all__ = ["stddev_pop"]


@dataclass(frozen=True, slots=True)
class StddevPopDefinition(VarDefinition):
    """The root of squared deviations over the count."""

    name = "stddev_pop"
    sql_names = ("stddev_pop",)

    def finish(self, count: str, squares: str) -> Finish:
        """Defined from one value on."""
        return PopulationVariance(count, squares, root=True)


@defined_by(StddevPopDefinition)
def stddev_pop(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The population standard deviation as a double; zero for one value, null for none.

    >>> str(stddev_pop("speed"))
    'stddev_pop(speed)'
    """
    return modified(Aggregate(StddevPopDefinition(), (expression,)), where, distinct)
