"""Every experiment that `penstock reproduce` knows, in the order in which `all` runs them."""

from penstock.experiments.experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = ()
