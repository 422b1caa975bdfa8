"""From a query to the plan that runs it: rewritten, cut into stages, each with its plan and channels."""

from penstock.compile.channels import channels_of, is_single
from penstock.compile.explain import explain
from penstock.compile.join_plan import JoinPlan, compile_join
from penstock.compile.lifts import TIME
from penstock.compile.mapped import mapped
from penstock.compile.merging import parted_by
from penstock.compile.optimise import Optimised, optimise
from penstock.compile.partials import Column, Partial, form
from penstock.compile.plan import ROWS, Combining, Describe, Result, WindowPlan, compile_aggregation
from penstock.compile.subqueries import STRATEGIES, Feed, Port, Stage, Strategy, Subqueries, cut
from penstock.compile.tail import Tail, compile_tail

__all__ = [
    "ROWS",
    "STRATEGIES",
    "TIME",
    "Column",
    "Combining",
    "Describe",
    "Feed",
    "JoinPlan",
    "Optimised",
    "Partial",
    "Port",
    "Result",
    "Stage",
    "Strategy",
    "Subqueries",
    "Tail",
    "WindowPlan",
    "channels_of",
    "compile_aggregation",
    "compile_join",
    "compile_tail",
    "cut",
    "explain",
    "form",
    "is_single",
    "mapped",
    "optimise",
    "parted_by",
]
