"""Windows of counts: the last so many rows of a key, one window every so many rows, in event order."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, ClassVar

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.errors import BadWindow
from penstock.operators.aggregated import GroupOperator
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.operators.operator import Inputs
from penstock.routing.resources import Resources

if TYPE_CHECKING:
    from penstock.operators.counts.kernel import CountKernel

__all__ = ["CountWindow", "CountWindows"]

_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class CountWindow:
    """A window of the last `size` rows of a key, one every `slide` rows.

    >>> CountWindow(100, 30).pane
    10
    """

    size: int
    slide: int

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("slide", self.slide)):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST:
                raise BadWindow(
                    f"window({name}={value!r}, rows=True); give a whole number of rows above 0 and "
                    f"below {_MOST:,}"
                )

    @property
    def pane(self) -> int:
        """The longest run of rows that no window's edge cuts."""
        return gcd(self.size, self.slide)

    def __str__(self) -> str:
        return f"{self.size} rows slide {self.slide}"


@dataclass(frozen=True, slots=True)
class CountWindows(GroupOperator):
    """Aggregates over the last rows of each key."""

    stateful: ClassVar[bool] = True

    keys: Named
    window: CountWindow
    aggregates: tuple[ResolvedAggregate, ...]

    def __str__(self) -> str:
        return self.shown(f"window({self.window})")

    def meaning(self) -> list[object]:
        """Keys, window and aggregates."""
        return [
            "counts",
            self.window.size,
            self.window.slide,
            self.meaning_of_keys(),
            self.meaning_of_aggregates(),
        ]

    def why_single(self) -> str | None:
        """Without a key there is one sequence of rows."""
        return None if self.keys else "without a key all rows are one sequence"

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The keys: all windows of a key are in one channel."""
        return frozenset(self.key_names)

    def resources(self, form: Form = "rows") -> Resources:
        """As many partials as a window has, however frequent the key; rows wait and come one by one."""
        return Resources.of("CLL")

    def words(self) -> list[str]:
        """The order of rows, panes, and what channels keep."""
        kernel, window = self._kernel(), self.window
        pane = "1 row" if window.pane == 1 else f"{window.pane:,} rows"
        fewer = "; the first ones hold fewer" if window.slide < window.size else ""
        return [
            f"windows: the last {window.size} rows, one every {window.slide} rows{fewer}",
            "order: event time, then what the aggregates read; a row waits until the frontier has passed it",
            f"panes: {pane} = gcd(size {window.size}, slide {window.slide}); each row is aggregated once",
            *kernel.forming_words(),
            *(f"  {each.name} := {each.finish}" for each in kernel.groups.results),
            "event time of a window: that of its last row, window_end; window_start is that of its first row",
            "state: the number of rows of each key so far, and the partials of the next window's panes",
        ]

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "CountKernel":
        """Rows in event order, counted and aggregated."""
        return self._kernel(time_type, ports[0])

    def _kernel(self, time_type: str = "timestamp", describe: Describe | None = None) -> "CountKernel":
        from penstock.operators.counts.kernel import compile_counts  # noqa: PLC0415 -- it needs this class

        return compile_counts(self, time_type, describe)
