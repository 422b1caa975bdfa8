"""Keyed stateful functions: the operator, its verb, and what its channels do."""

from penstock.operators.process.node import Order, Process
from penstock.operators.process.processor import NO_TIMER, Block, Outcome, Processor, Visit, VisitFunction
from penstock.operators.process.verbs import ProcessVerbs

__all__ = [
    "NO_TIMER",
    "Block",
    "Order",
    "Outcome",
    "Process",
    "ProcessVerbs",
    "Processor",
    "Visit",
    "VisitFunction",
]
