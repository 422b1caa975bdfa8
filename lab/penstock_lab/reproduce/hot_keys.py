"""Figure 15 of [000]: load over channels when the K most frequent keys are split ([000] §6.4.2).

16 thousand keys of Zipf frequency on 16 channels. The frequencies are counted in a warm-up and used on other
tuples. The limit is what hashing leaves when all keys are equally frequent: the ratio of keys per channel.
With a trace of positions the paper's curve of real data is drawn too: its keys are tiles of 100 m, counted
in the first third of the trace and used on the rest.
"""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.routing import Hashes, Ring, split_hot_keys
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Data, Experiment, Outcome
from penstock_lab.reproduce.load_ratio import load_ratio
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.skewed_keys import SkewedKeys
from penstock_lab.workloads import read_positions

__all__ = ["HOT_KEYS"]

CHANNELS = 16
KEYS = 16_384
SKEWS = (0.8, 1.0, 1.2, 1.5)
HOT = (0, 5, 10, 20, 50, 100, 200, 500, 1000)
WARM_UP = 200_000  # tuples
RINGS = 5
SOURCE = "[000] Fig. 15, §6.4.2"

Curve = Mapping[int, float]


EDGE = 100  # metres of a tile
PART = 3  # the warm-up is one of so many parts of the trace


def limit(keys: int = KEYS) -> float:
    """The ratio of the numbers of keys per channel, averaged over rings."""
    hashes = SkewedKeys(keys, 0).hashes
    routes = [Ring(CHANNELS, seed=ring).route(hashes) for ring in range(RINGS)]
    return float(np.mean([load_ratio(np.bincount(each, minlength=CHANNELS)) for each in routes]))


def curve(keys: SkewedKeys, tuples: int, seed: int) -> dict[int, float]:
    """The ratio of load for every K, averaged over rings."""
    rng = np.random.default_rng(seed)
    return ratios_of(keys.hashes, keys.draw(WARM_UP, rng), keys.draw(tuples, rng))


def ratios_of(hashes: Hashes, known: NDArray[np.int64], arriving: NDArray[np.int64]) -> dict[int, float]:
    """The ratio of load of arriving keys for every K, by the frequencies of the known ones."""
    counts = np.bincount(known, minlength=len(hashes))
    frequent = np.argsort(-counts, kind="stable")
    tuples, sequence = hashes[arriving], np.arange(len(arriving))
    ratios: dict[int, float] = {}
    for hot in HOT:
        split = frequent[:hot]
        found = []
        for ring in range(RINGS):
            router = split_hot_keys(hashes[split], counts[split] / len(known), Ring(CHANNELS, seed=ring))
            routes = router.route(tuples, sequence)
            found.append(load_ratio(np.bincount(routes, minlength=CHANNELS)))
        ratios[hot] = float(np.mean(found))
    return ratios


@cache
def curves_of(*, quick: bool, seed: int) -> dict[float, Curve]:
    """The curve of every skew."""
    curves: dict[float, Curve] = {}
    for skew in SKEWS:
        say(f"Zipf {skew}")
        curves[skew] = curve(SkewedKeys(KEYS, skew), 300_000 if quick else 2_000_000, seed)
    return curves


def run(*, quick: bool, seed: int) -> Outcome:
    """The curve for every skew, and the limit."""
    curves = curves_of(quick=quick, seed=seed)
    least = limit()
    rows = [_row(f"Zipf {skew}", hot, ratio) for skew, each in curves.items() for hot, ratio in each.items()]
    rows.append(_row("all keys equally frequent", 0, least, "keys-per-node limit"))
    return Outcome(tuple(rows), _checks(curves, least), {"000-fig-15": _draw(curves, least)})


