"""Runs queries on Spark: epochs, channels, state, sinks."""

from penstock.runtime.engine import SparkEngine
from penstock.runtime.progress import EpochProgress, StageProgress
from penstock.runtime.run import Run

__all__ = ["EpochProgress", "Run", "SparkEngine", "StageProgress"]
