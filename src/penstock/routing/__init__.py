"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.routing.arrays import Exported, RouteArrays
from penstock.routing.balance import Balance, balance, loads
from penstock.routing.balanced import balanced
from penstock.routing.frequencies import Frequencies
from penstock.routing.grid import Copies, Grid, grid_for
from penstock.routing.hash_pair import HashPair
from penstock.routing.migration import relative_migration
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.resources import CCL, LCL, LLL, LQL, Growth, Resources
from penstock.routing.ring import Ring
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes, Moves, Router, moves
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal, counter_threshold, table_threshold
from penstock.routing.uniform import UniformHash

__all__ = [
    "CCL",
    "LCL",
    "LLL",
    "LQL",
    "Balance",
    "Channels",
    "Copies",
    "Costs",
    "Exported",
    "Frequencies",
    "Goal",
    "Grid",
    "Growth",
    "HashPair",
    "Hashes",
    "Moves",
    "Resources",
    "Ring",
    "RoundRobin",
    "RouteArrays",
    "Router",
    "UniformHash",
    "balance",
    "balanced",
    "counter_threshold",
    "grid_for",
    "loads",
    "moves",
    "readjust",
    "redistribute",
    "relative_migration",
    "scan",
    "table_threshold",
]
