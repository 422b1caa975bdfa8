"""A function over the rows of each window: any function, so nothing of a window can be merged from parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.expressions.schema import Schema
from penstock.operators.aggregated import WINDOW_BOUNDS, WINDOW_START
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, shown_keys
from penstock.operators.operator import NATIVE, Inputs, Operator
from penstock.operators.whole_windows.function import WindowFunction
from penstock.operators.windows.node import Late, shown_rules, shown_windows
from penstock.operators.windows.shapes import Window

if TYPE_CHECKING:
    from penstock.operators.whole_windows.kernel import WholeWindowKernel

__all__ = ["WholeWindows", "WindowPartitioning"]

WindowPartitioning = Literal["keys", "windows", "batches"]
"""What tells channels apart: the keys of rows, single windows, or batches of neighbouring windows."""


@dataclass(frozen=True, slots=True)
class WholeWindows(Operator):
    """A function over the rows of each key in each window.

    With ``batch`` so many windows are computed together; None leaves it to what they cost.
    """

    stateful: ClassVar[bool] = True

    keys: Named
    window: Window
    function: WindowFunction
    partitioning: WindowPartitioning
    batch: int | None = None
    late: Late = "count"

    def __str__(self) -> str:
        keys = f"{shown_keys(self.keys).lstrip('.')}." if self.keys else ""
        window = shown_windows([self.window], shown_rules(self.late, 0, None))
        return f"{keys}{window}.apply({self.function.name})"

    @property
    def kind(self) -> str:
        """As the verb."""
        return "apply"

    def meaning(self) -> list[object]:
        """Keys, window, the function with its settings, and the columns of rows and results.

        How windows are shared out is no part of it: any run can go on with another partitioning of batches.
        """
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        by = "keys" if self.partitioning == "keys" else "windows"
        return ["apply", keys, self.window.meaning(), self.late, *self.function.meaning(), by]

    def schema(self, inputs: Inputs) -> Schema:
        """The bounds of the window, the keys, what the function makes."""
        return self.function.results(self.keys, inputs[0].time_type)

    def event_time(self, inputs: Inputs) -> str:
        """The start of the window."""
        return WINDOW_START

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the window."""
        return WINDOW_BOUNDS

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by."""
        return tuple((name, each.sql) for name, each in self.keys)

    def why_single(self) -> str | None:
        """Windows can be shared out, with or without a key."""
        return None

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The keys, where they tell channels apart."""
        return frozenset(self.key_names) if self.partitioning == "keys" else frozenset()

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "WholeWindowKernel":
        """Raw rows, and a call for each window that is closed."""
        from penstock.operators.whole_windows.kernel import compile_whole_windows  # noqa: PLC0415 -- it needs this class

        return compile_whole_windows(self, time_type, ports[0])

    # -- words for plans -------------------------------------------------------------------------------

    def words(self) -> list[str]:
        """How windows are shared out and why, and what is kept."""
        copies = -(-self.window.size // self.window.slide)
        kept, each = "raw rows, once", "key and window" if self.keys else "window"
        if self.partitioning != "keys":
            kept += " in each channel that computes one of their windows"
        return [
            f"partitioning: {self._partitioning(copies)}",
            "  not panes: a function needs the whole window; a mergeable aggregate would let panes be shared",
            f"function: {self.function.name} over Arrow, one call for each {each}",
            f"state: {kept}, forgotten with their last window",
        ]

    def _partitioning(self, copies: int) -> str:
        if self.partitioning == "keys":
            return "by key: all windows of a key are computed in its channel, and a row is sent once"
        if self.partitioning == "windows":
            why = "windows do not overlap, so a row is sent once" if copies == 1 else "as asked for"
            return f"by window: window j is computed once, on channel j mod N; {why}"
        size = "of a size that follows from measured costs and the latency bound"
        if self.batch is not None:
            size = f"of B = {self.batch} windows, as asked for"
        return (
            f"by batches {size}: window j is computed once, on channel ⌊j/B⌋ mod N; a row lies in {copies} "
            "windows, and is sent once to each channel that computes one of them"
        )

    @property
    def route(self) -> str:
        """By key, or by time."""
        return "hash" if self.partitioning == "keys" else "window"

    def route_words(self) -> str:
        """The router and the reason for it."""
        if self.partitioning == "keys":
            return Operator.route_words(self)
        return f"by time, to the channels that compute its windows, {NATIVE}"
