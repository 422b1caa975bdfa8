"""Algorithms that only experiments use: baselines and schemes that no run of Penstock reaches."""

from penstock_lab.algorithms.printed_readj import readj
from penstock_lab.algorithms.uniform import UniformHash
from penstock_lab.algorithms.window_ring import WindowParts, WindowRing

__all__ = ["UniformHash", "WindowParts", "WindowRing", "readj"]
