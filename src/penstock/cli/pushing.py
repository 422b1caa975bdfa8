"""What `penstock push` does: the schema on standard output, progress on standard error."""

import time
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from penstock.demo.city import SCHEMA, City
from penstock.demo.live import LiveCity
from penstock.expressions.schema import Schema
from penstock.ingest import Client, Connection
from penstock.ingest.file_rows import FileRows
from penstock.ingest.pace import Pace

__all__ = ["push_city", "push_file"]


def push_file(connection: Connection, file: Path, stream: str, rate: float | None, *, append: bool) -> None:
    """Push the rows of a file that the gates do not hold yet, or with `append` all of them behind those."""
    rows = FileRows(file)
    typer.echo(f"schema: {rows.schema.ddl()}")
    held = connection.next_sequence(stream)
    skip = 0 if append else held
    if skip:
        typer.echo(f"the gates hold {skip:,} rows of {stream}; going on behind them", err=True)
    with Client(connection, stream, rows.schema, sequence=held) as client, _progress() as progress:
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


def push_city(connection: Connection, inlet: str, city: City, rate: float, seconds: float) -> None:
    """Push the reports of a city for so many seconds."""
    typer.echo(f"schema: {Schema.from_arrow(SCHEMA).ddl()}")
    with LiveCity(city, connection, inlet) as live, _progress() as progress:
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
