"""How large the counter and the table are, over sigma, skew and channels ([003] Fig. 9 to 11)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from penstock.routing import Costs, Hashes, counter_threshold, table_threshold
from penstock.sketches import LossyCounting, splitmix64
from penstock_lab.reports import Check, Value, say
from penstock_lab.reproduce.experiment import Outcome
from penstock_lab.reproduce.partitioning_plots import lines
from penstock_lab.reproduce.partitioning_settings import Setting

__all__ = ["size_outcome"]

_TUPLES = 2_000_000
_LETTERS = ("LCL", "LLL", "LQL")


def size_outcome(*, quick: bool, seed: int) -> Outcome:
    """Rows, checks and charts; sizes over sigma, then over skew, then over channels."""
    sigmas = (0.05, 0.1, 1.0) if quick else (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
    skews = (0.5, 1.0) if quick else (0.25, 0.5, 0.7, 0.8, 0.9, 1.0)
    channels = (5, 10, 20) if quick else (5, 10, 15, 20, 25, 30)
    by_sigma = {(kind, s): _sizes(Setting(kind, sigma=s), seed) for kind in _LETTERS for s in sigmas}
    by_skew = {z: _sizes(Setting(skew=z), seed) for z in skews}
    by_channels = {n: _sizes(Setting(channels=n), seed) for n in channels}
    rows: list[Mapping[str, Value]] = []
    for (letters, sigma), sizes in by_sigma.items():
        rows += _rows("9", f"{letters}, sigma = {sigma}", sizes, paper=sigma == 0.1, letters=letters)
    for skew, sizes in by_skew.items():
        rows += _rows("10", f"LCL, z = {skew}", sizes)
    for count, sizes in by_channels.items():
        rows += _rows("11", f"LCL, N = {count}", sizes)
    counter, table = by_sigma["LCL", 0.1]
    quadratic, tables = by_sigma["LQL", 0.1][0], {by_sigma[kind, 0.1][1] for kind in _LETTERS}
    first, last = by_channels[channels[0]], by_channels[channels[-1]]
    checks = (
        Check(
            "counter, LCL, sigma = 0.1, at most twice the paper's 2,500",
            counter,
            "[003] Fig. 9",
            ceiling=5000,
        ),
        Check("counter, LCL, sigma = 0.1, at least half of them", counter, "[003] Fig. 9", floor=1250),
        Check("counter, LQL over LCL", quadratic / counter, "[003] Fig. 9", floor=10),
        Check("table, sigma = 0.1, at least", table, "[003] Fig. 9", floor=30),
        Check("table, sigma = 0.1, at most", table, "[003] Fig. 9", ceiling=60),
        Check("different table sizes over resources", len(tables), "[003] Fig. 9", ceiling=1),
        Check(
            "table, steepest over flattest skew",
            by_skew[1.0][1] - by_skew[skews[0]][1],
            "[003] Fig. 10",
            floor=30,
        ),
        Check(
            "table, growth over growth of channels",
            (last[1] / first[1]) / (channels[-1] / channels[0]),
            "[003] Fig. 11",
            floor=0.7,
        ),
        Check(
            "table, growth over growth of channels, at most",
            (last[1] / first[1]) / (channels[-1] / channels[0]),
            "[003] Fig. 11",
            ceiling=1.3,
        ),
    )
    panels = {
        "keys in the counter": {kind: [by_sigma[kind, s][0] for s in sigmas] for kind in _LETTERS},
        "keys in the table": {kind: [by_sigma[kind, s][1] for s in sigmas] for kind in _LETTERS},
    }
    chart = lines("Sizes, N = 10, z = 1", ("sigma", sigmas), panels, log=("x", *panels), limit=None)
    return Outcome(tuple(rows), checks, {"003-fig-9": chart})


def _sizes(setting: Setting, seed: int) -> tuple[int, int]:
    """Keys in the lossy counter at its fullest, and in the table."""
    say(
        f"  sizes: {setting.letters}, skew {setting.skew}, {setting.channels} channels, sigma {setting.sigma}"
    )
    goal = setting.goal
    threshold = counter_threshold(goal, setting.channels)
    hashes, shares = _stream(setting.domain, setting.skew, seed)
    counter = LossyCounting(epsilon=threshold / 10)
    counter.update(hashes)
    counted = shares[shares >= threshold]
    table = int((shares >= table_threshold(goal, setting.channels, counted)).sum())
    # Just before a window closes the counter also holds everything that came in it.
    return len(np.union1d(counter.memory.hashes, hashes[-counter.window :])), table


@cache
def _stream(domain: int, skew: float, seed: int) -> tuple[Hashes, Costs]:
    shares = np.arange(1, domain + 1, dtype=np.float64) ** -skew
    shares /= shares.sum()
    drawn = np.searchsorted(np.cumsum(shares), np.random.default_rng(seed).random(_TUPLES))
    return splitmix64(drawn.astype(np.uint64), seed), shares


def _rows(
    figure: str, setting: str, sizes: tuple[int, int], *, paper: bool = False, letters: str = ""
) -> list[Mapping[str, Value]]:
    stated = (50_000 if letters == "LQL" else 2500, 50) if paper else (None, None)
    note = "error of a tenth of the threshold; 2 M tuples; the open window counts" if paper else ""
    return [
        {
            "figure": figure,
            "setting": setting,
            "measure": measure,
            "ours": ours,
            "paper": theirs,
            "note": note,
        }
        for measure, ours, theirs in zip(("counter", "table"), sizes, stated, strict=True)
    ]
