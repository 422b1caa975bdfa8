"""Windowed aggregation: the operator, its verbs, and what its channels do."""

from penstock.operators.windows.node import Aggregation
from penstock.operators.windows.shapes import Cumulation, Window, WindowValue, cumulate, window, window_of
from penstock.operators.windows.verbs import Windowed, WindowVerbs

__all__ = [
    "Aggregation",
    "Cumulation",
    "Window",
    "WindowValue",
    "WindowVerbs",
    "Windowed",
    "cumulate",
    "window",
    "window_of",
]
