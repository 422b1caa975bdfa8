"""Keyed stateful functions: what one channel does with the events of its keys, without I/O and clocks."""

from penstock.keyed.events import Events, Horizon
from penstock.keyed.lookup import find
from penstock.keyed.newest import newest
from penstock.keyed.ordering import Ordered, in_event_order, ordered
from penstock.keyed.processor import NO_TIMER, Block, Outcome, Processor, Visit, VisitFunction
from penstock.keyed.same_keys import normal_keys, same_keys
from penstock.keyed.stepping import stepped
from penstock.keyed.touched import Left, Shapes, Touched
from penstock.keyed.visiting import visited

__all__ = [
    "NO_TIMER",
    "Block",
    "Events",
    "Horizon",
    "Left",
    "Ordered",
    "Outcome",
    "Processor",
    "Shapes",
    "Touched",
    "Visit",
    "VisitFunction",
    "find",
    "in_event_order",
    "newest",
    "normal_keys",
    "ordered",
    "same_keys",
    "stepped",
    "visited",
]
