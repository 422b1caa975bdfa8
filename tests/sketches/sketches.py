"""Every sketch that the contract suite checks, as functions that make an empty one of precision EPSILON."""

from penstock.sketches import CountMin, LossyCounting, SlidingCounting

EPSILON = 0.005

# Those that name their items.
COUNTERS = {
    "lossy counting": lambda: LossyCounting(EPSILON),
}
MERGEABLE = COUNTERS | {"count-min": lambda: CountMin(EPSILON, 0.001)}
SKETCHES = MERGEABLE | {"sliding counting": lambda: SlidingCounting(EPSILON, window=10**6)}
