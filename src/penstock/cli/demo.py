"""`penstock demo`: a city's traffic, live."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    *,
    forever: Annotated[bool, typer.Option("--forever", help="Run until Ctrl-C.")] = False,
    output: Annotated[
        Path, typer.Option(help="Folder for feed, state, results and chart; emptied at each start.")
    ] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city; another seed gives another city.")] = 7,
    minutes: Annotated[
        int, typer.Option(min=2, help="Minutes of city time, 0.15 seconds each; a slow machine ends sooner.")
    ] = 240,
) -> None:
    """Show a city's traffic, live, in about a minute.

    Vehicles of an invented city report position and speed, out of order, and some reports are late. The
    traffic query watches the last hour of every 500 m tile, minute by minute: how many reports, how fast, and
    whether a queue ends there. The output is Parquet results and a chart.

    Example: penstock demo --seed 11 --output /tmp/city
    """
    from penstock.demo.main import run_demo  # noqa: PLC0415 -- --help has no need of Spark and matplotlib

    run_demo(output, minutes=minutes, seed=seed, forever=forever)
