"""Every experiment that `penstock reproduce` knows, in the order in which `all` runs them."""

from penstock.experiments.experiment import Experiment
from penstock.experiments.shuffle_grouping import SHUFFLE_GROUPING
from penstock.experiments.window_split import WINDOW_SPLIT

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    SHUFFLE_GROUPING,
    WINDOW_SPLIT,
)
