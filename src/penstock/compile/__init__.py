"""From a query to the plan that runs it: rewritten, cut into stages, each with its plan and channels."""

from penstock.compile.channels import channels_of
from penstock.compile.explain import explain
from penstock.compile.optimise import Optimised, optimise
from penstock.compile.partials import Column, Partial, form
from penstock.compile.plan import ROWS, Combining, Describe, Result, WindowPlan, compile_aggregation

__all__ = [
    "ROWS",
    "Column",
    "Combining",
    "Describe",
    "Optimised",
    "Partial",
    "Result",
    "WindowPlan",
    "channels_of",
    "compile_aggregation",
    "explain",
    "form",
    "optimise",
]
