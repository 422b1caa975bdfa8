"""`penstock push`: pushes a file or the demo's city as live streams."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import IngestError

__all__ = ["push"]


def push(  # noqa: PLR0913 -- each is one option of the command
    file: Annotated[
        Path | None, typer.Argument(help="Parquet, CSV or JSON lines, or a folder of them.")
    ] = None,
    *,
    to: Annotated[str, typer.Option(help="Address of a gate or a controller.")] = "127.0.0.1:7400",
    stream: Annotated[
        str | None, typer.Option(help="Id of the stream; with --city the inlet, reports by default.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Rows per second in total; by default as fast as possible."),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add the file after the rows that the gates hold.")
    ] = False,
    city: Annotated[
        bool, typer.Option("--city", help="Push the city of the demo, one stream per vehicle.")
    ] = False,
    streams: Annotated[int, typer.Option(min=1, help="Number of vehicles in the city.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to push the city.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city.")] = 7,
    tls_roots: Annotated[Path | None, typer.Option(help="PEM file of roots to trust; turns on TLS.")] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of the client's certificate, for mutual TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the key of that certificate.")] = None,
) -> None:
    """Push a file, or the vehicles of an invented city, to a gate.

    Row n of a file has the sequence number n: after an interruption the same command continues from the last
    stored row, and nothing is stored twice. The token comes from PENSTOCK_TOKEN.

    Example: penstock push trips.parquet --stream reports/taxi-1 --to 127.0.0.1:7400 --rate 1000

    Example: penstock push --city --streams 200 --rate 5000 --seconds 60
    """
    from penstock.cli.pushing import push_city, push_file  # noqa: PLC0415 -- --help does not need Flight
    from penstock.ingest import TLS, Connection  # noqa: PLC0415

    if city == (file is not None):
        raise IngestError("give either a FILE to push or --city")
    tls = TLS(tls_roots, tls_certificate, tls_key) if tls_roots or tls_certificate else None
    with Connection(to, tls=tls) as connection:
        if file is None:
            push_city(
                connection,
                stream or "reports",
                seed=seed,
                vehicles=streams,
                rate=rate or 10.0 * streams,
                seconds=seconds,
            )
        elif stream is None:
            raise IngestError(f"no stream for {file}; name it with --stream, such as --stream reports/taxi-1")
        else:
            push_file(connection, file, stream, rate, append=append)
