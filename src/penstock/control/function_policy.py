"""A user's own policy: a function from an observation to changes, or an object with observe and decide."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.control.observation import Observation
from penstock.control.pace import Pace
from penstock.control.proposal import Proposal
from penstock.control.rescale import Rescale
from penstock.control.scale import Scale
from penstock.distribution.distribution import Change

__all__ = ["FunctionPolicy"]


@dataclass
class FunctionPolicy:
    """Asks the user's policy about the last observation, once; what it wants needs no further reason.

    What a function remembers survives a restart if it has `to_json` and `resume`, as policies have.
    """

    given: Any
    _seen: Observation | None = field(default=None, init=False)

    def observe(self, seen: Observation) -> None:
        """Keep the observation until the decision."""
        self._seen = seen
        if hasattr(self.given, "observe"):
            self.given.observe(seen)

    def propose(self, now: float) -> Sequence[Proposal[Any]]:
        """What the user's policy asks for."""
        seen, self._seen = self._seen, None
        if seen is None:
            return []
        decide: Callable[[Any], Iterable[Any]] = getattr(self.given, "decide", self.given)
        wanted = list(decide(now if hasattr(self.given, "decide") else seen))
        for each in wanted:
            if not isinstance(each, Rescale | Change | Scale | Pace):
                raise TypeError(f"it decided {type(each).__name__}; give Rescale, Change, Scale or Pace")
        return [Proposal((each,), reason=each.reason, urgent=True) for each in wanted]

    def to_json(self) -> dict[str, Any]:
        """What it remembers, if it can say."""
        tell = getattr(self.given, "to_json", None)
        return {} if tell is None else dict(tell())

    def resume(self, value: Mapping[str, Any]) -> None:
        """Give it back what it remembered."""
        remember = getattr(self.given, "resume", None)
        if value and remember is not None:
            remember(value)
