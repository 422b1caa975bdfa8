"""Synthetic streams that benchmarks and experiments share: skewed keys and bursty rates."""

from penstock.workloads.bursts import bursty_rate
from penstock.workloads.zipf import draw, zipf_shares

__all__ = ["bursty_rate", "draw", "zipf_shares"]
