"""A fixed number of units, whatever comes; the baseline of [001] with 1 and of [000] Fig. 14 with 32."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.checks import whole_number
from penstock.control.scale import MOST_UNITS
from penstock.control.scaling.load import Load
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling

__all__ = ["Static"]


class Static(Scaler):
    """`units` for every pool; None leaves each pool as it is."""

    name = "static"

    def __init__(self, limits: ScalingLimits | None = None, *, units: int | None = None) -> None:
        super().__init__(limits)
        self.units = None if units is None else whole_number("units", units, 1, MOST_UNITS, BadScaling)

    def learn(self, seen: Load) -> None:
        """Nothing."""

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """The same in every tick."""
        if self.units is None:
            return []
        reason = f"{self.units} units as given"
        return [Wish(each.name, self.units, reason) for each in seen.pools if each.present != self.units]

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Nothing."""
