"""The command line: its commands, those that other packages add, and how errors are shown.

A package adds a command with an entry point of the group `penstock.commands` that names a `typer.Typer`.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from penstock.cli.cluster import cluster
from penstock.cli.controller import controller
from penstock.cli.demo import demo
from penstock.cli.gate import gate
from penstock.cli.gates import gates
from penstock.cli.node import node
from penstock.cli.push import push
from penstock.cli.replay import replay
from penstock.cli.state import state
from penstock.cli.streams import streams
from penstock.cli.token import token
from penstock.errors import MissingPackage, PenstockError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["app", "main"]

_LAB = ("bench", "reproduce")


class _Commands(TyperGroup):
    """The product's commands and those of other packages; each is loaded on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_added()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        added = _added()
        if cmd_name in added:
            command = get_command(added[cmd_name].load())
            command.name = cmd_name
            return command
        if cmd_name in _LAB:
            raise MissingPackage(
                f"penstock {cmd_name} is part of the package penstock-lab, which is not installed;"
                " in a clone of the repository run: pip install ./lab"
            )
        return None


def _added() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 -- slow to import, and few commands need it

    return {each.name: each for each in entry_points(group="penstock.commands")}


app = typer.Typer(
    name="penstock",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes around the help cost a third of the time until it is there
    context_settings={"max_content_width": 110},
)
app.command()(demo)
app.command()(state)
app.command()(replay)
app.command()(gate)
app.command()(token)
app.command()(controller)
app.command()(node)
app.command()(push)
app.command()(cluster)
app.command()(streams)
app.add_typer(gates, name="gates")


def main() -> None:
    """Run the command; a Penstock error ends it with status 2 and without a traceback."""
    try:
        app()
    except PenstockError as error:
        from rich.console import Console  # noqa: PLC0415 -- slow to import
        from rich.text import Text  # noqa: PLC0415

        message = Text("Error: ", style="bold red").append(str(error), style="default not bold")
        Console(stderr=True, soft_wrap=True).print(message)
        sys.exit(2)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- Typer hands the option's value over by position
    if wanted:
        typer.echo(f"penstock {_version()}")
        raise typer.Exit


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 -- slow to import

    try:
        return version("penstock")
    except PackageNotFoundError:
        return "from a source tree"


@app.callback()
def penstock(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Elastic, skew-proof stream processing on Apache Spark.

    Example: penstock demo
    """
