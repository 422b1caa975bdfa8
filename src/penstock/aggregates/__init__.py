# ruff: noqa: A004 -- users write ps.min, ps.max and ps.sum
"""Aggregates: one file each with the constructor, SQL names, types, partial, merge, finish and error.

The imports below are the registry. To add an aggregate, write its file and add its line; queries, SQL, the
engine, the documentation and the shared tests find it here.
"""

from typing import TYPE_CHECKING

from penstock.aggregates.aggregate import DEFINITIONS as _DEFINITIONS
from penstock.aggregates.approx_count_distinct import approx_count_distinct as approx_count_distinct
from penstock.aggregates.array_agg import array_agg as array_agg
from penstock.aggregates.arrow_aggregate import ArrowAggregate as ArrowAggregate
from penstock.aggregates.avg import avg as avg
from penstock.aggregates.bool_and import bool_and as bool_and
from penstock.aggregates.bool_or import bool_or as bool_or
from penstock.aggregates.collect_list import collect_list as collect_list
from penstock.aggregates.corr import corr as corr
from penstock.aggregates.count import count as count
from penstock.aggregates.count_distinct import count_distinct as count_distinct
from penstock.aggregates.covar_pop import covar_pop as covar_pop
from penstock.aggregates.covar_samp import covar_samp as covar_samp
from penstock.aggregates.first import first as first
from penstock.aggregates.last import last as last
from penstock.aggregates.max import max as max
from penstock.aggregates.max_by import max_by as max_by
from penstock.aggregates.median import median as median
from penstock.aggregates.min import min as min
from penstock.aggregates.min_by import min_by as min_by
from penstock.aggregates.mode import mode as mode
from penstock.aggregates.percentile import percentile as percentile
from penstock.aggregates.quantile import quantile as quantile
from penstock.aggregates.sql_aggregate import sql_aggregate as sql_aggregate
from penstock.aggregates.stddev import stddev as stddev
from penstock.aggregates.stddev_pop import stddev_pop as stddev_pop
from penstock.aggregates.sum import sum as sum
from penstock.aggregates.top_k import top_k as top_k
from penstock.aggregates.var import var as var
from penstock.aggregates.var_pop import var_pop as var_pop

if not TYPE_CHECKING:
    # Type checkers and editors go by the imports above, which re-export their names.
    __all__ = sorted(["ArrowAggregate", "sql_aggregate", *_DEFINITIONS])  # noqa: PLE0605 -- not a literal
