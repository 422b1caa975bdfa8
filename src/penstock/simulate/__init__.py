"""A cluster on paper: stages on processors under load, with the routers of the live system.

Deterministic: time and randomness are arguments. Costs come from `calibrate`, which measures the kernels
that channels run, or from published figures.
"""

from penstock.simulate.calibration import Calibration, Work, calibrate
from penstock.simulate.handover import Handover
from penstock.simulate.plan import Plan, processors
from penstock.simulate.run import Clock, Observed, Tally, simulate
from penstock.simulate.saturation import saturate, sweep
from penstock.simulate.splits import Dealt, Gridded, Keyed, Split, key_hashes
from penstock.simulate.stage import SOURCE, Links, Stage, Window

__all__ = [
    "SOURCE",
    "Calibration",
    "Clock",
    "Dealt",
    "Gridded",
    "Handover",
    "Keyed",
    "Links",
    "Observed",
    "Plan",
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
    "sweep",
]
