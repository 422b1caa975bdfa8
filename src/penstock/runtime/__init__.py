"""Runs queries on Spark: epochs, channels, state, sinks."""

from penstock.runtime.engine import SparkEngine
from penstock.runtime.observation import ChannelLoad, Decision, Observation, StageChannels, TrackedKey
from penstock.runtime.progress import EpochProgress, StageProgress
from penstock.runtime.rescale.policies import rebalance_when
from penstock.runtime.rescale.requests import Rescale
from penstock.runtime.run import Rescaled, Run

__all__ = [
    "ChannelLoad",
    "Decision",
    "EpochProgress",
    "Observation",
    "Rescale",
    "Rescaled",
    "Run",
    "SparkEngine",
    "StageChannels",
    "StageProgress",
    "TrackedKey",
    "rebalance_when",
]
