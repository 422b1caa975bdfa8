"""Aggregation without a window: the operator, its verb, and what its channels do."""

from penstock.operators.totals.node import Totals
from penstock.operators.totals.verbs import TotalsVerbs

__all__ = ["Totals", "TotalsVerbs"]
