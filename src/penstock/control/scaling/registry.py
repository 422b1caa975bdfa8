"""Every scaling policy by its name; a line here makes one selectable and puts it under the contract."""

from collections.abc import Mapping
from typing import Any

from penstock.control.scaling.autoscale import Autoscale
from penstock.control.scaling.incremental import Incremental
from penstock.control.scaling.qos import Qos
from penstock.control.scaling.scaler import Scaler, ScalingLimits
from penstock.control.scaling.static import Static
from penstock.control.scaling.target_latency import TargetLatency
from penstock.errors import BadScaling

__all__ = ["SCALERS", "scaler"]

SCALERS: Mapping[str, type[Scaler]] = {
    "static": Static,
    "incremental": Incremental,
    "qos": Qos,
    "autoscale": Autoscale,
    "penstock": TargetLatency,
}


def scaler(name: str, limits: ScalingLimits | None = None, **settings: Any) -> Scaler:
    """The policy of this name with these settings.

    >>> scaler("static", units=3).name
    'static'
    """
    if name not in SCALERS:
        raise BadScaling(f"no scaling policy {name!r}; give one of {', '.join(SCALERS)}")
    try:
        return SCALERS[name](limits, **settings)
    except TypeError as wrong:
        raise BadScaling(
            f"settings {settings} of the scaling policy {name!r}: {wrong}; give settings that it has"
        ) from wrong
