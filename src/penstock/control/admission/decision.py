"""What admission decides, each with its reason in words and numbers."""

from dataclasses import dataclass

__all__ = ["Admit", "Decision", "DrainGate", "Redirect", "StartGate"]


@dataclass(frozen=True, slots=True)
class StartGate:
    """A gate is to be started; `gate` is a name for it in the decisions of the same period."""

    gate: str
    reason: str


@dataclass(frozen=True, slots=True)
class Admit:
    """A new stream enters through this gate."""

    stream: str
    gate: str
    reason: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """A stream leaves one gate for another."""

    stream: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class DrainGate:
    """A gate holds no streams any more: it accepts none and is stopped once its rows are read."""

    gate: str
    reason: str


Decision = StartGate | Admit | Redirect | DrainGate
