"""The kernel of a windowed aggregation."""

from penstock.expressions.types import arrow_type
from penstock.operators.aggregate_columns import aggregate_columns, panes_of
from penstock.operators.kernel import Describe
from penstock.operators.windows.kernel import WindowKernel
from penstock.operators.windows.node import Aggregation
from penstock.operators.windows.revising_kernel import RevisingKernel
from penstock.operators.windows.shapes import paned

__all__ = ["compile_windows"]


def compile_windows(operator: Aggregation, time_type: str, describe: Describe | None = None) -> WindowKernel:
    """The kernel of an aggregation.

    Without `describe`, what the query itself could infer is used, which is enough to explain it.
    """
    grid, windows = paned(operator.windows)
    parts = aggregate_columns(operator.keys, operator.aggregates, panes_of(describe), describe)
    kind = RevisingKernel if operator.revising else WindowKernel
    return kind(
        grid=grid,
        windows=windows,
        **parts,
        bound_type=arrow_type(time_type),
        late=operator.late,
        lateness=operator.lateness,
        early=operator.early,
    )
