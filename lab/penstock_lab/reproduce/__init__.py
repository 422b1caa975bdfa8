"""The published experiments, repeated with Penstock's own algorithms, their figures next to ours."""

from penstock_lab.reproduce.catalogue import EXPERIMENTS
from penstock_lab.reproduce.experiment import Experiment, Outcome, run_experiments

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "run_experiments"]
