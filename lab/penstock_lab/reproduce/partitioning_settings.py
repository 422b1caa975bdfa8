"""The settings of the partitioning experiments ([003] Table 1), full and quick, and means over their runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from penstock.routing import Goal, Resources
from penstock_lab.reports import say
from penstock_lab.reproduce.partitioning_growth import Case, Measured, measure, measure_growth

__all__ = [
    "Extent",
    "Runs",
    "Setting",
    "full_extent",
    "quick_extent",
    "run_growth",
    "run_setting",
    "twice_error",
    "within",
]


_RINGS = 16


@dataclass(frozen=True)
class Setting:
    """One point of a figure: resource letters, skew, channels, sigma, number of keys and utility."""

    letters: str = "LCL"
    skew: float = 1.0
    channels: int = 10
    sigma: float = 0.1
    domain: int = 1_000_000
    utility: str = "APM"

    @property
    def goal(self) -> Goal:
        """What the partitioning should achieve."""
        return Goal(Resources.of(self.letters), self.sigma, self.domain, self.utility)

    def cases(self, algorithm: str, seeds: range) -> Iterator[Case]:
        """A run for each seed; a plain ring, which depends on luck most and costs least, gets several."""
        rings = _RINGS if algorithm == "consistent" else 1
        for seed in seeds:
            for ring in range(rings):
                yield Case(self.goal, self.skew, self.channels, seed, ring=seed + ring * 1_000_000)


@dataclass(frozen=True)
class Extent:
    """How much is measured: runs a point, and the points of each sweep."""

    runs: int
    skews: tuple[float, ...]
    steep_skews: tuple[float, ...]
    sigmas: tuple[float, ...]
    channels: tuple[int, ...]
    domains: tuple[int, ...]
    few_runs: int


full_extent = Extent(
    runs=20,
    skews=(0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0),
    steep_skews=(0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    sigmas=(0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0),
    channels=(2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32),
    domains=(10**4, 10**5, 10**6, 10**7, 10**8),
    few_runs=5,
)
quick_extent = Extent(
    runs=5,
    skews=(0.5, 0.8, 1.0),
    steep_skews=(0.25, 0.5),
    sigmas=(0.05, 0.1, 0.5),
    channels=(2, 10, 20, 32),
    domains=(10**4, 10**5, 10**6),
    few_runs=2,
)


@dataclass(frozen=True)
class Runs:
    """All runs of one algorithm at one point; the figures are means."""

    runs: tuple[Measured, ...]

    @property
    def b(self) -> float:
        """Relative imbalance over all resources."""
        return fmean(run.balance.overall for run in self.runs)

    @property
    def m(self) -> float:
        """Relative migration."""
        return fmean(run.migration for run in self.runs)

    @property
    def paired(self) -> "Runs":
        """Only the first of several rings of a run, which is the one that constructors use too."""
        return Runs(self.runs[::_RINGS])

    @property
    def each(self) -> tuple[float, float, float]:
        """Relative imbalance of state, computation and communication."""
        balances = [run.balance for run in self.runs]
        return (
            fmean(one.state for one in balances),
            fmean(one.computation for one in balances),
            fmean(one.communication for one in balances),
        )


def run_setting(setting: Setting, algorithms: Iterable[str], seeds: range) -> dict[str, Runs]:
    """All runs of these algorithms at one point."""
    say(
        f"  {setting.letters}, skew {setting.skew}, {setting.channels} channels, sigma {setting.sigma}, "
        f"{setting.domain:,} keys, {setting.utility}"
    )
    return {
        name: Runs(tuple(measure(case, name) for case in setting.cases(name, seeds))) for name in algorithms
    }


def run_growth(
    setting: Setting, algorithms: Iterable[str], at: tuple[int, ...], seeds: range
) -> dict[int, dict[str, Runs]]:
    """All runs of these algorithms at each number of channels on the way to the last."""
    say(f"  {setting.letters}, skew {setting.skew}, growing to {max(at)} channels")
    grown = {
        name: [measure_growth(case, name, at) for case in setting.cases(name, seeds)] for name in algorithms
    }
    return {
        channels: {name: Runs(tuple(run[channels] for run in runs)) for name, runs in grown.items()}
        for channels in at
    }


def twice_error(noise: float, runs: int) -> float:
    """Twice the standard error of a mean of runs, one of which deviates by `noise`: what a check tolerates.

    >>> twice_error(0.04, runs=16)
    0.02
    """
    return 2 * noise / sqrt(runs)


def within(source: str, error: float, runs: int) -> str:
    """The source of a check with its tolerance, if it has one."""
    return f"{source}, within twice the standard error of {runs} runs, {error:.3f}" if error else source
