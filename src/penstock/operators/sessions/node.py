"""Session windows: rows of a key belong together while no two neighbours are further apart than the gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.expressions.durations import words
from penstock.operators.aggregated import GroupOperator
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.routing.resources import CCC, LLL, Resources

if TYPE_CHECKING:
    from penstock.operators.sessions.kernel import SessionKernel

__all__ = ["Late", "Sessions", "shown_session"]

Late = Literal["count", "drop"]
"""What becomes of a tuple below the frontier: it counts where its session is open, or it is late."""

_PARTIALS_OF_ROWS: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class Sessions(GroupOperator):
    """Aggregates over the sessions of each key; `gap` is in microseconds."""

    stateful: ClassVar[bool] = True

    keys: Named
    gap: int
    aggregates: tuple[ResolvedAggregate, ...]
    late: Late = "count"

    def __str__(self) -> str:
        return self.shown(shown_session(self.gap, self.late))

    def meaning(self) -> list[object]:
        """Keys, gap, aggregates, and the rule for late tuples."""
        return ["sessions", self.gap, self.late, self.meaning_of_keys(), self.meaning_of_aggregates()]

    def ahead(self) -> int:
        """A session ends one gap after its last tuple."""
        return self.gap

    def why_single(self) -> str | None:
        """Without a key there is one session at a time."""
        return None if self.keys else "without a key there is one group, and its sessions are few"

    def resources(self, form: Form = "rows") -> Resources:
        """One partial for each session, however frequent the key, unless an aggregate keeps values of tuples.

        What channels receive are as many rows as tuples, or the partials that were formed elsewhere.
        """
        if self.keeps_values:
            return LLL
        return _PARTIALS_OF_ROWS if form == "rows" else CCC

    def words(self) -> list[str]:
        """Panes, merging, closing and lateness."""
        kernel, gap = self._kernel(), words(self.gap)
        if kernel.late == "drop":
            late = "late: a tuple below the frontier"
        else:
            late = "late: a tuple whose session, with all that it joins, was closed in an earlier epoch"
        return [
            f"sessions: neighbours at most {gap} apart; from the first tuple to {gap} after the last",
            *kernel.forming_words(),
            "  tuples of one pane are always in one session, so panes of the gap's length lose nothing",
            "merge (vectorised, in the channel): by key and time, cut where the gap is longer",
            *(f"  {each.name} := {each.finish}" for each in kernel.groups.results),
            f"closed: when the frontier is more than {gap} past the last tuple; event time is window_end",
            late,
        ]

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "SessionKernel":
        """Partials of sessions, merged until they are closed."""
        return self._kernel(time_type, ports[0])

    def _kernel(self, time_type: str = "timestamp", describe: Describe | None = None) -> "SessionKernel":
        from penstock.operators.sessions.kernel import compile_sessions  # noqa: PLC0415 -- it needs this class

        return compile_sessions(self, time_type, describe)


def shown_session(gap: int, late: Late) -> str:
    """The sessions as a user would write them."""
    return f"session({words(gap)}{'' if late == 'count' else f', late={late!r}'})"
