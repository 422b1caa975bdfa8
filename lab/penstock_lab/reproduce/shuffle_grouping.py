"""Online shuffle grouping against round robin, full knowledge and longest first ([001] §5).

The paper states the bound 2 - 1/k and that round robin is as good where values do not matter; the
streams (4,096 values of 1 to 64 ms, Zipf) are in the manner of its sensitive topology, Zipf 1.5.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.routing import Channels, Costs, RoundRobin, greedy
from penstock_lab.algorithms.shuffle_messages import ShuffleSettings
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.shuffle_cluster import Cluster, Tuples, completion_times, zipf_tuples
from penstock_lab.reproduce.shuffle_epochs import epoch_checks, epoch_rows, measure_epochs
from penstock_lab.reproduce.shuffle_grouping_plots import draw_shuffle

__all__ = ["SHUFFLE_GROUPING"]

_CHANNELS = 5
_SKEWS = (0.5, 1.0, 1.5, 2.0)
_TUPLES = 131_072
# The last operator reports after up to 82,000 tuples, and channels need some 10,000 more to even out.
_SETTLED = 3 * _TUPLES // 4
_BUSY = 0.95

Means = Mapping[str, float]


def run(*, quick: bool, seed: int) -> Outcome:
    """All of it, as means over several seeds."""
    seeds = range(seed, seed + (2 if quick else 5))
    say("mean completion over skew")
    completions = {skew: _mean([_completions(each, skew) for each in seeds]) for skew in _SKEWS}
    say("makespan of whole epochs")
    epochs = measure_epochs(seeds, 40 if quick else 160)
    say("values that do not matter, and a channel that slows down")
    even = _mean([_even(each) for each in seeds])
    slow = [_slow(each) for each in seeds]
    slowed = _mean([{name: float(taken.mean()) for name, taken in each.items()} for each in slow])
    rows = [*_completion_rows(completions, even, slowed), *epoch_rows(epochs)]
    checks = [*_completion_checks(completions, even, slowed), *epoch_checks(epochs)]
    sizes = {size: ratios for (size, width), ratios in epochs.items() if width == _CHANNELS}
    return Outcome(tuple(rows), tuple(checks), {"001-osg": draw_shuffle(completions, sizes, slow[0])})


SHUFFLE_GROUPING = Experiment("001/osg", "online shuffle grouping", run)


def _mean(runs: Sequence[Means]) -> Means:
    return {name: float(np.mean([each[name] for each in runs])) for name in runs[0]}


def _round_robin(tuples: Tuples, channels: int) -> Channels:
    return RoundRobin(channels).route(tuples.hashes)


def _completions(seed: int, skew: float) -> Means:
    """Mean completion in ms over the last quarter of a stream, and with the start of it."""
    tuples = zipf_tuples(np.random.default_rng(seed), _TUPLES, skew)
    arrivals = tuples.arrivals(_CHANNELS, _BUSY)
    fine = ShuffleSettings(seed=seed, epsilon=0.0005)
    routes = {
        "round robin": _round_robin(tuples, _CHANNELS),
        "shuffle grouping": Cluster(_CHANNELS, settings=ShuffleSettings(seed=seed)).run(tuples, arrivals)[0],
        "shuffle grouping, fine sketch": Cluster(_CHANNELS, settings=fine).run(tuples, arrivals)[0],
        "full knowledge": greedy(tuples.costs, np.zeros(_CHANNELS)).channels,
    }
    taken = {name: completion_times(there, tuples.costs, arrivals) for name, there in routes.items()}
    means = {name: 1_000 * float(times[_SETTLED:].mean()) for name, times in taken.items()}
    return means | {"shuffle grouping, with its start": 1_000 * float(taken["shuffle grouping"].mean())}


def _even(seed: int) -> Means:
    rng = np.random.default_rng(seed)
    tuples = Tuples(zipf_tuples(rng, _TUPLES, 1.5).hashes, np.full(_TUPLES, 0.02))
    # Arrivals at random: with even ones nothing would ever wait.
    arrivals = np.sort(rng.random(_TUPLES)) * tuples.arrivals(_CHANNELS, _BUSY)[-1]
    routes = {
        "round robin": _round_robin(tuples, _CHANNELS),
        "shuffle grouping": Cluster(_CHANNELS, settings=ShuffleSettings(seed=seed)).run(tuples, arrivals)[0],
    }
    return {
        name: 1_000 * float(completion_times(there, tuples.costs, arrivals).mean())
        for name, there in routes.items()
    }


def _slow(seed: int) -> Mapping[str, Costs]:
    """Completion times in seconds when channel 0 takes twice as long from half-way on."""
    tuples = zipf_tuples(np.random.default_rng(seed), _TUPLES, 1.5)
    arrivals = tuples.arrivals(_CHANNELS, 0.8)
    factors = np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    dealt = _round_robin(tuples, _CHANNELS)
    late = np.arange(_TUPLES) >= _TUPLES // 2
    runs = {"round robin": (dealt, tuples.costs * np.where(late, factors[dealt], 1.0))}
    for name, synchronised in (("without synchronisation", False), ("shuffle grouping", True)):
        cluster = Cluster(_CHANNELS, synchronised=synchronised, settings=ShuffleSettings(seed=seed))
        runs[name] = cluster.run(tuples, arrivals, later=factors)
    return {name: completion_times(there, seconds, arrivals) for name, (there, seconds) in runs.items()}


def _completion_rows(completions: Mapping[float, Means], even: Means, slowed: Means) -> list[Row]:
    measure = "mean completion, ms"
    rows = [
        row("section 5", name, f"Zipf {skew}, k = 5, 95 % busy", measure, taken, None, _skew_note(name, skew))
        for skew, means in completions.items()
        for name, taken in means.items()
    ]
    rows += [
        row("section 7.3", name, "equal costs", measure, taken, None, "") for name, taken in even.items()
    ]
    rows += [
        row("section 5.2", name, "channel 0 slows to half", measure, 1_000 * taken, None, "80 % busy before")
        for name, taken in slowed.items()
    ]
    return rows


def _skew_note(name: str, skew: float) -> str:
    if name == "shuffle grouping" and skew <= 1:
        return "55 columns are too few for this number of values: costs blur"
    if "start" in name:
        return "the first synchronisation makes idle channels catch up"
    return "epsilon 0.0005 instead of 0.05" if "fine" in name else ""


def _completion_checks(completions: Mapping[float, Means], even: Means, slowed: Means) -> list[Check]:
    ours, dealt = "shuffle grouping", "round robin"
    checks = [
        Check(
            f"completion over round robin, Zipf {skew}",
            means[ours] / means[dealt],
            "[001] §5",
            ceiling=1.0,
        )
        for skew, means in completions.items()
        if skew >= 1.5
    ]
    fine = "shuffle grouping, fine sketch"
    checks += [
        Check(
            f"fine sketch over round robin, Zipf {skew}",
            means[fine] / means[dealt],
            "beyond [001]",
            ceiling=1.0,
        )
        for skew, means in completions.items()
    ]
    off = abs(even[ours] / even[dealt] - 1)
    checks += [
        Check("equal costs: off round robin by", off, "[001] §7.3", ceiling=0.02),
        Check("slow channel: over round robin", slowed[ours] / slowed[dealt], "[001] §5.2", ceiling=1.0),
        Check(
            "slow channel: over no synchronisation",
            slowed[ours] / slowed["without synchronisation"],
            "[001] §5.2",
            ceiling=1.0,
        ),
    ]
    return checks
