"""Functions over the rows of whole windows: the operator, its verb, and what its channels do."""

from penstock.operators.whole_windows.function import WindowInfo, window_function
from penstock.operators.whole_windows.node import WholeWindows, WindowPartitioning
from penstock.operators.whole_windows.verbs import applied

__all__ = ["WholeWindows", "WindowInfo", "WindowPartitioning", "applied", "window_function"]
