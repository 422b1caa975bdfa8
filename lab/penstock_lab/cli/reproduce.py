"""`penstock reproduce`: published experiments with Penstock's algorithms, their figures next to ours."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock_lab.cli.delivery import deliver
from penstock_lab.errors import MissingData, UnknownExperiment

__all__ = ["reproduce"]

reproduce = typer.Typer(add_completion=False, rich_markup_mode=None)


@reproduce.command(name="reproduce")
def run(  # noqa: PLR0913 -- each is one option of the command
    ids: Annotated[
        list[str], typer.Argument(help="Experiments such as 003 or 000/12, a paper such as 002, or: all.")
    ],
    *,
    plots: Annotated[Path | None, typer.Option(help="Draw SVG and PNG figures into this folder.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Positions of vehicles, for 000/2 and 000/15: trip, time, lat, lon by tabs."),
    ] = None,
    series: Annotated[
        list[Path] | None,
        typer.Option(
            help="Measured rates, for 000/series: .csv, .txt, .gz of them, .tar.gz; may be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and choices.")] = 7,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller; under a minute each.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output, progress on standard error.")
    ] = False,
) -> None:
    """Repeat published experiments and compare their figures with ours, with a verdict per shape.

    Example: penstock reproduce 003 000/12 --quick --plots figures
    """
    from penstock_lab.reproduce import (  # noqa: PLC0415 -- matplotlib is slow to import
        EXPERIMENTS,
        Data,
        run_experiments,
    )

    known = {experiment.id: experiment for experiment in EXPERIMENTS}
    named = known if ids == ["all"] else (id_ for given in ids for id_ in _named(given, known))
    wanted = dict.fromkeys(named)  # each once, in the order given
    data = Data(trace, tuple(series or ()))
    for id_ in ids:
        if id_ in known and not known[id_].can_run(data):
            raise MissingData(id_, known[id_].needs)
    chosen = [known[id_] for id_ in wanted]
    report = run_experiments(chosen, quick=quick, seed=seed, plots=plots, data=data)
    deliver(report, json=json)


def _named(given: str, known: Iterable[str]) -> list[str]:
    """The experiment with this id, or all of the paper with this number."""
    found = [id_ for id_ in known if id_ == given or id_.startswith(f"{given}/")]
    if not found:
        raise UnknownExperiment(given, list(known))
    return found
