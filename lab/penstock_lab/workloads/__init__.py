"""Streams that benchmarks, experiments and examples share: skewed keys, rates, calls, and those of files."""

from penstock_lab.workloads.bursts import bursty_rate
from penstock_lab.workloads.calls import CallRecords
from penstock_lab.workloads.load_curves import LOAD_CURVES, arrival_times
from penstock_lab.workloads.rate_series import nab_series, nasa_series, played
from penstock_lab.workloads.rates import WORKLOADS as RATE_WORKLOADS
from penstock_lab.workloads.rates import Declared, Rates, rates_of
from penstock_lab.workloads.series import read_series, streams_of
from penstock_lab.workloads.skewed_joins import skewed_join_work
from penstock_lab.workloads.traces import Positions, read_positions
from penstock_lab.workloads.zipf import draw, zipf_shares

__all__ = [
    "LOAD_CURVES",
    "RATE_WORKLOADS",
    "CallRecords",
    "Declared",
    "Positions",
    "Rates",
    "arrival_times",
    "bursty_rate",
    "draw",
    "nab_series",
    "nasa_series",
    "played",
    "rates_of",
    "read_positions",
    "read_series",
    "skewed_join_work",
    "streams_of",
    "zipf_shares",
]
