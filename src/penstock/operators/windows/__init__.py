"""Windowed aggregation: the operator, its verbs, and what its channels do."""

from penstock.operators.windows.node import WINDOW_END, WINDOW_START, Aggregation
from penstock.operators.windows.shapes import Cumulation, Window, WindowValue, cumulate, window, window_of
from penstock.operators.windows.verbs import Windowed, WindowVerbs

__all__ = [
    "WINDOW_END",
    "WINDOW_START",
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
