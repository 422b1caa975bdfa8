"""Reasons for statements of [000] §6.2 that do not come out, each tested by an experiment of its own.

A reason names a cause. Here the cause is taken away, and the statement should come out if the reason is true:
forecasts are replaced by the rates that come, and gates hold two or three streams instead of many.
"""

from collections.abc import Sequence

import numpy as np

from penstock.control.admission import STRATEGIES, Outlook, Packing
from penstock_lab.reports import say
from penstock_lab.reproduce.admission import STREAMS, compare
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import row
from penstock_lab.simulate import GateCosts
from penstock_lab.workloads import Rates, rates_of

__all__ = ["REASONS", "truth"]

WORKLOADS = ("psfcw", "ptfcw", "sfvar", "tfvar", "bursty")
LATER = 3  # periods: the horizon of DRF
SMALL = 450.0  # rows/s of a gate that holds two or three streams
MOVES = "redirections a period"


def truth(rates: Rates) -> Sequence[Outlook]:
    """Expectations that are the rates to come, with metadata that know them too."""
    rows, found = rates.rows, []
    last = len(rows) - 1
    for period in range(len(rows)):
        coming, later = rows[min(period + 1, last)], rows[min(period + LATER, last)]
        path = np.stack([coming, later], axis=1)
        zero = np.zeros(rows.shape[1])
        found.append(Outlook(rows[period], coming, later, later, np.array([1, LATER]), path, zero))
    return found


def run(*, quick: bool, seed: int) -> Outcome:
    """Redirections with the cause and without it."""
    seeds, periods = (1, 120) if quick else (2, 240)
    packings = {name: Packing(each) for name, each in STRATEGIES.items() if name != "PAR"}
    usual: dict[str, list[float]] = {name: [] for name in packings}
    known: dict[str, list[float]] = {name: [] for name in packings}
    small: dict[str, list[float]] = {name: [] for name in ("ARI", "ARD")}
    for workload in WORKLOADS:
        say(f"reasons: {workload}")
        made = [
            rates_of(workload, np.random.default_rng([seed, number]), periods, streams=STREAMS)
            for number in range(seeds)
        ]
        for name, each in compare(made, packings).items():
            usual[name].append(each[MOVES][0])
        for name, each in compare(made, packings, foresee=truth).items():
            known[name].append(each[MOVES][0])
        both = {name: packings[name] for name in small}
        for name, each in compare(made, both, costs=GateCosts(capacity=SMALL), foresee=truth).items():
            small[name].append(each[MOVES][0])
    steps, trend, burst = WORKLOADS.index("sfvar"), WORKLOADS.index("tfvar"), WORKLOADS.index("bursty")
    ratios = {
        "ARI over ARD": (_mean(usual, "ARI", "ARD"), _mean(small, "ARI", "ARD"), "gates of 2 or 3 streams"),
        "DRF over ARD": (_mean(usual, "DRF", "ARD"), _mean(known, "DRF", "ARD"), "true forecasts"),
        "DRF-M over ARD": (_mean(usual, "DRF-M", "ARD"), _mean(known, "DRF-M", "ARD"), "true metadata"),
        "DRF on tfvar over sfvar": (
            usual["DRF"][trend] / usual["DRF"][steps],
            known["DRF"][trend] / known["DRF"][steps],
            "true forecasts",
        ),
        "DRF-M over DRF, bursty": (
            usual["DRF-M"][burst] / usual["DRF"][burst],
            known["DRF-M"][burst] / usual["DRF"][burst],
            "metadata that know the next switch",
        ),
    }
    rows = [
        row("10", "reason", setting, name, round(value, 3), None, "")
        for name, (plain, without, cause) in ratios.items()
        for setting, value in (("as it is", plain), (cause, without))
    ]
    return Outcome(tuple(rows), ())


def _mean(found: dict[str, list[float]], above: str, below: str) -> float:
    return float(np.mean(found[above]) / np.mean(found[below]))


REASONS = Experiment("000/reasons", "admission strategies: reasons for differences, tested", run)
