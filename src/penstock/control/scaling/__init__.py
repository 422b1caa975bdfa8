"""Scaling: how many units each pool gets, and how long an epoch is; decisions with their reasons."""

from penstock.control.pace import Pace
from penstock.control.scale import Scale
from penstock.control.scaling.autoscale import Autoscale
from penstock.control.scaling.incremental import Incremental
from penstock.control.scaling.load import Edge, Load, OperatorLoad, PoolLoad
from penstock.control.scaling.pacing import Pacing
from penstock.control.scaling.qos import Qos
from penstock.control.scaling.registry import SCALERS, scaler
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.control.scaling.static import Static
from penstock.control.scaling.target_latency import TargetLatency, TargetSettings

__all__ = [
    "SCALERS",
    "Autoscale",
    "Edge",
    "Incremental",
    "Load",
    "OperatorLoad",
    "Pace",
    "Pacing",
    "PoolLoad",
    "Qos",
    "Scale",
    "Scaler",
    "ScalingLimits",
    "Static",
    "TargetLatency",
    "TargetSettings",
    "Wish",
    "scaler",
]
