"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.routing.arrays import Exported, RouteArrays
from penstock.routing.grid import Copies, Grid, grid_for
from penstock.routing.hash_pair import HashPair
from penstock.routing.ring import Ring
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes, Moves, Router, moves
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
    "Ring",
    "RoundRobin",
    "RouteArrays",
    "Router",
    "UniformHash",
    "grid_for",
    "moves",
]
