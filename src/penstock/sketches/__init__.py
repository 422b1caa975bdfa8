"""Small summaries of long streams, with stated error bounds: pure algorithms on numpy arrays."""

from penstock.sketches.count_min import CountMin
from penstock.sketches.counted import Counted
from penstock.sketches.lossy_counting import LossyCounting
from penstock.sketches.mean_cost import MeanCost
from penstock.sketches.runs import Runs
from penstock.sketches.sliding_counting import SlidingCounting
from penstock.sketches.splitmix import splitmix64
from penstock.sketches.value_costs import ValueCosts

__all__ = [
    "CountMin",
    "Counted",
    "LossyCounting",
    "MeanCost",
    "Runs",
    "SlidingCounting",
    "ValueCosts",
    "splitmix64",
]
