"""Runs queries on Spark: epochs, channels, state, sinks."""

from penstock.control.limits import Limits
from penstock.control.observation import ChannelLoad, Observation, StageChannels, TrackedKey
from penstock.control.rescale import Rescale
from penstock.control.ruling import Ruling
from penstock.routing import Resources
from penstock.runtime.engine import SparkEngine
from penstock.runtime.observation import Decision
from penstock.runtime.progress import EpochProgress, ResultLatency, StageProgress
from penstock.runtime.results import ResultBatch
from penstock.runtime.run import Rescaled, Run

__all__ = [
    "ChannelLoad",
    "Decision",
    "EpochProgress",
    "Limits",
    "Observation",
    "Rescale",
    "Rescaled",
    "Resources",
    "ResultBatch",
    "ResultLatency",
    "Ruling",
    "Run",
    "SparkEngine",
    "StageChannels",
    "StageProgress",
    "TrackedKey",
]
