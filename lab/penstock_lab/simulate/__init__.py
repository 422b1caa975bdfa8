"""A cluster on paper: stages on processors under load, with the routers of the live system.

Deterministic: time and randomness are arguments. Costs come from `calibrate`, which measures the kernels
that channels run, or from published figures.
"""

from penstock_lab.simulate.calibration import Calibration, Work, calibrate
from penstock_lab.simulate.gates import GateCosts, GateCourse, simulate_gates
from penstock_lab.simulate.handover import Handover
from penstock_lab.simulate.plan import Plan, processors
from penstock_lab.simulate.run import Clock, Observed, Tally, simulate
from penstock_lab.simulate.saturation import saturate, sweep
from penstock_lab.simulate.skewed_stage import SkewedStage
from penstock_lab.simulate.splits import Dealt, Gridded, Keyed, Split, key_hashes
from penstock_lab.simulate.stage import SOURCE, Links, Stage, Window

__all__ = [
    "SOURCE",
    "Calibration",
    "Clock",
    "Dealt",
    "GateCosts",
    "GateCourse",
    "Gridded",
    "Handover",
    "Keyed",
    "Links",
    "Observed",
    "Plan",
    "SkewedStage",
    "Split",
    "Stage",
    "Tally",
    "Window",
    "Work",
    "calibrate",
    "key_hashes",
    "processors",
    "saturate",
    "simulate",
    "simulate_gates",
    "sweep",
]
