"""The command line: its commands, its version, and how an error is told."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli.bench import bench
from penstock.cli.controller import controller
from penstock.cli.demo import demo
from penstock.cli.gate import gate
from penstock.cli.push import push
from penstock.cli.reproduce import reproduce
from penstock.cli.state import state
from penstock.cli.token import token
from penstock.errors import PenstockError

__all__ = ["app", "main"]

app = typer.Typer(
    name="penstock",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(demo)
app.command()(reproduce)
app.command()(state)
app.command()(gate)
app.command()(token)
app.command()(controller)
app.command()(push)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command; an error that Penstock itself finds ends it with status 2 and without a traceback."""
    try:
        app()
    except PenstockError as error:
        message = Text("Error: ", style="bold red").append(str(error), style="default not bold")
        Console(stderr=True, soft_wrap=True).print(message)
        sys.exit(2)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- Typer hands the option's value over by position
    if wanted:
        typer.echo(f"penstock {_version()}")
        raise typer.Exit


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "from a source tree"


@app.callback()
def penstock(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Elastic, skew-proof stream processing on Apache Spark.

    Example: [bold]penstock demo[/]
    """
