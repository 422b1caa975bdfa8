"""The published experiments, repeated with Penstock's own algorithms, their figures next to ours."""

from penstock_lab.reproduce.catalogue import EXPERIMENTS
from penstock_lab.reproduce.experiment import Data, Experiment, Outcome, run_experiments

__all__ = ["EXPERIMENTS", "Data", "Experiment", "Outcome", "run_experiments"]
