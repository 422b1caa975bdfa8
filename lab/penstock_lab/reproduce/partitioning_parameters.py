"""How sigma, the utility and the number of keys change balance and migration ([003] Fig. 5, 7 and 8)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from penstock.routing.adaptation import UTILITIES
from penstock_lab.reports import Check, Value
from penstock_lab.reproduce.experiment import Outcome
from penstock_lab.reproduce.partitioning_growth import ALGORITHMS
from penstock_lab.reproduce.partitioning_plots import lines
from penstock_lab.reproduce.partitioning_settings import (
    Extent,
    Runs,
    Setting,
    run_setting,
    twice_error,
    within,
)

__all__ = ["parameters_outcome"]

_THREE = ("scan", "redist", "readj")
# How far figures of one run are from their means, as standard deviations over 40 and 20 rings: the m of
# redist over that of scan (0.991 in the mean), and b (1 + m) of APM over that of APLM, the next best (0.996).
_NOISE_M = 0.029
_NOISE_SCORE = 0.033
_PAPER_8 = {
    10**4: "2.2 for the three, 6.5 for uniform",
    10**8: "1.25 for the three, 7.5 for uniform",
}


def parameters_outcome(extent: Extent, seed: int) -> Outcome:
    """The three figures, one after the other."""
    seeds = range(seed * 1000, seed * 1000 + extent.few_runs)
    parts = [_scaler(extent, seeds), _utilities(seeds), _domains(extent, seeds)]
    return Outcome(
        tuple(row for part in parts for row in part.rows),
        tuple(check for part in parts for check in part.checks),
        {name: figure for part in parts for name, figure in part.figures.items()},
    )


def _scaler(extent: Extent, seeds: range) -> Outcome:
    names = [name for name in ALGORITHMS if name != "uniform"]
    found = [run_setting(Setting(sigma=sigma), names, seeds) for sigma in extent.sigmas]
    source = "[003] Fig. 5"
    low, high = found[0], found[-1]
    error = twice_error(_NOISE_M, len(seeds))
    checks = [
        Check(
            f"{name}: b at the least sigma over the greatest", low[name].b / high[name].b, source, ceiling=1
        )
        for name in _THREE
    ]
    checks += [
        Check(
            "mean m of redist over scan",
            _mean(found, "redist") / _mean(found, "scan"),
            within(source, error, len(seeds)),
            ceiling=1 + error,
        ),
        Check(
            "mean m of consistent over redist",
            _mean(found, "consistent") / _mean(found, "redist"),
            source,
            ceiling=1,
        ),
    ]
    rows = [
        _row("5", f"LCL, sigma = {sigma}", name, runs)
        for sigma, point in zip(extent.sigmas, found, strict=True)
        for name, runs in point.items()
    ]
    chart = lines(
        "Threshold scaler, LCL, N = 10", ("sigma", extent.sigmas), _panels(found, names), log=("x",)
    )
    return Outcome(tuple(rows), tuple(checks), {"003-fig-5": chart})


def _utilities(seeds: range) -> Outcome:
    rows: list[Mapping[str, Value]] = []
    score: dict[str, list[float]] = {name: [] for name in UTILITIES}
    migration: dict[str, list[float]] = {name: [] for name in UTILITIES}
    for letters in ("LCL", "LLL", "CCL", "LQL"):
        for utility in UTILITIES:
            found = run_setting(Setting(letters, utility=utility), ("redist", "readj"), seeds)
            for name, runs in found.items():
                rows.append(_row("7", f"{letters}, {utility}", name, runs))
                score[utility].append(runs.b * (1 + runs.m))
                if name == "readj":
                    migration[utility].append(runs.m)
    source = "[003] Fig. 7"
    best = min(fmean(values) for values in score.values())
    error = twice_error(_NOISE_SCORE, len(seeds))
    checks = [
        # The paper's own objective (Eq. 13), over settings and algorithms.
        Check(
            "b (1 + m) of APM over the best utility",
            fmean(score["APM"]) / best,
            within(source, error, len(seeds)),
            ceiling=1 + error,
        ),
        Check(
            "readj: m of A, which ignores migration, over APM",
            fmean(migration["A"]) / fmean(migration["APM"]),
            source,
            floor=1,
        ),
    ]
    return Outcome(tuple(rows), tuple(checks))


def _domains(extent: Extent, seeds: range) -> Outcome:
    found = [
        run_setting(Setting(domain=domain), ALGORITHMS, seeds if domain <= 10**7 else seeds[:1])
        for domain in extent.domains
    ]
    source = "[003] Fig. 8"
    first, last = found[0], found[-1]
    checks = [
        Check("least m of uniform", min(point["uniform"].m for point in found), source, floor=6),
        Check("m of uniform, most over least keys", last["uniform"].m / first["uniform"].m, source, floor=1),
        Check("m of redist, most over least keys", last["redist"].m / first["redist"].m, source, ceiling=1),
        Check("b of redist, most over least keys", last["redist"].b / first["redist"].b, source, ceiling=1),
        Check(
            "b of consistent over the worst of the three, at the least",
            min(point["consistent"].b / max(point[name].b for name in _THREE) for point in found),
            source,
            floor=1,
        ),
    ]
    rows = [
        _row("8", f"LCL, {domain:,} keys", name, runs, _PAPER_8.get(domain, "") if name != "balanced" else "")
        for domain, point in zip(extent.domains, found, strict=True)
        for name, runs in point.items()
    ]
    chart = lines(
        "Number of keys, LCL, N = 10",
        ("keys", extent.domains),
        _panels(found, ALGORITHMS),
        log=("x", "relative migration m"),
    )
    return Outcome(tuple(rows), tuple(checks), {"003-fig-8": chart})


def _mean(found: Sequence[Mapping[str, Runs]], name: str) -> float:
    return fmean(point[name].m for point in found)


def _row(figure: str, setting: str, name: str, runs: Runs, paper: str = "") -> Mapping[str, Value]:
    note = f"paper m: {paper}" if paper else ""
    return {"figure": figure, "setting": setting, "algorithm": name, "b": runs.b, "m": runs.m, "note": note}


def _panels(found: Sequence[Mapping[str, Runs]], names: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    return {
        "relative migration m": {name: [point[name].m for point in found] for name in names},
        "relative imbalance b": {name: [point[name].b for point in found] for name in names},
    }
