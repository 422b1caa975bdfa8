"""The published experiments, run anew with Penstock's own algorithms, their figures beside ours."""

from penstock.experiments.catalogue import EXPERIMENTS
from penstock.experiments.experiment import Experiment, Outcome, run_experiments

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "run_experiments"]
