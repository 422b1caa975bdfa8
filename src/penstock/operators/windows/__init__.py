"""Windowed aggregation: the operator, its verbs, and what its channels do."""

from penstock.operators.windows.node import WINDOW_END, WINDOW_START, Aggregation, Window
from penstock.operators.windows.verbs import GroupedWindowVerbs, Windowed, WindowVerbs, window, window_of

__all__ = [
    "WINDOW_END",
    "WINDOW_START",
    "Aggregation",
    "GroupedWindowVerbs",
    "Window",
    "WindowVerbs",
    "Windowed",
    "window",
    "window_of",
]
