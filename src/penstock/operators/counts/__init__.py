"""Windows of counts: the operator, its verb, and what its channels do."""

from penstock.operators.counts.node import CountWindow, CountWindows
from penstock.operators.counts.verbs import CountWindowed, counted_of

__all__ = ["CountWindow", "CountWindowed", "CountWindows", "counted_of"]
