"""A function over the rows of each session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.expressions.durations import words
from penstock.expressions.schema import Schema
from penstock.operators.aggregated import WINDOW_BOUNDS, WINDOW_END
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, shown_keys
from penstock.operators.operator import Inputs, Operator
from penstock.operators.sessions.node import Late, shown_session
from penstock.operators.whole_windows.function import WindowFunction

if TYPE_CHECKING:
    from penstock.operators.whole_sessions.kernel import WholeSessionKernel

__all__ = ["WholeSessions"]


@dataclass(frozen=True, slots=True)
class WholeSessions(Operator):
    """A function over the rows of each session of each key; `gap` is in microseconds."""

    stateful: ClassVar[bool] = True

    keys: Named
    gap: int
    function: WindowFunction
    late: Late = "count"

    def __str__(self) -> str:
        keys = f"{shown_keys(self.keys).lstrip('.')}." if self.keys else ""
        return f"{keys}{shown_session(self.gap, self.late)}.apply({self.function.name})"

    @property
    def kind(self) -> str:
        """As the verb."""
        return "apply"

    def meaning(self) -> list[object]:
        """Keys, gap, the rule for late tuples, and the function."""
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        return ["apply to sessions", keys, self.gap, self.late, *self.function.meaning()]

    def schema(self, inputs: Inputs) -> Schema:
        """The bounds of the session, the keys, what the function makes."""
        return self.function.results(self.keys, inputs[0].time_type)

    def event_time(self, inputs: Inputs) -> str:
        """The end of the session, since its start may be long past."""
        return WINDOW_END

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The bounds of the session."""
        return WINDOW_BOUNDS

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by."""
        return tuple((name, each.sql) for name, each in self.keys)

    def ahead(self) -> int:
        """A session ends one gap after its last tuple."""
        return self.gap

    def why_single(self) -> str | None:
        """Without a key there is one session at a time."""
        return None if self.keys else "without a key there is one session at a time"

    def words(self) -> list[str]:
        """When the function is called, and what is kept until then."""
        gap, each = words(self.gap), "key and session" if self.keys else "session"
        late = "late: a tuple whose session, with all that it joins, was closed in an earlier epoch"
        if self.late == "drop":
            late = "late: a tuple below the frontier"
        return [
            f"sessions: neighbours at most {gap} apart; from the first tuple to {gap} after the last",
            f"function: {self.function.name} over Arrow, one call for each {each}",
            "  not partials: a function needs the whole session; a mergeable aggregate would keep less",
            f"closed: when the frontier is more than {gap} past the last tuple; event time is window_end",
            "state: the bounds of open sessions, and their raw rows, once",
            late,
        ]

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "WholeSessionKernel":
        """Raw rows, and a call for each session that is closed."""
        from penstock.operators.whole_sessions.kernel import compile_whole_sessions  # noqa: PLC0415 -- it needs this class

        return compile_whole_sessions(self, time_type, ports[0])
