"""Operators: the nodes of a query graph, and the verbs with which a user makes them.

Each answers the questions of `Operator`; nothing outside of this package asks which one it is.
"""

from penstock.operators.aggregated import WINDOW_END, WINDOW_START
from penstock.operators.channelled_map import ChannelledMap, MapVerbs
from penstock.operators.counts import CountWindow, CountWindowed, CountWindows
from penstock.operators.deduplicate import Deduplicate, DeduplicateVerbs
from penstock.operators.joins import How, Join, JoinKey, JoinVerbs, common_type, join_of
from penstock.operators.names import Named, group_keys, shown_keys
from penstock.operators.operator import (
    Derivable,
    Duration,
    Filter,
    GroupedVerbs,
    InputRelation,
    Inputs,
    Operator,
    Step,
    lowered,
)
from penstock.operators.process import Process, ProcessVerbs
from penstock.operators.regroup import ByWindow, ByWindowVerbs, Rebound
from penstock.operators.sessions import Sessioned, Sessions, SessionVerbs
from penstock.operators.steps import Branch, Explode, Map, Select, StepVerbs, Union, Where
from penstock.operators.totals import Totals, TotalsVerbs
from penstock.operators.whole_sessions import WholeSessions
from penstock.operators.whole_windows import WholeWindows, WindowInfo
from penstock.operators.windows import (
    Aggregation,
    Window,
    Windowed,
    WindowVerbs,
)

__all__ = [
    "WINDOW_END",
    "WINDOW_START",
    "Aggregation",
    "Branch",
    "ByWindow",
    "ByWindowVerbs",
    "ChannelledMap",
    "CountWindow",
    "CountWindowed",
    "CountWindows",
    "Deduplicate",
    "DeduplicateVerbs",
    "Derivable",
    "Duration",
    "Explode",
    "Filter",
    "GroupedVerbs",
    "How",
    "InputRelation",
    "Inputs",
    "Join",
    "JoinKey",
    "JoinVerbs",
    "Map",
    "MapVerbs",
    "Named",
    "Operator",
    "Process",
    "ProcessVerbs",
    "Rebound",
    "Select",
    "SessionVerbs",
    "Sessioned",
    "Sessions",
    "Step",
    "StepVerbs",
    "Totals",
    "TotalsVerbs",
    "Union",
    "Where",
    "WholeSessions",
    "WholeWindows",
    "Window",
    "WindowInfo",
    "WindowVerbs",
    "Windowed",
    "common_type",
    "group_keys",
    "join_of",
    "lowered",
    "shown_keys",
]
