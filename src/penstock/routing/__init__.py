"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.routing.arrays import Exported, RouteArrays
from penstock.routing.batch_size import BatchModel, TupleCosts, choose_batch
from penstock.routing.batch_windows import batch_shape, pane_shape
from penstock.routing.greedy import Schedule, greedy
from penstock.routing.grid import Copies, Grid, grid_for
from penstock.routing.hash_pair import HashPair
from penstock.routing.longest_first import longest_first
from penstock.routing.pane_shares import PaneHistory, split_panes
from penstock.routing.rate_panes import PlainPanes, RatePanes, plan_panes
from penstock.routing.ring import Ring
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes, Moves, Router, moves
from penstock.routing.shuffle_messages import ShuffleSettings
from penstock.routing.shuffle_operator import OperatorState
from penstock.routing.shuffle_scheduler import SchedulerState
from penstock.routing.sub_keys import SubKeys, split_hot_keys
from penstock.routing.uniform import UniformHash
from penstock.routing.window_ids import count_marks, time_marks
from penstock.routing.window_ring import WindowRing
from penstock.routing.window_split import copies, deliveries

__all__ = [
    "BatchModel",
    "Channels",
    "Copies",
    "Costs",
    "Exported",
    "Grid",
    "HashPair",
    "Hashes",
    "Moves",
    "OperatorState",
    "PaneHistory",
    "PlainPanes",
    "RatePanes",
    "Ring",
    "RoundRobin",
    "RouteArrays",
    "Router",
    "Schedule",
    "SchedulerState",
    "ShuffleSettings",
    "SubKeys",
    "TupleCosts",
    "UniformHash",
    "WindowRing",
    "batch_shape",
    "choose_batch",
    "copies",
    "count_marks",
    "deliveries",
    "greedy",
    "grid_for",
    "longest_first",
    "moves",
    "pane_shape",
    "plan_panes",
    "split_hot_keys",
    "split_panes",
    "time_marks",
]
