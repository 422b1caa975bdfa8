"""What operators and their scheduler tell each other in online shuffle grouping ([001] §5.2)."""

from dataclasses import dataclass

from penstock.errors import BadRouting
from penstock.sketches.mean_cost import MeanCost

__all__ = ["Matrices", "ShuffleSettings", "SyncReply", "SyncRequest"]


@dataclass(frozen=True)
class ShuffleSettings:
    """Size of the sketches, and when they are steady enough to be sent.

    An operator looks at its sketch every `window` tuples (N of the paper), and sends it once its mean
    costs differ from the last look by at most `tolerance` (μ), relative to their sum.
    """

    window: int = 1_024
    tolerance: float = 0.05
    epsilon: float = 0.05
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.window < 1 or self.tolerance < 0:
            raise BadRouting(
                f"a window of {self.window} tuples and a tolerance of {self.tolerance}; "
                "give a window of at least 1 and a tolerance of at least 0"
            )

    def sketch(self) -> MeanCost:
        """An empty sketch; all operators share its hash functions."""
        return MeanCost(self.epsilon, self.delta, self.seed)


@dataclass(frozen=True)
class Matrices:
    """Operator to scheduler: what tuples cost here since the last report; it no longer changes."""

    channel: int
    sketch: MeanCost


@dataclass(frozen=True)
class SyncRequest:
    """Scheduler to operator, with its tuple number `ordinal`: all up to it should have cost `estimate`."""

    channel: int
    round: int
    ordinal: int
    estimate: float


@dataclass(frozen=True)
class SyncReply:
    """Operator to scheduler: by how much the true cost of all those tuples exceeds the estimate."""

    channel: int
    round: int
    drift: float
