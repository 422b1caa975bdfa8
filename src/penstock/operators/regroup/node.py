"""The bounds of windows given back to results that were grouped by them."""

from dataclasses import dataclass, replace

from penstock.operators.aggregated import WINDOW_END, WINDOW_START
from penstock.operators.operator import Inputs, Operator
from penstock.operators.steps import Select

__all__ = ["Rebound"]


@dataclass(frozen=True, slots=True)
class Rebound(Select):
    """A select whose columns are the bounds of windows, from wherever they come, and others after them.

    ``time`` is the bound that is the event time of the results.
    """

    time: str = WINDOW_START

    def event_time(self, inputs: Inputs) -> str:
        """The bound that is the event time of the windows before."""
        return self.time

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window."""
        return (WINDOW_START, WINDOW_END)

    def meaning(self) -> list[object]:
        """Names, expressions and the time."""
        return ["rebound", self.time, [[name, each.sql] for name, each in self.columns]]

    def narrowed(self, wanted: frozenset[str], inputs: Inputs) -> tuple[Operator, tuple[str, ...]]:
        """The wanted columns and the bounds."""
        bounds = {WINDOW_START, WINDOW_END}
        kept = tuple(each for each in self.columns if each[0].lower() in wanted or each[0] in bounds)
        return replace(self, columns=kept), ()

    def __str__(self) -> str:
        return f"bounds({', '.join(name for name, _ in self.columns)})"
