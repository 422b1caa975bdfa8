"""A simple policy: keep the number of channels but change the router when tuples stay uneven."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.control.observation import Observation, StageChannels
from penstock.control.rescale import Rescale
from penstock.errors import BadRescale

__all__ = ["RebalanceWhen", "rebalance_when"]

_CHANCE = 3


@dataclass
class RebalanceWhen:
    """Requests a new router for a stage whose tuples were uneven for `epochs` epochs in a row."""

    imbalance: float
    epochs: int
    pause: int
    _uneven: dict[int, int] = field(default_factory=dict)
    _rests: dict[int, int] = field(default_factory=dict)

    def __call__(self, seen: Observation) -> list[Rescale]:
        """The rescales that this epoch requires."""
        return [wish for stage in seen.stages if (wish := self._judge(stage, seen.epoch)) is not None]

    def to_json(self) -> dict[str, dict[int, int]]:
        """How long stages have been uneven, and until which epoch they rest."""
        return {"uneven": dict(self._uneven), "rests": dict(self._rests)}

    def resume(self, value: dict[str, dict[str, int]]) -> None:
        """Continue from what `to_json` gave."""
        self._uneven = {int(stage): epochs for stage, epochs in value["uneven"].items()}
        self._rests = {int(stage): epoch for stage, epoch in value["rests"].items()}

    def _judge(self, stage: StageChannels, epoch: int) -> Rescale | None:
        if not any(each.tuples for each in stage.channels):
            return None  # an idle stage is neither even nor uneven
        ratio = _most_over_least([each.tuples for each in stage.channels])
        uneven = ratio > self.imbalance and not stage.moving
        self._uneven[stage.stage] = self._uneven.get(stage.stage, 0) + 1 if uneven else 0
        if self._uneven[stage.stage] < self.epochs or epoch < self._rests.get(stage.stage, 0):
            return None
        self._uneven[stage.stage] = 0
        self._rests[stage.stage] = epoch + self.pause
        reason = f"the busiest channel had {ratio:.2f} times the tuples of the least busy one"
        return Rescale(stage.stage, len(stage.channels), reason=reason)


def _most_over_least(tuples: Sequence[int]) -> float:
    """The most tuples of a channel over the least; 1 if chance alone makes such a difference.

    A channel without tuples counts as one with a single tuple, so the answer is finite.

    >>> _most_over_least([900, 500]), _most_over_least([40, 0]), _most_over_least([3, 0])
    (1.8, 40.0, 1.0)
    """
    most, least = max(tuples, default=0), min(tuples, default=0)
    # Counts of tuples that fall at random differ by the root of their sum, three times that among many.
    by_chance = (most - least) ** 2 <= _CHANCE**2 * (most + least)
    return 1.0 if by_chance else most / max(least, 1)


def rebalance_when(imbalance: float = 1.2, epochs: int = 3, pause: int = 10) -> RebalanceWhen:
    """A policy for ``start``: keep the channels, but place hot keys again when the load is uneven.

    The load is uneven if the most tuples of a channel over the least exceed `imbalance`, by more than chance
    explains; a channel without tuples counts as one with a single tuple. After a change
    the policy leaves the stage alone for `pause` epochs.

    >>> rebalance_when(1.5)
    RebalanceWhen(imbalance=1.5, epochs=3, pause=10, _uneven={}, _rests={})
    """
    if not (imbalance > 1 and epochs >= 1 and pause >= 0):
        raise BadRescale(
            f"rebalance_when(imbalance={imbalance}, epochs={epochs}, pause={pause}); give an imbalance "
            "above 1, at least 1 epoch and a pause of 0 or more"
        )
    return RebalanceWhen(imbalance, epochs, pause)
