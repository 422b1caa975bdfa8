"""What admission decides, each with its reason in words and numbers.

They are about gates and streams and no stage of a run, so all of them have the stage `CLUSTER`.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from penstock.control.scale import CLUSTER

__all__ = ["Admit", "Decision", "DrainGate", "Redirect", "StartGate"]


@dataclass(frozen=True, slots=True)
class _OfGate:
    gate: str
    reason: str

    stage: ClassVar[int] = CLUSTER
    kind: ClassVar[str]

    @property
    def setting(self) -> str:
        """What it changes."""
        return f"gate {self.gate}"

    def subject(self) -> str:
        """What changes."""
        return f"{self.kind} {self.gate}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class StartGate(_OfGate):
    """A gate is to be started; `gate` is a name for it in the decisions of the same period."""

    kind = "start"


@dataclass(frozen=True, slots=True)
class DrainGate(_OfGate):
    """A gate holds no streams any more: it accepts none and is stopped once its rows are read."""

    kind = "drain"


@dataclass(frozen=True, slots=True)
class Admit:
    """A new stream enters through this gate."""

    stream: str
    gate: str
    reason: str

    stage: ClassVar[int] = CLUSTER

    @property
    def setting(self) -> str:
        """What it changes."""
        return f"stream {self.stream}"

    def subject(self) -> str:
        """What changes."""
        return f"{self.stream} enters {self.gate}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": "admit", **asdict(self)}


@dataclass(frozen=True, slots=True)
class Redirect:
    """A stream leaves one gate for another."""

    stream: str
    source: str
    target: str
    reason: str

    stage: ClassVar[int] = CLUSTER

    @property
    def setting(self) -> str:
        """What it changes."""
        return f"stream {self.stream}"

    def subject(self) -> str:
        """What changes."""
        return f"{self.stream} from {self.source} to {self.target}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": "redirect", **asdict(self)}


Decision = StartGate | Admit | Redirect | DrainGate
