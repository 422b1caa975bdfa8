"""The sample standard deviation: the root of the sample variance, from the same partial."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Finish
from penstock.aggregates.var import VarDefinition, Variance

__all__ = ["stddev"]


@dataclass(frozen=True, slots=True)
class StddevDefinition(VarDefinition):
    """The root of squared deviations over count minus one."""

    name = "stddev"
    sql_names = ("stddev_samp", "stddev", "std")

    def finish(self, count: str, squares: str) -> Finish:
        """The root at the end, when all panes are merged."""
        return Variance(count, squares, root=True)


@defined_by(StddevDefinition)
def stddev(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The sample standard deviation as a double, null for fewer than two values.

    >>> str(stddev("speed"))
    'stddev(speed)'
    """
    return modified(Aggregate(StddevDefinition(), (expression,)), where, distinct)
