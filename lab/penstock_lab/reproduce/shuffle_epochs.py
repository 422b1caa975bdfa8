"""Whole epochs shuffled at once: makespans of round robin, greedy and longest first ([001] §5.1)."""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.routing import Costs, RoundRobin, greedy, longest_first
from penstock.routing.greedy import greedy_unlike
from penstock.routing.longest_first import longest_first_unlike
from penstock_lab.algorithms.shuffle_messages import ShuffleSettings
from penstock_lab.reports import Check
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.shuffle_cluster import (
    Cluster,
    Tuples,
    epoch_makespans,
    least_possible,
    zipf_tuples,
)

__all__ = ["Epochs", "Ratios", "epoch_checks", "epoch_rows", "measure_epochs"]

Ratios = Mapping[str, Costs]
Epochs = Mapping[tuple[int, int], Ratios]

# Tuples in an epoch, and channels.
_SETTINGS = ((50, 5), (200, 5), (1_000, 5), (4_000, 5), (200, 2), (200, 10), (200, 20))


def measure_epochs(seeds: Sequence[int], count: int) -> Epochs:
    """For each setting, makespan over the least possible of `count` epochs for each seed, at skew 1.5."""
    return {(size, width): _over_seeds(seeds, count, size, width) for size, width in _SETTINGS}


def _over_seeds(seeds: Sequence[int], count: int, size: int, channels: int) -> Ratios:
    runs = [_epochs_once(seed, count, size, channels) for seed in seeds]
    return {name: np.concatenate([each[name] for each in runs]) for name in runs[0]}


def _epochs_once(seed: int, count: int, size: int, channels: int) -> Ratios:
    rng = np.random.default_rng(seed)
    # Operators report after some 6,000 tuples each.
    known = 10_000 * channels
    tuples = zipf_tuples(rng, known + size * count, 1.5)
    warm_up = Tuples(tuples.hashes[:known], tuples.costs[:known])
    epochs = list(Tuples(tuples.hashes[known:], tuples.costs[known:]).blocks(size))
    none, deal = np.zeros(channels), RoundRobin(channels)
    spans = {
        "round robin": [np.bincount(deal.route(each.hashes), each.costs).max() for each in epochs],
        "greedy, full knowledge": [greedy(each.costs, none).makespan for each in epochs],
        "longest first, full knowledge": [longest_first(each.costs, none).makespan for each in epochs],
    }
    least = np.array([least_possible(each.costs, channels) for each in epochs])
    ratios = {name: np.array(each) / least for name, each in spans.items()}
    for name, place in (("shuffle grouping", greedy_unlike), ("longest first", longest_first_unlike)):
        ratios[name] = epoch_makespans(
            Cluster(channels, place, settings=ShuffleSettings(seed=seed)), warm_up, epochs
        )
    return ratios


def epoch_rows(epochs: Epochs) -> list[Row]:
    """Mean makespans, as per cent above what no schedule can beat."""
    measure = "makespan, % above the least possible"
    return [
        row(
            "section 5.1",
            name,
            f"epoch of {size}, k = {width}",
            measure,
            100 * float(each.mean() - 1),
            None,
            _note(name),
        )
        for (size, width), ratios in epochs.items()
        for name, each in ratios.items()
    ]


def _note(name: str) -> str:
    if "longest" in name:
        return "beyond the paper"
    return "at most 100 (1 - 1/k)" if "greedy" in name else ""


def epoch_checks(epochs: Epochs) -> list[Check]:
    """The orders of the algorithms, and the bounds of greedy and longest first."""
    checks = [
        Check(
            f"{low} over {high}, epoch of {size}, k = {width}",
            float(ratios[low].mean() / ratios[high].mean()),
            source,
            ceiling=1.0,
        )
        for low, high, source in (
            ("shuffle grouping", "round robin", "[001] §5"),
            ("longest first, full knowledge", "greedy, full knowledge", "beyond [001]"),
        )
        for (size, width), ratios in epochs.items()
    ]
    # On estimates the two differ by less than chance in the largest epochs, so all settings decide together.
    gains = [each["longest first"].mean() / each["shuffle grouping"].mean() for each in epochs.values()]
    checks.append(
        Check(
            "longest first over shuffle grouping, all epochs",
            float(np.mean(gains)),
            "beyond [001]",
            ceiling=1.0,
        )
    )
    for name in ("shuffle grouping", "greedy, full knowledge"):
        worst = max(float(ratios[name].max()) / (2 - 1 / width) for (_, width), ratios in epochs.items())
        checks.append(Check(f"{name}: worst epoch over 2 - 1/k", worst, "[001] §5.1", ceiling=1.0))
    return checks + _bound_checks()


def _bound_checks() -> list[Check]:
    """The worst case of either bound, where the least makespan is known to be k and 3k."""
    k = 5
    crowd = greedy(np.array([1.0] * k * (k - 1) + [k]), np.zeros(k)).makespan / k
    pairs = np.repeat(np.arange(2 * k - 1, k, -1.0), 2)
    longest = longest_first(np.concatenate([pairs, [float(k)] * 3]), np.zeros(k)).makespan / (3 * k)
    return [
        Check("greedy at its worst, k = 5: 2 - 1/k", crowd, "[001] §5.1", ceiling=2 - 1 / k),
        Check("greedy reaches its bound", crowd, "[001] §5.1", floor=2 - 1 / k),
        Check(
            "longest first at its worst, k = 5: 4/3 - 1/(3k)",
            longest,
            "Graham",
            ceiling=4 / 3 - 1 / (3 * k) + 1e-12,
        ),
    ]
