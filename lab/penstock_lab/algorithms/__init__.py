"""Algorithms that only experiments use: baselines and schemes that no run of Penstock reaches."""

from penstock_lab.algorithms.ds2 import Ds2
from penstock_lab.algorithms.flink_autoscaler import FlinkAutoscaler
from penstock_lab.algorithms.learning import Learning
from penstock_lab.algorithms.printed_readj import readj
from penstock_lab.algorithms.uniform import UniformHash
from penstock_lab.algorithms.window_ring import WindowParts, WindowRing

__all__ = ["Ds2", "FlinkAutoscaler", "Learning", "UniformHash", "WindowParts", "WindowRing", "readj"]
