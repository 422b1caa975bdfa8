"""StreamCloud anew on a cluster on paper: operators, strategies, costs and cores (002, section IV)."""

from penstock.experiments.experiment import Experiment
from penstock.experiments.streamcloud_cores import CORES
from penstock.experiments.streamcloud_fixed_window import FIXED_WINDOW
from penstock.experiments.streamcloud_operators import OPERATORS
from penstock.experiments.streamcloud_strategies import COSTS, STRATEGIES

__all__ = ["STREAMCLOUD"]

STREAMCLOUD: tuple[Experiment, ...] = (*OPERATORS, FIXED_WINDOW, STRATEGIES, COSTS, CORES)
