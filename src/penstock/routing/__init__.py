"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.routing.arrays import Exported, RouteArrays
from penstock.routing.grid import Copies, Grid, grid_for
from penstock.routing.hash_pair import HashPair
from penstock.routing.pane_shares import PaneHistory, split_panes
from penstock.routing.rate_panes import PlainPanes, RatePanes, plan_panes
from penstock.routing.ring import Ring
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes, Moves, Router, moves
from penstock.routing.sub_keys import SubKeys, split_hot_keys
from penstock.routing.uniform import UniformHash

__all__ = [
    "Channels",
    "Copies",
    "Costs",
    "Exported",
    "Grid",
    "HashPair",
    "Hashes",
    "Moves",
    "PaneHistory",
    "PlainPanes",
    "RatePanes",
    "Ring",
    "RoundRobin",
    "RouteArrays",
    "Router",
    "SubKeys",
    "UniformHash",
    "grid_for",
    "moves",
    "plan_panes",
    "split_hot_keys",
    "split_panes",
]
