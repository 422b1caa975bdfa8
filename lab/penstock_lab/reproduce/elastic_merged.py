"""Scaling and shuffle grouping together: sketches that are learnt anew, or one that outlives a change.

[001] Fig. 14 finds step-wise scaling at odds with shuffle grouping, since every step makes it learn anew.
Here both kinds of sketch run under the same policies on the same streams; what is compared is how unevenly
units are busy, and how long tuples take, in the minute after a change.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from penstock.control.scaling import Scaler, scaler
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.elastic_runs import BOUND, Case, course_of, limits, per_unit
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.simulate.elastic import ElasticCourse
from penstock_lab.simulate.groupings import DealtInTurn, Grouping, MergedCosts

__all__ = ["MERGED_SKETCH"]

CASE = Case(14, "sensitive", "progressive")
GROUPINGS: Mapping[str, Callable[[int], Grouping]] = {
    "round robin": DealtInTurn,
    "a sketch for each unit": per_unit,
    "one merged sketch": MergedCosts,
}
AFTER = 60.0  # seconds after a change that are compared
_BUSY = 0.3  # units that have less to do are uneven by chance


def run(*, quick: bool, seed: int) -> Outcome:
    """Step-wise scaling and AutoScale+ under each grouping."""
    policies: Mapping[str, Callable[[], Scaler]] = {
        "incremental": lambda: scaler("incremental", limits()),
        "AutoScale+": lambda: scaler("autoscale", limits(), preset="paper"),
    }
    rows: list[Row] = []
    found: dict[tuple[str, str], tuple[float, float, float]] = {}
    for policy, made in policies.items():
        for name, grouping in GROUPINGS.items():
            courses = [
                course_of(CASE, made(), [seed, number], grouping) for number in range(1 if quick else 5)
            ]
            say(f"{policy}, {name}")
            measured = (
                float(np.mean([_uneven(each) for each in courses])),
                float(np.mean([_seconds_after(each) for each in courses])),
                float(np.mean([100 * each.late(BOUND) for each in courses])),
            )
            found[policy, name] = measured
            for measure, value in zip(
                ("busiest over mean unit, minute after a change", "mean latency then, s", "late tuples, %"),
                measured,
                strict=True,
            ):
                rows.append(
                    row(
                        "14",
                        f"{policy}, {name}",
                        "sensitive, progressive",
                        measure,
                        round(value, 3),
                        None,
                        "",
                    )
                )
    return Outcome(tuple(rows), tuple(_checks(found)))


def _checks(found: Mapping[tuple[str, str], tuple[float, float, float]]) -> list[Check]:
    return [
        Check(
            f"001/merged {policy}: unevenness after a change, merged over a sketch for each unit",
            round(
                (found[policy, "one merged sketch"][0] - 1)
                / (found[policy, "a sketch for each unit"][0] - 1),
                3,
            ),
            "[001] Fig. 14: learning anew",
            ceiling=1.0,
        )
        for policy in ("incremental", "AutoScale+")
    ]


def _after(course: ElasticCourse) -> Sequence[tuple[float, float]]:
    """The spans after changes of the observed operator."""
    units = course.units["bolt"]
    changed = course.times[1:][np.diff(units) != 0]
    return [(float(each), float(each) + AFTER) for each in changed]


def _uneven(course: ElasticCourse) -> float:
    """The busiest unit over the mean, in ticks of those spans in which several units have enough to do."""
    spans = _after(course)
    found = [
        max(pool.use) / pool.mean_busy
        for seen in course.loads
        for pool in seen.pools
        if pool.name == "bolt"
        and len(pool.use) > 1
        and not pool.starting
        and pool.mean_busy > _BUSY
        and any(begin < seen.at <= end for begin, end in spans)
    ]
    return float(np.mean(found)) if found else float("nan")


def _seconds_after(course: ElasticCourse) -> float:
    inside = np.zeros(len(course.born), np.bool_)
    for begin, end in _after(course):
        inside |= (course.born >= begin) & (course.born < end)
    return float(course.latency[inside].mean())


MERGED_SKETCH = Experiment("001/merged", "scaling with shuffle grouping whose sketch outlives a change", run)
