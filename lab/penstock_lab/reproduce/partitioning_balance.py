"""Balance and migration over resource functions, skew and channels ([003] Fig. 3, 4 and 6)."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from penstock_lab.reports import Check, Difference, Value
from penstock_lab.reproduce.experiment import Outcome
from penstock_lab.reproduce.partitioning_growth import ALGORITHMS
from penstock_lab.reproduce.partitioning_plots import bars, lines
from penstock_lab.reproduce.partitioning_settings import (
    Extent,
    Runs,
    Setting,
    run_growth,
    run_setting,
    twice_error,
    within,
)

__all__ = ["balance_outcome"]

Points = Mapping[str, Runs]
_THREE = ("scan", "redist", "readj")
_LETTERS = ("LCL", "LLL", "CCL", "LQL")
_PAPER_B = {"readj": 1.2, "redist": 1.32, "scan": 1.32, "uniform": 1.55, "consistent": 1.75}
_PAPER_M = {"readj": 1.34, "redist": 1.23, "scan": 1.23, "uniform": 8.0}
_NOTES = {
    "uniform": "key number modulo N, as the paper's figures imply",
    "consistent": "1,024 replicas on 16,384 cells; top keys fall by luck, so that runs differ by 0.2",
    "readj": "as printed, at most 5 turns a key; the order of candidates is open, m is 1.25 to 1.36 in six",
    "readjust": "Penstock's own search, `readj` in a run: candidates against the present placement",
    "scan": "mean of more runs than the paper's five",
    "redist": "mean of more runs than the paper's five",
    "balanced": "beyond the paper: evens all keys, not tracked ones alone",
}

# How far the b of one constructor over that of another is from its mean in one run, as a standard deviation:
# the untracked keys of a ring add to both. The most over N = 2 to 20, LCL, 40 rings; 0.027 under CCL.
_NOISE = 0.038
# The same for the m of readj at N = 10, LLL, 20 rings.
_NOISE_M = 0.11
_UNIFORM_COUNTS = Difference(
    "the uniform hash is the key number modulo N here, so its channels have equally many keys, and under "
    "CCL that is two resources of three; readj is below it in 16 % of 50 single rings and 2.4 % above in the "
    "mean, and the paper does not say whether its five runs had rings of their own",
    1.0,
    1.06,
)
_SCAN_STAYS = Difference(
    "Algorithm 2 gives 0.77 to 1.09 over 40 rings: while two channels are empty the balance penalty is the "
    "same wherever the key is not the new most load, so that it stays at home; neither the order of ties "
    "nor sampling noise gives 3",
    0.75,
    1.1,
)
_AS_EVEN = Difference(
    "it is 1.002 in the mean of 20 runs, and twice the standard error of such a mean is 0.017: here it is as "
    "even as the best of the three, and not more; why here and at no other skew was not looked for",
    1.0,
    1.017,
)

_PAPER_M_32 = {"redist": 1.15, "scan": 3.0, "uniform": 22.0}
_NOTES_32 = {
    "scan": "Algorithm 2 as printed keeps a key at home unless the spread falls",
    "uniform": "key number modulo N, as the paper's figures imply",
}


def balance_outcome(extent: Extent, seed: int) -> Outcome:
    """Rows, checks and charts of the three figures, and whether `balanced` beats the three everywhere."""
    seeds = range(seed * 1000, seed * 1000 + extent.runs)
    points: dict[Setting, Points] = {}
    for letters in _LETTERS:
        sweep = (*extent.steep_skews, 1.0) if letters == "LQL" else extent.skews
        for skew in sweep:
            setting = Setting(letters, skew)
            points[setting] = run_setting(setting, ALGORITHMS, seeds)
    growth = run_growth(Setting(), ALGORITHMS, extent.channels, seeds)
    points |= {Setting(channels=channels): found for channels, found in growth.items() if channels != 10}
    checks = [
        *_figure_3(points, extent.runs),
        *_figure_4(points, extent),
        *_figure_6(points, extent.runs),
        *_dominance(points),
    ]
    return Outcome(tuple(_rows(points)), tuple(checks), _figures(points, extent))


def _rows(points: Mapping[Setting, Points]) -> list[Mapping[str, Value]]:
    rows: list[Mapping[str, Value]] = []
    for setting, found in points.items():
        figure = "6" if setting.channels != 10 else "3 and 4" if setting.skew == 1.0 else "4"
        place = f"{setting.letters}, z = {setting.skew}, N = {setting.channels}"
        paper = setting == Setting("LLL")
        last = setting == Setting(channels=32)
        stated = _PAPER_M if paper else _PAPER_M_32 if last else {}
        notes = _NOTES if paper else _NOTES_32 if last else {}
        best = [min(found[name].runs[run].balance.overall for name in _THREE) for run in _indices(found)]
        for name, runs in found.items():
            state, computation, communication = runs.each
            row: dict[str, Value] = {
                "figure": figure,
                "setting": place,
                "algorithm": name,
                "b": runs.b,
                "paper b": _PAPER_B.get(name) if paper else None,
                "b state": state,
                "b comp.": computation,
                "b comm.": communication,
                "m": runs.m,
                "paper m": stated.get(name),
                "note": notes.get(name, ""),
            }
            if name == "balanced":
                redist = found["redist"].runs
                row["runs with b ok"] = sum(
                    run.balance.overall <= bound for run, bound in zip(runs.runs, best, strict=True)
                )
                row["runs with m ok"] = sum(
                    run.migration <= other.migration for run, other in zip(runs.runs, redist, strict=True)
                )
                row["runs"] = len(runs.runs)
            rows.append(row)
    return rows


def _indices(found: Points) -> range:
    return range(len(found["scan"].runs))


def _figure_3(points: Mapping[Setting, Points], runs: int) -> list[Check]:
    source = "[003] Fig. 3"
    checks = []
    for letters in _LETTERS:
        found = points[Setting(letters)]
        if letters != "LQL":
            rest = min(found[name].b for name in ("scan", "redist", "uniform", "consistent"))
            # Under CCL the difference is one of the uniform hash and no noise.
            error = 0.0 if letters == "CCL" else twice_error(_NOISE, runs)
            checks.append(
                Check(
                    f"{letters}: b of readj over the best of the others",
                    found["readj"].b / rest,
                    within(source, error, runs),
                    ceiling=1 + error,
                    differs=_UNIFORM_COUNTS if letters == "CCL" else None,
                )
            )
        others = [name for name in (*_THREE, "uniform") if name in found]
        # Where all keys count alike, all move the share of the ring: only equal rings are comparable.
        ring = found["consistent"].paired if letters == "CCL" else found["consistent"]
        checks += [
            Check(
                f"{letters}: b of scan and redist, relative difference",
                abs(found["scan"].b / found["redist"].b - 1),
                source,
                ceiling=0.03,
            ),
            Check(
                f"{letters}: m of consistent over the least of the others",
                ring.m / min(found[name].m for name in others),
                source,
                ceiling=1.001,
            ),
            Check(
                f"{letters}: b of consistent over the worst of the others",
                found["consistent"].b / max(found[name].b for name in others),
                source,
                floor=1,
            ),
        ]
    lll = points[Setting("LLL")]
    most = max(points[Setting(letters)]["uniform"].m for letters in _LETTERS)
    return [
        *checks,
        Check("LLL: m of readj over redist", lll["readj"].m / lll["redist"].m, source, floor=1),
        Check(
            "LLL: m of readj off the published 1.34 by",
            abs(lll["readj"].m - _PAPER_M["readj"]),
            within(source, twice_error(_NOISE_M, runs), runs),
            ceiling=twice_error(_NOISE_M, runs),
        ),
        Check("most m of uniform over settings", most, source, floor=8),
        Check(
            "LQL: b of computation with redist", points[Setting("LQL")]["redist"].each[1], source, floor=30
        ),
    ]


def _figure_4(points: Mapping[Setting, Points], extent: Extent) -> list[Check]:
    source = "[003] Fig. 4"
    low = min(extent.skews)
    flat = [points[Setting(letters, low)] for letters in ("LCL", "LLL", "CCL")]
    worst = max(found[name].b for found in flat for name in ALGORITHMS)
    gentle = min(found["uniform"].b / min(found[name].b for name in _THREE) for found in flat)
    lll, lql = points[Setting("LLL")], points[Setting("LQL", 0.5)]
    return [
        Check(f"z = {low}: worst b of all", worst, source, ceiling=1),
        Check(f"z = {low}: b of uniform over the best of the three", gentle, source, ceiling=1),
        Check(
            "LLL, z = 1: b of consistent over readj", lll["consistent"].b / lll["readj"].b, source, floor=1.3
        ),
        Check("LQL, z = 0.5: b of readj over redist", lql["readj"].b / lql["redist"].b, source, ceiling=1.05),
        Check(
            "z at most 0.8: m of redist",
            max(points[Setting("LCL", z)]["redist"].m for z in extent.skews if z <= 0.8),
            source,
            ceiling=1.1,
        ),
        Check("LLL, z = 1: m of scan over redist", lll["scan"].m / lll["redist"].m, source, floor=1),
    ]


def _figure_6(points: Mapping[Setting, Points], runs: int) -> list[Check]:
    source = "[003] Fig. 6"
    error = twice_error(_NOISE, runs)
    grown = {s.channels: found for s, found in points.items() if s == Setting(channels=s.channels)}
    last, at_most_20 = grown[32], [found for channels, found in grown.items() if channels <= 20]
    return [
        Check("N = 32: m of uniform", last["uniform"].m, source, floor=20),
        Check("N = 32: m of uniform, not above", last["uniform"].m, source, ceiling=24),
        Check(
            "m of redist over all N", max(found["redist"].m for found in grown.values()), source, ceiling=1.3
        ),
        Check("N = 32: m of scan", last["scan"].m, source, floor=3, differs=_SCAN_STAYS),
        Check("N = 32: m of readj over N = 10", last["readj"].m / grown[10]["readj"].m, source, floor=1),
        Check("N = 32: b of consistent", last["consistent"].b, source, floor=2),
        Check(
            "N = 2 to 20: b of readj over the best of the others of the paper",
            max(
                found["readj"].b / min(found[n].b for n in ("scan", "redist", "uniform", "consistent"))
                for found in at_most_20
            ),
            within(source, error, runs),
            ceiling=1 + error,
        ),
    ]


def _dominance(points: Mapping[Setting, Points]) -> list[Check]:
    checks = []
    for setting, found in points.items():
        place = f"{setting.letters}, z = {setting.skew}, N = {setting.channels}: balanced"
        best = min(found[name].b for name in _THREE)
        checks += [
            Check(
                f"{place}, b over the best of the three",
                found["balanced"].b / best,
                "beyond [003]",
                ceiling=1,
                differs=_AS_EVEN if setting == Setting("LQL", 0.4) else None,
            ),
            Check(
                f"{place}, m over redist", found["balanced"].m / found["redist"].m, "beyond [003]", ceiling=1
            ),
        ]
    return checks


def _figures(points: Mapping[Setting, Points], extent: Extent) -> dict[str, Figure]:
    defaults = _panels([points[Setting(letters)] for letters in _LETTERS])
    figures = {
        "003-fig-3": bars("Resource functions, N = 10, z = 1", _LETTERS, defaults, log=tuple(defaults))
    }
    for letters in _LETTERS:
        skews = sorted(
            s.skew for s in points if s == Setting(letters, s.skew) and not (letters == "LQL" and s.skew == 1)
        )
        figures[f"003-fig-4-{letters}"] = lines(
            f"Skew, {letters}, N = 10",
            ("Zipf skew z", skews),
            _panels([points[Setting(letters, skew)] for skew in skews]),
            log=("relative migration m",),
        )
    found = [points[Setting(channels=channels)] for channels in extent.channels]
    figures["003-fig-6"] = lines(
        "Channels, LCL, z = 1", ("channels N", extent.channels), _panels(found), log=("relative migration m",)
    )
    return figures


def _panels(found: list[Points]) -> dict[str, dict[str, list[float]]]:
    return {
        "relative migration m": {name: [point[name].m for point in found] for name in ALGORITHMS},
        "relative imbalance b": {name: [point[name].b for point in found] for name in ALGORITHMS},
    }
