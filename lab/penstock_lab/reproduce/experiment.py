"""What an experiment is, and how several of them make one report with plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from matplotlib.figure import Figure

from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["Data", "Experiment", "Outcome", "run_experiments"]


@dataclass(frozen=True)
class Outcome:
    """Rows with the published figures next to ours, a check per shape, and the figures by file name."""

    rows: tuple[Mapping[str, Value], ...]
    checks: tuple[Check, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict)


class Run(Protocol):
    """Measures an experiment; `quick` takes under a minute."""

    def __call__(self, *, quick: bool, seed: int) -> Outcome:
        """The outcome; the seed draws data and choices."""
        ...


@dataclass(frozen=True)
class Data:
    """Files of real data that were given: a trace of positions, and series of rates."""

    trace: Path | None = None
    series: tuple[Path, ...] = ()


class RunOn(Protocol):
    """Measures an experiment on real data too; an outcome without rows if its files were not given."""

    def __call__(self, data: Data, *, quick: bool, seed: int) -> Outcome:
        """What the data add; a figure of the same name replaces that of the experiment without them."""
        ...


def nothing(*, quick: bool, seed: int) -> Outcome:  # noqa: ARG001 -- the protocol's
    """The outcome of an experiment on real data without them."""
    return Outcome((), ())


@dataclass(frozen=True)
class Experiment:
    """One published experiment; `needs` is the option without whose file it has no outcome."""

    id: str
    title: str
    run: Run = nothing
    run_on: RunOn | None = None
    needs: str = ""

    def can_run(self, data: Data) -> bool:
        """Whether the files that it needs were given."""
        return not self.needs or bool(getattr(data, self.needs.removeprefix("--")))


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    quick: bool,
    seed: int,
    plots: Path | None,
    data: Data | None = None,
) -> Report:
    """One report over all of them; plots go to `plots` as SVG and PNG."""
    data = data or Data()
    rows: list[Mapping[str, Value]] = []
    checks: list[Check] = []
    for experiment in experiments:
        if not experiment.can_run(data):
            say(f"{experiment.id}: left out, it needs {experiment.needs} PATH")
            continue
        say(f"{experiment.id}: {experiment.title}")
        outcome = experiment.run(quick=quick, seed=seed)
        if experiment.run_on is not None:
            more = experiment.run_on(data, quick=quick, seed=seed)
            outcome = Outcome(
                outcome.rows + more.rows, outcome.checks + more.checks, {**outcome.figures, **more.figures}
            )
        rows += [{"experiment": experiment.id, **row} for row in outcome.rows]
        checks += outcome.checks
        if plots is not None:
            _save(outcome.figures, plots)
    return report_here("reproduce", seed, rows, checks)


def _save(figures: Mapping[str, Figure], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        for kind in ("svg", "png"):
            figure.savefig(folder / f"{name}.{kind}", dpi=150)
        say(f"drawn: {folder / name}.svg and .png")
