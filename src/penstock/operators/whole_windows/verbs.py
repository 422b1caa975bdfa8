"""The verb apply: what a user gives, checked."""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from penstock.checks import one_of, whole_number
from penstock.errors import BadApply
from penstock.operators.names import Named
from penstock.operators.operator import InputRelation
from penstock.operators.whole_windows.function import window_function
from penstock.operators.whole_windows.node import WholeWindows, WindowPartitioning
from penstock.operators.windows.node import shown_windows
from penstock.operators.windows.shapes import Window, WindowValue
from penstock.operators.windows.verbs import Rules

__all__ = ["applied"]

_GIVEN: Final = ("auto", "keys", "windows", "batches")
_MOST: Final = 1 << 20


def applied(  # noqa: PLR0913, PLR0917 -- each is one documented option
    relation: InputRelation,
    keys: Named,
    windows: Sequence[WindowValue],
    function: Callable[..., Any],
    schema: Any,
    rules: Rules,
    partitioning: str,
    batch: int | None,
) -> WholeWindows:
    """The operator behind `apply`, with the partitioning that fits."""
    (window, *others) = windows
    if others or not isinstance(window, Window):
        raise BadApply(
            f"apply() over {shown_windows(windows)}; give one window(size, slide), and "
            "unite the results of several"
        )
    called = window_function(relation, keys, function, schema)
    if rules.lateness or rules.early is not None:
        raise BadApply(
            "apply() with lateness or early results; a function is called once for a window, so leave them "
            "out, or aggregate with a class of your own"
        )
    one_of("partitioning", partitioning, _GIVEN, BadApply)
    if partitioning == "keys" and not keys:
        raise BadApply("apply(partitioning='keys') without a key; use group_by(), or leave partitioning out")
    if batch is not None:
        batch = whole_number("batch", batch, 1, _MOST, BadApply)
        if partitioning in {"keys", "windows"}:
            raise BadApply(
                f"apply(partitioning={partitioning!r}, batch={batch}); a number of windows goes with "
                "partitioning='batches'"
            )
        partitioning = "batches"
    return WholeWindows(keys, window, called, _chosen(keys, window, partitioning), batch, rules.late)


def _chosen(keys: Named, window: Window, asked: str) -> WindowPartitioning:
    """As asked for; else keys, which send a row once, and batches where windows overlap."""
    if asked != "auto":
        return cast("WindowPartitioning", asked)
    if keys:
        return "keys"
    return "windows" if window.slide >= window.size else "batches"
