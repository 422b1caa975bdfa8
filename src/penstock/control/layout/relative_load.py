"""The load of channels relative to their mean, smoothed over epochs, and whether it is uneven by chance.

Each epoch counts the same however many tuples it had, so a change of rate is no change of balance. If the
loads of two epochs in a row are far from all before, smoothing starts again with those two.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RelativeLoad"]

Floats = NDArray[np.float64]

_WEIGHT = 0.15
"""The weight of the newest epoch, so that about the last twelve count."""
_FEWEST_EPOCHS = 3
_CHANCE = 4.0
"""Standard errors by which the busiest and the idlest of many channels differ at most by chance."""
_JUMP = 6.0
_LEAST_DEVIATION = 0.03
"""A jump is at least this often the mean load times `_JUMP`, however steady the load was before."""


@dataclass
class RelativeLoad:
    """Means and variances over epochs of load over mean load, for each channel.

    `counted` loads are numbers of independent tuples: they have at least the variance of random counts.

    >>> load = RelativeLoad()
    >>> for noise in (0.01, 0.0, -0.01):
    ...     jumped = load.observe(np.array([2.0 + noise, 1.0]))
    >>> round(load.busiest, 2), load.busiest - 1 > load.doubt
    (1.33, True)
    """

    counted: bool = False
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    variance: Floats = field(default_factory=lambda: np.zeros(0))
    noise: float = 0.0
    epochs: int = 0
    usual: float = math.inf
    """The variance of an epoch as it was before smoothing started again."""
    _last: Floats | None = None

    def observe(self, loads: Floats) -> bool:
        """Take in the loads of an epoch; whether they jumped. An epoch without load says nothing."""
        total = float(loads.sum())
        if total <= 0:
            return False
        relative = loads * (len(loads) / total)
        noise = len(loads) / total if self.counted else 0.0
        if self.epochs and len(self.mean) != len(relative):
            self.forget()
        if self._jumps(relative):
            if self._last is not None:
                before = self._last
                self.forget()
                self._add(before, noise)
                self._add(relative, noise)
                return True
            self._last = relative
            return False
        self._last = None
        self._add(relative, noise)
        return False

    def forget(self) -> None:
        """Start again: the loads so far say nothing about those to come, but for how much they vary."""
        if self.epochs >= _FEWEST_EPOCHS:
            self.usual = max(float(self.variance.max()), _LEAST_DEVIATION**2)
        self.mean, self.variance, self.noise, self.epochs, self._last = np.zeros(0), np.zeros(0), 0.0, 0, None

    @property
    def busiest(self) -> float:
        """The load of the busiest channel over the mean."""
        return float(self.mean.max()) if self.epochs else 1.0

    @property
    def doubt(self) -> float:
        """By how much the busiest channel may exceed the mean by chance; infinite while little is known."""
        if self.epochs < _FEWEST_EPOCHS:
            variance = self.usual * self.busiest
            return _CHANCE * math.sqrt(variance / self.epochs) if self.epochs else math.inf
        return _CHANCE * math.sqrt(float(self._errors()[int(self.mean.argmax())]))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        last = None if self._last is None else self._last.tolist()
        return {
            "mean": self.mean.tolist(),
            "variance": self.variance.tolist(),
            "noise": self.noise,
            "epochs": self.epochs,
            "usual": None if math.isinf(self.usual) else self.usual,
            "last": last,
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self.mean, self.variance = (np.array(value[name], np.float64) for name in ("mean", "variance"))
        self.noise, self.epochs = value["noise"], value["epochs"]
        self.usual = math.inf if value["usual"] is None else value["usual"]
        self._last = None if value["last"] is None else np.array(value["last"], np.float64)

    def _add(self, relative: Floats, noise: float) -> None:
        self.epochs += 1
        if self.epochs == 1:
            self.mean, self.variance, self.noise = relative, np.zeros(len(relative)), noise
            return
        weight = max(_WEIGHT, 1 / self.epochs)
        apart = relative - self.mean
        self.mean = self.mean + weight * apart
        self.variance = (1 - weight) * (self.variance + weight * apart**2)
        self.noise += weight * (noise - self.noise)

    def _errors(self) -> Floats:
        """The squared standard error of each mean: its own variance or that of all, whichever is greater."""
        count = min(self.epochs, 2 / _WEIGHT - 1)
        # A variance from n values is too low by 1/n.
        own = self.variance * (self.epochs / max(self.epochs - 1, 1) if self.epochs < count else 1.0)
        each = np.maximum(np.maximum(own, float(own.mean())), self.noise * self.mean)
        errors: Floats = each / count
        return errors

    def _jumps(self, relative: Floats) -> bool:
        if self.epochs < _FEWEST_EPOCHS:
            return False
        each = np.maximum(self.variance, float(self.variance.mean()))
        deviation = np.sqrt(np.maximum(np.maximum(each, self.noise * self.mean), _LEAST_DEVIATION**2))
        return bool((np.abs(relative - self.mean) > _JUMP * deviation).any())
