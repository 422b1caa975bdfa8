"""How long constructions take, over sigma, channels and skew ([003] Fig. 12 to 14)."""

import time
from collections.abc import Iterator, Mapping
from statistics import median

from penstock_lab.reports import Check, Value, say
from penstock_lab.reproduce.experiment import Outcome
from penstock_lab.reproduce.partitioning_growth import CONSTRUCTORS, counted, pairs, population
from penstock_lab.reproduce.partitioning_plots import lines
from penstock_lab.reproduce.partitioning_settings import Setting

__all__ = ["time_outcome"]

_SEEDS = 8
_PAPER = {("readj", 0.1): 0.05, ("readj", 0.008): 10.0, ("redist", 0.008): 0.5}


def time_outcome(*, quick: bool, seed: int) -> Outcome:
    """Rows, checks and charts of the three figures."""
    sigmas = (0.008, 0.1) if quick else (0.008, 0.02, 0.05, 0.1, 0.5)
    channels = (5, 10, 32) if quick else (5, 10, 15, 20, 25, 32)
    skews = (0.5, 1.0) if quick else (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
    by_sigma = {sigma: _seconds(Setting(sigma=sigma), seed) for sigma in sigmas}
    by_channels = {count: _seconds(Setting(channels=count), seed) for count in channels}
    by_skew = {skew: _seconds(Setting(skew=skew), seed) for skew in skews}
    figures = (("12", "sigma", by_sigma), ("13", "N", by_channels), ("14", "z", by_skew))
    rows = [row for figure, label, found in figures for row in _rows(figure, label, found)]
    seeds = range(seed, seed + _SEEDS)
    growth = {name: _time_growth(name, seeds) for name in ("readj", "readjust")}
    rows += [_growth_row(name, ratio) for name, ratio in growth.items()]
    small = by_sigma[0.008]
    checks = (
        Check("seconds of readj, sigma = 0.1", by_sigma[0.1]["readj"], "[003] Fig. 12", ceiling=0.05),
        Check("seconds of readj, sigma = 0.008", small["readj"], "[003] Fig. 12", ceiling=10),
        Check("seconds of redist, sigma = 0.008", small["redist"], "[003] Fig. 12", ceiling=0.5),
        Check(
            "sigma = 0.008: redist over readj", small["redist"] / small["readj"], "[003] Fig. 12", ceiling=1
        ),
        Check("sigma = 0.008: scan over redist", small["scan"] / small["redist"], "[003] Fig. 12", ceiling=1),
        Check(
            "readj, time at N = 32 over N = 10, more than linear",
            growth["readj"],
            f"[003] Fig. 13; median of {_SEEDS} seeds",
            floor=3.2,
        ),
        Check(
            "readj, z = 1 over z = 0.5",
            by_skew[1.0]["readj"] / by_skew[0.5]["readj"],
            "[003] Fig. 14",
            floor=1,
        ),
    )
    panels = {
        "seconds": {name: [by_sigma[sigma][name] for sigma in sigmas] for name in CONSTRUCTORS},
    }
    chart = lines("Construction, N = 10", ("sigma", sigmas), panels, log=("x", "seconds"), limit=None)
    return Outcome(tuple(rows), checks, {"003-fig-12": chart})


def _time_growth(name: str, seeds: range) -> float:
    """The median over seeds, since the steps of a search depend on the ring, by more than twofold."""
    say(f"  times: {name} on 10 and 32 channels, {len(seeds)} seeds")
    ratios = []
    for seed in seeds:
        few, many = (_last_step(name, Setting(channels=channels), seed) for channels in (10, 32))
        ratios.append(many / few)
    return median(ratios)


def _growth_row(name: str, ratio: float) -> Mapping[str, Value]:
    return {
        "figure": "13",
        "setting": "LCL, N = 32 over N = 10",
        "algorithm": name,
        "measure": f"time, median of {_SEEDS} seeds",
        "ours": ratio,
    }


def _seconds(setting: Setting, seed: int) -> dict[str, float]:
    """The time of the last step of growth with each constructor."""
    say(f"  times: {setting.channels} channels, skew {setting.skew}, sigma {setting.sigma}")
    return {name: _last_step(name, setting, seed) for name in CONSTRUCTORS}


def _last_step(name: str, setting: Setting, seed: int) -> float:
    """The processor seconds of the last step of growth, the lesser of two calls."""
    case = next(setting.cases(name, range(seed, seed + 1)))
    # Where keys were before hardly matters for the time, and scan gets there quickly.
    *_, (before, _) = pairs(case, "scan" if name in {"readj", "readjust"} else name)
    known = counted(population(setting.domain, setting.skew, seed), setting.goal, setting.channels, name)
    times = []
    for _ in range(2):
        start = time.process_time()
        CONSTRUCTORS[name](before, known, setting.channels, setting.goal)
        times.append(time.process_time() - start)
    return min(times)


def _rows(
    figure: str, label: str, found: Mapping[float, dict[str, float]] | Mapping[int, dict[str, float]]
) -> Iterator[Mapping[str, Value]]:
    for point, seconds in found.items():
        for name, ours in seconds.items():
            yield {
                "figure": figure,
                "setting": f"LCL, {label} = {point}",
                "algorithm": name,
                "measure": "seconds",
                "ours": ours,
                "paper": _PAPER.get((name, point)) if figure == "12" else None,
            }
