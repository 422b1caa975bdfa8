"""From a query to the plan that runs it: prefix, pane-level query, window-level query, tail."""

from penstock.compile.explain import explain
from penstock.compile.partials import Column, Partial, form
from penstock.compile.plan import ROWS, Combining, Describe, Result, WindowPlan, compile_query

__all__ = [
    "ROWS",
    "Column",
    "Combining",
    "Describe",
    "Partial",
    "Result",
    "WindowPlan",
    "compile_query",
    "explain",
    "form",
]
