"""The skew policy: what each part of it measures, predicts and plans, one file each."""

from penstock.control.skew.policy import SkewPolicy, SkewSettings

__all__ = ["SkewPolicy", "SkewSettings"]
