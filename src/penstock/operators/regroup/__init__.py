"""Groups of results by the windows that they have already."""

from penstock.operators.regroup.node import Rebound
from penstock.operators.regroup.verbs import ByWindow, ByWindowVerbs

__all__ = ["ByWindow", "ByWindowVerbs", "Rebound"]
