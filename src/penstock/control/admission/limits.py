"""How much admission may do: how often a stream moves, how many move, which never do, how few gates stay."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.admission.decision import Decision, Redirect
from penstock.errors import BadAdmission

__all__ = ["Budget", "Limits"]


@dataclass(frozen=True)
class Limits:
    """Seconds between two moves of one stream, the most moves of a period, and streams that stay.

    At least `least_gates` gates stay open.
    """

    least_interval: float = 0.0
    most_moves: int = 100_000
    excluded: frozenset[str] = field(default_factory=frozenset)
    least_gates: int = 1

    def __post_init__(self) -> None:
        if self.least_interval < 0 or self.most_moves < 0 or self.least_gates < 0:
            raise BadAdmission(
                f"least_interval={self.least_interval}, most_moves={self.most_moves}, "
                f"least_gates={self.least_gates}; give numbers from 0"
            )


@dataclass
class Budget:
    """When streams moved, and so which may move now; plans ask first, and the arbiter counts what is done."""

    limits: Limits
    _moved: dict[str, float] = field(default_factory=dict)
    _moves: int = 0

    def observe(self, seen: Any) -> None:
        """A period begins."""
        self._moved = {each: at for each, at in self._moved.items() if self._stays(each, seen.at)}
        self._moves = 0

    def fixed(self, now: float) -> set[str]:
        """The streams that stay."""
        return {each for each in self._moved if self._stays(each, now)} | self.limits.excluded

    def _stays(self, stream: str, now: float) -> bool:
        recent = now - self._moved.get(stream, float("-inf")) < self.limits.least_interval
        return recent or stream in self.limits.excluded

    def why_not(self, change: Decision, now: float) -> str:
        """The limit that holds a change back; empty if none does."""
        if not isinstance(change, Redirect):
            return ""
        if self._moves >= self.limits.most_moves:
            return f"{self._moves} streams moved in this period, the limit"
        return f"stream {change.stream} stays" if self._stays(change.stream, now) else ""

    def carry_out(self, change: Decision, now: float) -> None:
        """Count a change."""
        if isinstance(change, Redirect):
            self._moves += 1
            if self.limits.least_interval > 0:
                self._moved[change.stream] = now

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"moved": dict(self._moved)}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from them."""
        self._moved = {str(stream): float(at) for stream, at in value["moved"].items()}
