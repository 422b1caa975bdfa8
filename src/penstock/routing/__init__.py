"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.routing.allotment import allot
from penstock.routing.arrays import Exported, RouteArrays
from penstock.routing.balance import Balance, balance, loads
from penstock.routing.balanced import balanced
from penstock.routing.batch_size import BatchModel, TupleCosts, busy_limit, channel_copies, choose_batch
from penstock.routing.cost_placing import GROUPINGS, Grouping, place_by_cost
from penstock.routing.evened import evened
from penstock.routing.frequencies import Frequencies
from penstock.routing.greedy import Schedule, greedy
from penstock.routing.grid import Copies, Grid, grid_for
from penstock.routing.hash_pair import HashPair, router_name
from penstock.routing.heavy_keys import HeavyKey, heavy_keys
from penstock.routing.join_grid import (
    Copied,
    cell_parts,
    copied_on_grids,
    copied_sides,
    is_exact,
    is_judged,
    join_grid,
    left_delivers,
    row_copies,
    shaped_grid,
)
from penstock.routing.join_spread import JoinSpread
from penstock.routing.k_ordered import DisorderMeter, KOrderedMerge, realised_disorder
from penstock.routing.longest_first import longest_first
from penstock.routing.pane_shares import PaneHistory, split_panes
from penstock.routing.pane_windows import CumulatingPanes, PaneGrid, PaneWindows, SlidingPanes
from penstock.routing.partitionings import PARTITIONINGS, REGISTRY, Partitioning, first_router, next_router
from penstock.routing.rate_panes import PlainPanes, RatePanes, plan_panes
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.resources import CCC, CCL, LCL, LLL, LQL, Growth, Resources
from penstock.routing.ring import Ring
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes, Moves, Router, moves, relative_migration
from penstock.routing.scan import scan
from penstock.routing.spread import Spread
from penstock.routing.spread_hot_keys import joint_rates, spread_hot_keys
from penstock.routing.stepwise import cost_shares, step_toward
from penstock.routing.sub_keys import SubKeys, split_hot_keys
from penstock.routing.threshold import Goal, counter_threshold, table_threshold
from penstock.routing.window_channels import Batches, WindowChannels
from penstock.routing.window_ids import count_marks, time_marks
from penstock.routing.window_shape import WindowShape
from penstock.routing.window_split import copies, deliveries

__all__ = [
    "CCC",
    "CCL",
    "GROUPINGS",
    "LCL",
    "LLL",
    "LQL",
    "PARTITIONINGS",
    "REGISTRY",
    "Balance",
    "BatchModel",
    "Batches",
    "Channels",
    "Copied",
    "Copies",
    "Costs",
    "CumulatingPanes",
    "DisorderMeter",
    "Exported",
    "Frequencies",
    "Goal",
    "Grid",
    "Grouping",
    "Growth",
    "HashPair",
    "Hashes",
    "HeavyKey",
    "JoinSpread",
    "KOrderedMerge",
    "Moves",
    "PaneGrid",
    "PaneHistory",
    "PaneWindows",
    "Partitioning",
    "PlainPanes",
    "RatePanes",
    "Resources",
    "Ring",
    "RoundRobin",
    "RouteArrays",
    "Router",
    "Schedule",
    "SlidingPanes",
    "Spread",
    "SubKeys",
    "TupleCosts",
    "WindowChannels",
    "WindowShape",
    "allot",
    "balance",
    "balanced",
    "busy_limit",
    "cell_parts",
    "channel_copies",
    "choose_batch",
    "copied_on_grids",
    "copied_sides",
    "copies",
    "cost_shares",
    "count_marks",
    "counter_threshold",
    "deliveries",
    "evened",
    "first_router",
    "greedy",
    "grid_for",
    "heavy_keys",
    "is_exact",
    "is_judged",
    "join_grid",
    "joint_rates",
    "left_delivers",
    "loads",
    "longest_first",
    "moves",
    "next_router",
    "place_by_cost",
    "plan_panes",
    "readjust",
    "realised_disorder",
    "redistribute",
    "relative_migration",
    "router_name",
    "row_copies",
    "scan",
    "shaped_grid",
    "split_hot_keys",
    "split_panes",
    "spread_hot_keys",
    "step_toward",
    "table_threshold",
    "time_marks",
]
