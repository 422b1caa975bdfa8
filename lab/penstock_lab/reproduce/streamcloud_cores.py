"""One to four instances on each of 1 to 20 quad-core nodes, running the equi-join ([002] Fig. 10)."""

from collections.abc import Mapping

from penstock_lab.reports import Check
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.streamcloud_costs import PAPER, Units, measured_here
from penstock_lab.reproduce.streamcloud_operators import join_stage
from penstock_lab.reproduce.streamcloud_plots import draw_instances
from penstock_lab.simulate import Clock, Plan, processors, saturate

__all__ = ["CORES"]

_CORES = 4
_CLOCK = Clock(seconds=40.0, slice=0.2, warm_up=15.0)


def _rate(units: Units, nodes: int, instances: int, seed: int) -> float:
    stage = join_stage(units, nodes * instances)
    plan = Plan((stage,), processors(nodes, instances, _CORES), sources=max(nodes * instances // 2, 1))
    return saturate(plan, seed, _CLOCK, within=0.02).throughput


def _run(*, quick: bool, seed: int) -> Outcome:
    rows: list[Row] = []
    checks: list[Check] = []
    nodes = (1, 10, 20) if quick else (1, 5, 10, 15, 20)
    for units in (PAPER, measured_here(quick=quick, seed=seed)):
        curves = {
            instances: {count: _rate(units, count, instances, seed) for count in nodes}
            for instances in (1, 2, 3, 4, 5)
        }
        rows += [
            row("10", f"join, {units.name}", f"nodes: {count}, instances: {instances}", "tuples/s", rate,
                None, "beyond the cores" if instances > _CORES else "only drawn in the paper")
            for instances, rates in curves.items()
            for count, rate in rates.items()
        ]  # fmt: skip
        checks += _checks(units, curves)
        if units is PAPER:
            figure = draw_instances(curves, "Equi-join, instances a node ([002] Fig. 10)")
    return Outcome(tuple(rows), tuple(checks), {"002-fig-10": figure})


def _checks(units: Units, curves: Mapping[int, Mapping[int, float]]) -> list[Check]:
    steps = [curves[more][count] / curves[more - 1][count] for more in (2, 3, 4) for count in curves[1]]
    four = curves[4]
    return [
        Check(f"join, {units.name}: least gain of an instance more", min(steps),
              "[002] Fig. 10: higher until 4", floor=1.1),
        Check(f"join, {units.name}: 4 instances over 1 on 20 nodes", four[20] / curves[1][20],
              "[002] §IV.E: cores are used", floor=3.2),
        Check(f"join, {units.name}: 20 nodes over 10, 4 instances", four[20] / four[10],
              "[002] Fig. 10: scales with nodes", floor=1.7),
        Check(f"join, {units.name}: a fifth instance over four, 20 nodes", curves[5][20] / four[20],
              "beyond [002]: there are four cores", ceiling=1.05),
    ]  # fmt: skip


CORES = Experiment("002/10", "instances per node on 1 to 20 quad-core nodes", _run)
