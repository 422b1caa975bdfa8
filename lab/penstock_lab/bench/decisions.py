"""`penstock bench admission-decisions`: what a period of admission costs, and a simulated day of it.

Streams are placed at random on gates that are 98 % full in the mean, so that a third of the gates has to be
relieved at once: far more than in any period of a run. A day runs the same policy over simulated gates.
"""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import (
    STRATEGIES,
    Admission,
    Expecting,
    ForecastIntervals,
    Horizon,
    Packing,
    Planner,
    Redirect,
    Seen,
)
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.simulate import GateCosts, simulate_gates
from penstock_lab.workloads import rates_of

__all__ = ["decisions"]

SIZES = ((10_000, 100), (100_000, 1_000), (300_000, 3_000), (1_000_000, 10_000))
CAPACITY = 1000.0
FULL = 0.98
OBSERVED = 3  # periods before the one that is measured
LIMIT = 1.0
DAY = 288  # periods of five minutes
MEASURED = 12  # of them that are run
SOURCE = "promised for one core"


def decisions(*, most: int = 1_000_000, seed: int = 7, quick: bool = False) -> Report:
    """CPU seconds of one period for every size up to `most` streams (`quick`: 10,000 streams)."""
    most = min(most, SIZES[0][0]) if quick else most
    sizes = [each for each in SIZES if each[0] <= most]
    rows: list[dict[str, Value]] = []
    whole: dict[int, float] = {}
    for streams, gates in sizes:
        for name, planner in _planners().items():
            observe, decide, moves = period(planner, streams, gates, seed)
            say(f"{streams:,} streams, {gates:,} gates, {name}: {observe:.2f} and {decide:.2f} s")
            if name == "penstock":
                whole[streams] = observe + decide
            rows.append(
                {
                    "case": f"{streams:,} streams, {gates:,} gates",
                    "strategy": name,
                    "observe_cpu_s": round(observe, 3),
                    "decide_cpu_s": round(decide, 3),
                    "redirections": moves,
                }
            )
    streams, gates = sizes[min(1, len(sizes) - 1)]
    each, moved = day(streams, seed)
    rows.append(
        {
            "case": f"a day of {DAY} periods, {streams:,} streams, {gates:,} gates",
            "strategy": "penstock",
            "cpu_s_a_period": round(each, 3),
            "cpu_minutes": round(each * DAY / 60, 1),
            "periods_run": MEASURED,
            "redirections": moved,
        }
    )
    return report_here("admission-decisions", seed, rows, _checks(whole))


def _checks(whole: dict[int, float]) -> list[Check]:
    checks = []
    if 100_000 in whole:
        checks.append(
            Check(
                "a period of 100,000 streams on 1,000 gates, CPU s",
                round(whole[100_000], 3),
                SOURCE,
                ceiling=LIMIT,
            )
        )
    if 1_000_000 in whole:
        growth = whole[1_000_000] / whole[100_000]
        checks.append(
            Check("ten times the streams and gates: times the CPU", round(growth, 2), SOURCE, ceiling=15.0)
        )
    return checks


def _planners() -> dict[str, Planner]:
    return {**{name: Packing(STRATEGIES[name]) for name in ("ARD", "DRF-M")}, "penstock": ForecastIntervals()}


def period(planner: Planner, streams: int, gates: int, seed: int) -> tuple[float, float, int]:
    """CPU seconds to observe a period and to decide on it, and the redirections."""
    rng = np.random.default_rng(seed)
    made = rates_of("sfvar", rng, OBSERVED + 1, streams=streams)
    scale = FULL * gates * CAPACITY / made.rows[-1].sum()
    declared = {
        name: each * scale if name.endswith("_rate") else each for name, each in made.declared.items()
    }
    names = tuple(f"s{number:07d}" for number in range(streams))
    places = [f"g{number:05d}" for number in range(gates)]
    home = rng.integers(0, gates, streams)
    capacity, calm = np.full(gates, CAPACITY), np.zeros(gates)
    control = Admission(planner, Expecting(), capacity=CAPACITY).controller()
    observe = 0.0
    for at, rate in enumerate(made.rows):
        seen = Seen(
            float(at), names, places, home, rate * scale, capacity, calm, np.ones(gates, np.bool_), declared
        )
        start = time.process_time()
        control.observe(seen)
        observe = time.process_time() - start
    start = time.process_time()
    found = control.decide(float(OBSERVED))
    decide = time.process_time() - start
    return observe, decide, sum(isinstance(each.decision, Redirect) for each in found)


def day(streams: int, seed: int) -> tuple[float, int]:
    """CPU seconds of a simulated period of five minutes, after the first one, and the redirections of all."""
    seconds = 86_400 / DAY
    made = rates_of("sfvar", np.random.default_rng(seed), MEASURED + 1, streams=streams)
    gates = next(count for size, count in SIZES if size == streams)
    scale = FULL * gates * CAPACITY / made.rows.sum(axis=1).max()
    declared = {
        name: each * scale if name.endswith("_rate") else each * (seconds / 10) if name == "period" else each
        for name, each in made.declared.items()
    }
    costs = GateCosts(capacity=CAPACITY, period=seconds, failure=1e-4)
    policy = Admission(
        ForecastIntervals(period=seconds), Expecting(Horizon(seconds=seconds)), capacity=CAPACITY
    )
    starts: list[float] = []

    def rows() -> Iterator[NDArray[np.float64]]:
        for each in made.rows:
            starts.append(time.process_time())
            yield each * scale

    course = simulate_gates(policy, rows(), costs, np.random.default_rng(seed), declared=declared)
    each = (time.process_time() - starts[1]) / MEASURED
    return each, int(course.redirections.sum())
