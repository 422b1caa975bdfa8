"""A plain function from an observation to rescales, as a policy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.control.observation import Observation
from penstock.control.rescale import Rescale

__all__ = ["FunctionPolicy"]


@dataclass
class FunctionPolicy:
    """Asks the function about the last observation, once.

    What the function remembers survives a restart if it has `to_json` and `resume`, as policies have.
    """

    function: Callable[[Observation], Iterable[Rescale]]
    _seen: Observation | None = field(default=None, init=False)

    def observe(self, seen: Observation) -> None:
        """Keep the observation until the decision."""
        self._seen = seen

    def decide(self, now: float) -> Sequence[Rescale]:  # noqa: ARG002 -- the shape of every policy
        """What the function asks for."""
        seen, self._seen = self._seen, None
        return [] if seen is None else list(self.function(seen))

    def to_json(self) -> dict[str, Any]:
        """What the function remembers, if it can say."""
        tell = getattr(self.function, "to_json", None)
        return {} if tell is None else dict(tell())

    def resume(self, value: Mapping[str, Any]) -> None:
        """Give the function back what it remembered."""
        remember = getattr(self.function, "resume", None)
        if value and remember is not None:
            remember(value)
