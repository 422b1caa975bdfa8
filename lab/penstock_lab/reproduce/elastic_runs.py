"""Runs of the topologies and streams of [001] §7 under every scaling policy, and what is measured of them.

The cluster has 36 units and ticks of 10 s; a tuple is late after 30 s. The paper gives no rates, start-up
times or costs of a change; ours are 10 s for a unit to start and 5 s in which an operator stands still.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.control.scaling import Scaler, ScalingLimits, scaler
from penstock_lab.algorithms import Learning
from penstock_lab.algorithms.shuffle_messages import ShuffleSettings
from penstock_lab.simulate.elastic import Arrivals, ElasticCosts, ElasticCourse, simulate_elastic
from penstock_lab.simulate.groupings import DealtInTurn, Grouping, MergedCosts, PerUnitSketches
from penstock_lab.simulate.topologies import TOPOLOGIES, VALUES
from penstock_lab.workloads import draw, zipf_shares
from penstock_lab.workloads.load_curves import LOAD_CURVES, arrival_times

__all__ = ["BOUND", "POLICIES", "Case", "Measured", "course_of", "measure", "per_unit", "train"]

BOUND = 30.0
COSTS = ElasticCosts(tick=10.0, startup=10.0, pause=5.0, units=1, most=36)
SECONDS = 1260.0  # the last minute without a tuple
SKEW = 1.5
_TRIALS = 8

Floats = NDArray[np.float64]
Made = Callable[[ScalingLimits], Scaler]


@dataclass(frozen=True)
class Case:
    """A figure of the paper: the topology and the stream."""

    figure: int
    topology: str
    stream: str


POLICIES: Mapping[str, Made] = {
    "static": lambda limits: scaler("static", limits),
    "incremental": lambda limits: scaler("incremental", limits),
    "learning": Learning,
    "AutoScale+": lambda limits: scaler("autoscale", limits, preset="paper"),
    "autoscale, ours": lambda limits: scaler("autoscale", limits),
    "qos": lambda limits: scaler("qos", limits, bound=BOUND, lead=2),
    "penstock": lambda limits: scaler("penstock", limits, bound=BOUND),
}
"""Every policy by the name in the report; "AutoScale+" is the one with Table 2 of the paper."""


def per_unit(units: int) -> Grouping:
    """Shuffle grouping as in the paper; sketches are looked at every 128 tuples, as units get 30 a second."""
    return PerUnitSketches(units, ShuffleSettings(window=128))


def course_of(
    case: Case, policy: Scaler, seed: Sequence[int], grouping: Callable[[int], Grouping] | None = None
) -> ElasticCourse:
    """One run; the same seed gives every policy the same tuples."""
    rng = np.random.default_rng(seed)
    plain = case.topology == "insensitive"
    ours = MergedCosts if policy.name == "penstock" else per_unit
    topology = TOPOLOGIES[case.topology](rng, grouping or (DealtInTurn if plain else ours))
    shares = np.full(VALUES, 1 / VALUES) if plain else zipf_shares(VALUES, SKEW)
    times = arrival_times(rng, LOAD_CURVES[case.stream](rng) * topology.rate(shares))
    arrivals = Arrivals(times, draw(rng, shares, len(times)))
    return simulate_elastic(topology.operators, arrivals, policy, COSTS, seconds=SECONDS, rng=rng)


def limits() -> ScalingLimits:
    """All units of the cluster, and nothing else."""
    return ScalingLimits(quota=COSTS.most)


def train(case: Case, seed: int) -> Learning:
    """The table of the learning policy, from trials on the streams that it is tested on, as in the paper."""
    table: Mapping[str, object] = {}
    for number in range(_TRIALS):
        learner = Learning(limits(), table=table, explore=0.4, seed=number)
        course_of(case, learner, [seed, number])
        table = learner.table
    return Learning(limits(), table=table)


@dataclass(frozen=True)
class Measured:
    """Means over seeds, and the first run for figures."""

    late: float
    """Per cent of tuples that took longer than the bound."""
    latency: float
    units: float
    lag: float
    changes: float
    peak: float
    """Mean latency of tuples that came while the load was at its highest."""
    spread: float
    """Standard deviation of `late` over seeds."""
    first: ElasticCourse


def measure(
    case: Case,
    policies: Mapping[str, Made],
    seed: int,
    seeds: int,
    grouping: Callable[[int], Grouping] | None = None,
) -> dict[str, Measured]:
    """Every policy on the same streams."""
    table = train(case, seed).table if "learning" in policies else {}
    found = {}
    for name, made in policies.items():
        courses = []
        for number in range(seeds):
            policy = made(limits())
            if isinstance(policy, Learning):
                policy = Learning(limits(), table=table)
            courses.append(course_of(case, policy, [seed, number], grouping))
        found[name] = _means(courses)
    return found


def _means(courses: Sequence[ElasticCourse]) -> Measured:
    late = [100 * each.late(BOUND) for each in courses]
    return Measured(
        float(np.mean(late)),
        float(np.mean([each.latency.mean() for each in courses])),
        float(np.mean([each.mean_units for each in courses])),
        float(np.mean([each.lag() for each in courses])),
        float(np.mean([each.changes for each in courses])),
        float(np.mean([_at_peak(each) for each in courses])),
        float(np.std(late)),
        courses[0],
    )


def _at_peak(course: ElasticCourse) -> float:
    """Mean latency of the tuples of the tenth of all seconds that had the most."""
    second = course.born.astype(np.int64)
    counts = np.bincount(second)
    highest = counts >= np.quantile(counts, 0.9)
    return float(course.latency[highest[second]].mean())
