"""The last value by event time: the greatest pair of time and value; see `first`."""

from dataclasses import dataclass

from penstock.aggregates.aggregate import Aggregate, defined_by
from penstock.aggregates.first import FirstDefinition
from penstock.aggregates.modifiers import modified

__all__ = ["last"]


@dataclass(frozen=True, slots=True)
class LastDefinition(FirstDefinition):
    """Keeps the time and the value of one tuple; nulls are skipped."""

    name = "last"
    sql_names = ("last", "last_value")
    detail = "that of the greatest event time, of several the greatest; nulls are skipped"
    extreme = "max"


@defined_by(LastDefinition)
def last(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value with the greatest event time; of several the greatest value; nulls are skipped.

    >>> str(last("speed"))
    'last(speed)'
    """
    return modified(Aggregate(LastDefinition(), (expression,)), where, distinct)
