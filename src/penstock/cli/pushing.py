"""The work of `penstock push`: the schema on standard output, progress on standard error."""

import time
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from penstock.expressions.schema import Schema
from penstock.ingest.client import Client, Connection, FileRows, Pace

__all__ = ["push_city", "push_file"]


def push_file(connection: Connection, file: Path, stream: str, rate: float | None, *, append: bool) -> None:
    """Push the rows of a file that the gates do not hold yet, or with `append` all rows after those."""
    rows = FileRows(file)
    typer.echo(f"schema: {rows.schema.ddl()}")
    with Client(connection, stream, rows.schema) as client, _progress() as progress:
        held = client.sequence
        skip = 0 if append else held
        if skip:
            typer.echo(f"the gates hold {skip:,} rows of {stream}; continuing after them", err=True)
        shown = progress.add_task(stream, total=None, redirections=0)
        pace, pushed = Pace(rate, time.monotonic()), 0
        for batch in rows.batches(skip):
            for start in range(0, batch.num_rows, pace.step):
                step = batch.slice(start, pace.step)
                time.sleep(pace.pause(pushed, time.monotonic()))
                client.push(step)
                pushed += step.num_rows
                done = client.acknowledged - held
                progress.update(shown, completed=done, redirections=len(client.redirections))
        client.flush()
        progress.update(shown, completed=pushed, redirections=len(client.redirections))
    typer.echo(f"{pushed:,} rows of {stream} acknowledged", err=True)


def push_city(  # noqa: PLR0913 -- the options of the command
    connection: Connection, inlet: str, *, seed: int, vehicles: int, rate: float, seconds: float
) -> None:
    """Push the reports of the demo's city for this number of seconds."""
    from penstock.demo.city import SCHEMA, City  # noqa: PLC0415 -- a file needs no demo
    from penstock.demo.live import LiveCity  # noqa: PLC0415

    typer.echo(f"schema: {Schema.from_arrow(SCHEMA).ddl()}")
    with LiveCity(City(seed, vehicles), connection, inlet) as live, _progress() as progress:
        shown = progress.add_task(f"{inlet}/*", total=None, redirections=0)

        def seen() -> None:
            moves = sum(len(client.redirections) for client in live.clients.values())
            progress.update(shown, completed=live.acknowledged, redirections=moves)

        live.drive(rate, seconds, seen)
        for client in live.clients.values():
            client.flush()
        seen()
    typer.echo(f"{live.rows:,} rows of {len(live.clients)} streams acknowledged", err=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} rows acknowledged"),
        TextColumn("{task.fields[redirections]} redirections"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
