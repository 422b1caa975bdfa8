"""What an experiment is, and how several of them make one report with plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from matplotlib.figure import Figure

from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["Experiment", "Outcome", "run_experiments"]


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
class Experiment:
    """One published experiment."""

    id: str
    title: str
    run: Run


def run_experiments(
    experiments: Sequence[Experiment], *, quick: bool, seed: int, plots: Path | None
) -> Report:
    """One report over all of them; plots go to `plots` as SVG and PNG."""
    rows: list[Mapping[str, Value]] = []
    checks: list[Check] = []
    for experiment in experiments:
        say(f"{experiment.id}: {experiment.title}")
        outcome = experiment.run(quick=quick, seed=seed)
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
