"""Synthetic streams that benchmarks and experiments share: skewed keys and bursty rates."""

from penstock.workloads.bursts import bursty_rate
from penstock.workloads.skewed_joins import skewed_join_work
from penstock.workloads.zipf import draw, zipf_shares

__all__ = ["bursty_rate", "draw", "skewed_join_work", "zipf_shares"]
