"""Scaling policies on rates that nobody tuned them to: bound kept, node hours and changes.

Series of the Numenta Anomaly Benchmark, with five minutes played in 30 seconds, and a day of a NASA web
server, with a minute played in 10; the highest load is about 20 nodes. A node takes 20 s to start and a
change stops the pool for 2 s; policies are asked every 10 s, and results have 10 s.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from penstock.control.scaling import Autoscale, Incremental, Qos, Scaler, ScalingLimits, Static, TargetLatency
from penstock_lab.algorithms import Ds2, FlinkAutoscaler
from penstock_lab.errors import BadSimulation
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.simulate.pool import PoolCosts, least_node_seconds, simulate_pool
from penstock_lab.workloads.rate_series import nab_series, nasa_series, played

__all__ = ["SERIES_POLICIES", "scaling"]

BOUND, NODES, MOST = 10.0, 20.0, 60
COSTS = PoolCosts(tick=10, startup=20, pause=2, units=4)
SAMPLES = 300  # of each series, a day of five minutes
DAY = 20
OURS = "penstock"
FLINK, DS2 = "in the manner of Flink", "in the manner of DS2"

SERIES_POLICIES: Mapping[str, Callable[[], Scaler]] = {
    "static, 20": lambda: Static(_limits(), units=int(NODES)),
    "incremental": lambda: Incremental(_limits()),
    "qos": lambda: Qos(_limits(), bound=BOUND, lead=3),
    "AutoScale+": lambda: Autoscale(_limits(), preset="paper"),
    "autoscale, ours": lambda: Autoscale(_limits()),
    FLINK: lambda: FlinkAutoscaler(ScalingLimits(most=MOST, stabilisation=300.0)),
    DS2: lambda: Ds2(_limits()),
    OURS: lambda: TargetLatency(_limits(), bound=BOUND),
}


def _limits() -> ScalingLimits:
    return ScalingLimits(most=MOST)


def scaling(*, nab: Path | None, nasa: Path | None, seed: int, quick: bool) -> Report:
    """Every policy on every series, and the means over series."""
    loads = _loads(nab, nasa, seed, quick=quick)
    rows: list[dict[str, Value]] = []
    sums: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SERIES_POLICIES}
    for series, work in loads.items():
        say(series)
        least = least_node_seconds(work, BOUND, COSTS.tick)
        for name, made in SERIES_POLICIES.items():
            course = simulate_pool(work, made(), COSTS)
            measured = (100 * course.within(BOUND), course.node_seconds / least, float(course.changes))
            sums[name].append(measured)
            rows.append(_row(name, series, measured, course.node_seconds / 3600))
    means = {name: tuple(np.mean(each, axis=0).tolist()) for name, each in sums.items()}
    rows += [_row(name, "mean of all series", each, None) for name, each in means.items()]
    return report_here("scaling", seed, rows, _checks(means))


def _row(name: str, series: str, measured: tuple[float, ...], hours: float | None) -> dict[str, Value]:
    within, over, changes = measured
    return {
        "engine": name,
        "case": series,
        "within_bound_percent": round(within, 2),
        "node_hours": None if hours is None else round(hours, 2),
        "over_clairvoyant": round(over, 3),
        "changes": round(changes, 1),
    }


def _checks(means: Mapping[str, tuple[float, ...]]) -> list[Check]:
    ours = means[OURS]
    checks = [Check("ours: within the bound, % of the work", round(ours[0], 2), "Penstock's own", floor=99.0)]
    checks += [
        Check(
            f"ours: within the bound, points above {name}",
            round(ours[0] - means[name][0], 2),
            "Penstock's own",
            floor=0.0,
        )
        for name in (FLINK, DS2)
    ]
    checks.append(
        Check(
            f"ours: node hours over those {FLINK}",
            round(ours[1] / means[FLINK][1], 3),
            "Penstock's own",
            ceiling=1.0,
        )
    )
    return checks


def _loads(nab: Path | None, nasa: Path | None, seed: int, *, quick: bool) -> dict[str, np.ndarray]:
    found = {}
    if nab is not None:
        series = nab_series(nab)
        for name in list(series)[:: 6 if quick else 1]:
            found[name] = played(series[name][: SAMPLES // (3 if quick else 1)], NODES, 30, _rng(seed, name))
    if nasa is not None:
        minutes = nasa_series(nasa, DAY)
        found["nasa"] = played(minutes[: len(minutes) // (6 if quick else 1)], NODES, 10, _rng(seed, "nasa"))
    if not found:
        raise BadSimulation("no series to run; give --nab with a tar file of CSV files, or --nasa, or both")
    return found


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])
