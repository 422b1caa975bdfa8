"""A simple policy: the same channels with another router when they have been too uneven for some epochs."""

from dataclasses import dataclass, field

from penstock.errors import BadRescale
from penstock.runtime.observation import Observation, StageChannels
from penstock.runtime.rescaling import Rescale

__all__ = ["RebalanceWhen", "rebalance_when"]


@dataclass
class RebalanceWhen:
    """Asks for a new router of a stage whose tuples have been uneven for `epochs` epochs in a row."""

    imbalance: float
    epochs: int
    pause: int
    _uneven: dict[int, int] = field(default_factory=dict)
    _rests: dict[int, int] = field(default_factory=dict)

    def __call__(self, seen: Observation) -> list[Rescale]:
        """The rescales that this epoch calls for."""
        return [wish for stage in seen.stages if (wish := self._judge(stage, seen.epoch)) is not None]

    def _judge(self, stage: StageChannels, epoch: int) -> Rescale | None:
        uneven = len(stage.channels) > 1 and stage.imbalance[2] > self.imbalance and not stage.moving
        self._uneven[stage.stage] = self._uneven.get(stage.stage, 0) + 1 if uneven else 0
        if self._uneven[stage.stage] < self.epochs or epoch < self._rests.get(stage.stage, 0):
            return None
        self._uneven[stage.stage] = 0
        self._rests[stage.stage] = epoch + self.pause
        reason = f"the busiest channel had {stage.imbalance[2]:.2f} times the tuples of the least busy one"
        return Rescale(stage.stage, len(stage.channels), reason=reason)


def rebalance_when(imbalance: float = 1.2, epochs: int = 3, pause: int = 10) -> RebalanceWhen:
    """A policy for ``start``: keep the channels, but place hot keys anew when the load is uneven.

    The load is most over least tuples of a channel; after a change the stage is left alone for `pause`
    epochs.

    >>> rebalance_when(1.5)
    RebalanceWhen(imbalance=1.5, epochs=3, pause=10, _uneven={}, _rests={})
    """
    if not (imbalance > 1 and epochs >= 1 and pause >= 0):
        raise BadRescale(
            f"rebalance_when(imbalance={imbalance}, epochs={epochs}, pause={pause}); give an imbalance "
            "above 1, at least 1 epoch and a pause of 0 or more"
        )
    return RebalanceWhen(imbalance, epochs, pause)
