"""Joins of two streams within a bound: what one channel does with its rows, epoch after epoch.

Pure algorithms on Arrow, numpy and DuckDB: no files, no Spark, no clock.
"""

from penstock.joins.join import END, Bound, Condition, Frontiers, How, Join, Last, Side, Within
from penstock.joins.result import result_schema
from penstock.joins.state import Held, Pair, Remains
from penstock.joins.step import step

__all__ = [
    "END",
    "Bound",
    "Condition",
    "Frontiers",
    "Held",
    "How",
    "Join",
    "Last",
    "Pair",
    "Remains",
    "Side",
    "Within",
    "result_schema",
    "step",
]
