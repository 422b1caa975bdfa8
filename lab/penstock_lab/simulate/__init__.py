"""A cluster on paper: stages on processors under load, with the routers of the live system.

Deterministic: time and randomness are arguments. Costs come from `calibrate`, which measures the kernels
that channels run, or from published figures.
"""

from penstock_lab.simulate.calibration import Calibration, Work, calibrate
from penstock_lab.simulate.elastic import Arrivals, ElasticCosts, ElasticCourse, Operator, simulate_elastic
from penstock_lab.simulate.gates import GateCosts, GateCourse, simulate_gates
from penstock_lab.simulate.groupings import DealtInTurn, Grouping, MergedCosts, PerUnitSketches
from penstock_lab.simulate.handover import Handover
from penstock_lab.simulate.plan import Plan, processors
from penstock_lab.simulate.pool import PoolCosts, PoolCourse, least_node_seconds, simulate_pool
from penstock_lab.simulate.run import Clock, Observed, Tally, simulate
from penstock_lab.simulate.saturation import saturate, sweep
from penstock_lab.simulate.skewed_stage import SkewedStage
from penstock_lab.simulate.splits import Dealt, Gridded, Keyed, Split, key_hashes
from penstock_lab.simulate.stage import SOURCE, Links, Stage, Window
from penstock_lab.simulate.topologies import TOPOLOGIES, Topology

__all__ = [
    "SOURCE",
    "TOPOLOGIES",
    "Arrivals",
    "Calibration",
    "Clock",
    "Dealt",
    "DealtInTurn",
    "ElasticCosts",
    "ElasticCourse",
    "GateCosts",
    "GateCourse",
    "Gridded",
    "Grouping",
    "Handover",
    "Keyed",
    "Links",
    "MergedCosts",
    "Observed",
    "Operator",
    "PerUnitSketches",
    "Plan",
    "PoolCosts",
    "PoolCourse",
    "SkewedStage",
    "Split",
    "Stage",
    "Tally",
    "Topology",
    "Window",
    "Work",
    "calibrate",
    "key_hashes",
    "least_node_seconds",
    "processors",
    "saturate",
    "simulate",
    "simulate_elastic",
    "simulate_gates",
    "simulate_pool",
    "sweep",
]
