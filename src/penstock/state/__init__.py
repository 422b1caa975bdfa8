"""State of channels: immutable segments, and tables over them that load, append, compact, move and show.

Three kinds of table serve all operators: `TimeTable` (rows in time order), `VersionTable` (the newest
version of each key) and `PaneTable` (partials by pane). Nothing here depends on Spark, queries or operators.
"""

from penstock.state.keys import KEY, Ordered, find, key_columns, newest, normal_keys, number_keys, ordered
from penstock.state.moving import Channels, MovingStage, Relocated
from penstock.state.pane_table import PANE, Combiner, OpenPaneTable, PaneTable, panes_between
from penstock.state.placing import Placing
from penstock.state.segments import ChannelStore, Segment, read, store
from penstock.state.storage import Location
from penstock.state.table import HASH, TIME, Table
from penstock.state.time_table import OpenTimeTable, TimeTable
from penstock.state.version_table import KNOWN, NO_TIMER, TIMER, OpenVersionTable, Versions, VersionTable
from penstock.state.view import (
    TABLE_KINDS,
    ChannelChange,
    ChannelSummary,
    StageChange,
    StageNote,
    StageView,
    compare_stages,
    table_from,
)
from penstock.state.views import View

__all__ = [
    "HASH",
    "KEY",
    "KNOWN",
    "NO_TIMER",
    "PANE",
    "TABLE_KINDS",
    "TIME",
    "TIMER",
    "ChannelChange",
    "ChannelStore",
    "ChannelSummary",
    "Channels",
    "Combiner",
    "Location",
    "MovingStage",
    "OpenPaneTable",
    "OpenTimeTable",
    "OpenVersionTable",
    "Ordered",
    "PaneTable",
    "Placing",
    "Relocated",
    "Segment",
    "StageChange",
    "StageNote",
    "StageView",
    "Table",
    "TimeTable",
    "VersionTable",
    "Versions",
    "View",
    "compare_stages",
    "find",
    "key_columns",
    "newest",
    "normal_keys",
    "number_keys",
    "ordered",
    "panes_between",
    "read",
    "store",
    "table_from",
]
