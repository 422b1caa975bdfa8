"""The most frequent value, exactly: the values of each pane with their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.bags import bag_of, members
from penstock.aggregates.kinds import dense_rank
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.expressions.scalar import Expression

__all__ = ["mode"]


@dataclass(frozen=True, slots=True)
class ModeDefinition(Definition):
    """Keeps each value of a pane and key once, with its count; nulls are skipped.

    Spark's mode(x) picks any of several values that are equally frequent; mode(x, true) picks the least, and
    so does this.
    """

    name = "mode"
    sql_names = ("mode",)
    gives = "the argument's type"
    agreement = Agreement.CHOSEN
    detail = "of several that are equally frequent the least; nulls are skipped"
    keeps_values = True

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the value."""
        return given[0]

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """From the partial that percentiles of the value share."""
        return MostFrequent(bag_of(arguments[0], pane)), arrow_of(arguments[0])

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """The form in which Spark says which of several it takes."""
        return f"mode({arguments[0]}, true)"

    def distinct_sql(self, arguments: Sequence[str]) -> str:
        """Of values that are there once each the least; Spark refuses this form."""
        return f"min({arguments[0]})"


@dataclass(frozen=True)
class MostFrequent:
    """The value with the greatest count, of several the least."""

    column: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Null where there is no value."""
        found = members(columns[self.column])
        groups = len(columns[self.column])
        order = np.lexsort((dense_rank(found.values), -found.counts, found.owners))
        owners = found.owners[order]
        first = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])) if len(owners) else owners
        place = np.zeros(groups, np.int64)
        absent = np.ones(groups, np.bool_)
        place[owners[first]], absent[owners[first]] = order[first], False
        return found.values.take(pa.array(place, mask=absent))

    def __str__(self) -> str:
        return f"mode({self.column})"


@defined_by(ModeDefinition)
def mode(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The most frequent value, of several the least; nulls are skipped; null where there is no value.

    State holds each value of a pane once; if that is too much, see ``top_k``.

    >>> str(mode("kind"))
    'mode(kind)'
    """
    return modified(Aggregate(ModeDefinition(), (expression,)), where, distinct)
