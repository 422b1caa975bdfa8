"""StreamCloud on a simulated cluster: operators, strategies, costs and cores ([002] §IV)."""

from penstock_lab.reproduce.experiment import Experiment
from penstock_lab.reproduce.streamcloud_cores import CORES
from penstock_lab.reproduce.streamcloud_fixed_window import FIXED_WINDOW
from penstock_lab.reproduce.streamcloud_operators import OPERATORS
from penstock_lab.reproduce.streamcloud_strategies import COSTS, STRATEGIES

__all__ = ["STREAMCLOUD"]

STREAMCLOUD: tuple[Experiment, ...] = (*OPERATORS, FIXED_WINDOW, STRATEGIES, COSTS, CORES)
