"""Windows cut into panes: geometry, mergeable partials and the closing of sliding windows.

Pure algorithms on numpy and Arrow: no I/O, no Spark, no clock.
"""

from penstock.panes.geometry import WindowShape
from penstock.panes.kinds import Boundary, Count, Fold, Kind, Loaded, Spread
from penstock.panes.merges import Lanes, Merge
from penstock.panes.opaque import Custom, FrequentItems, Hll, Kll, Sketch
from penstock.panes.sliding import Closed, Partials, close_windows, group

__all__ = [
    "Boundary",
    "Closed",
    "Count",
    "Custom",
    "Fold",
    "FrequentItems",
    "Hll",
    "Kind",
    "Kll",
    "Lanes",
    "Loaded",
    "Merge",
    "Partials",
    "Sketch",
    "Spread",
    "WindowShape",
    "close_windows",
    "group",
]
