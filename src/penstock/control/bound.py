"""The latency that a run keeps if it was given no bound: one number for pacing, scaling and batches."""

__all__ = ["DEFAULT_BOUND"]

DEFAULT_BOUND = 1.5
"""In seconds: what `penstock bench latency` asks of runs without a bound.

The cost of an epoch is nearly all fixed, so epochs that are half as frequent cost half; whoever can wait
longer says so with a bound.
"""