def run_on(data: Data, *, quick: bool, seed: int) -> Outcome:
    """The curve of a trace, if one is given, beside those of Zipf frequencies."""
    if data.trace is None:
        return Outcome((), ())
    tiles = read_positions(data.trace).tiles(EDGE)
    warm_up = len(tiles) // PART
    count = int(tiles.max()) + 1
    hashes = SkewedKeys(count, 0).hashes
    real, least = ratios_of(hashes, tiles[:warm_up], tiles[warm_up:]), limit(count)
    rows = [_row("trace", hot, ratio, f"{count:,} tiles of {EDGE} m") for hot, ratio in real.items()]
    rows.append(_row("tiles equally frequent", 0, least, "keys-per-node limit"))
    curves = curves_of(quick=quick, seed=seed)
    checks = (
        Check("000/15 trace, K = 5", round(real[5], 4), SOURCE, ceiling=0.5),
        Check("000/15 trace, K = 100: above the limit", round(real[100] - least, 4), SOURCE, ceiling=0.1),
        Check(
            "000/15 trace, K = 100: above the worst Zipf curve",
            round(real[100] - max(each[100] for each in curves.values()), 4),
            SOURCE,
            ceiling=0.1,
        ),
    )
    return Outcome(tuple(rows), checks, {"000-fig-15": _draw(curves, limit(), real)})


def _row(setting: str, hot: int, ratio: float, note: str = "") -> Row:
    paper = {5: "below 0.5", 100: "near the limit", 200: "near the limit"}.get(hot)
    algorithm = f"sub-keys, K = {hot}" if hot else "ring alone, K = 0"
    return row("15", algorithm, setting, "load-balancing ratio", round(ratio, 4), paper, note)


def _checks(curves: Mapping[float, Curve], least: float) -> tuple[Check, ...]:
    whole = [each[0] for each in curves.values()]
    growth = min(after / before for before, after in pairwise(whole))
    gain = min(each[0] / each[100] for each in curves.values())
    five = max(each[5] for each in curves.values())
    above = {hot: max(each[hot] for each in curves.values()) - least for hot in (100, 200)}
    beyond = max(each[200] - each[1000] for each in curves.values())
    return (
        Check("000/15 K = 0: ratio at the largest skew", round(whole[-1], 4), SOURCE, floor=1.0),
        Check("000/15 K = 0: least growth of the ratio with the skew", round(growth, 3), SOURCE, floor=1.2),
        Check("000/15 K = 0 against K = 100, least factor", round(gain, 3), SOURCE, floor=2.0),
        Check("000/15 K = 5: largest ratio", round(five, 4), SOURCE, ceiling=0.5),
        Check("000/15 K = 100: ratio above the limit", round(above[100], 4), SOURCE, ceiling=0.1),
        Check("000/15 K = 200: ratio above the limit", round(above[200], 4), SOURCE, ceiling=0.1),
        Check("000/15 gain from K = 200 to K = 1,000", round(beyond, 4), SOURCE, ceiling=0.05),
    )


def _draw(curves: Mapping[float, Curve], least: float, real: Curve | None = None) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    places = range(len(HOT))
    for (skew, each), colour in zip(
        curves.items(), ("#9db8c9", "#5a8bab", "#1f5f8b", "#0d2f47"), strict=True
    ):
        ratios = [100 * each[hot] for hot in HOT]
        axes.plot(places, ratios, marker="o", markersize=4, color=colour, label=f"Zipf {skew}")
    if real is not None:
        ratios = [100 * real[hot] for hot in HOT]
        axes.plot(places, ratios, marker="s", markersize=4, color="#2e8b57", label="trace, tiles of 100 m")
    axes.axhline(100 * least, color="#c0562f", linestyle="--", linewidth=1, label="limit: keys per channel")
    axes.axhline(50, color="#6b757c", linestyle=":", linewidth=1)
    axes.text(len(HOT) - 1, 52, "paper, K = 5: below 50 %", ha="right", color="#6b757c", fontsize=8)
    axes.set_xticks(list(places), [f"{hot:,}" for hot in HOT])
    axes.set(xlabel="K, the number of hot keys that are split", ylabel="load-balancing ratio, % (log)")
    axes.set_yscale("log")
    axes.set_yticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
    axes.minorticks_off()
    axes.set_title(f"{KEYS:,} keys on {CHANNELS} channels", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


HOT_KEYS = Experiment("000/15", "hot keys split into sub-keys", run, run_on)
