"""`penstock push`: a file or the demo's city as live streams."""

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
        str | None, typer.Option(help="Id of the stream; with --city the inlet, by default reports.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Rows per second in all; else at full speed.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add the file behind what the gates hold of the stream.")
    ] = False,
    city: Annotated[
        bool, typer.Option("--city", help="Push the demo's city, a stream for each vehicle.")
    ] = False,
    streams: Annotated[int, typer.Option(min=1, help="Vehicles of the city.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the city is pushed.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws another city.")] = 7,
    tls_roots: Annotated[Path | None, typer.Option(help="Certificates to trust, PEM; turns TLS on.")] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="One's own certificate, for mutual TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
) -> None:
    """Push a file, or the vehicles of an invented city, to a gate.

    Row n of a file has the sequence number n: after an interruption the same command goes on where it was cut
    off, and nothing is stored twice. A token is taken from PENSTOCK_TOKEN.

    Example: [bold]penstock push trips.parquet --stream reports/taxi-1 --to 127.0.0.1:7400 --rate 1000[/]

    Example: [bold]penstock push --city --streams 200 --rate 5000 --seconds 60[/]
    """
    from penstock.cli.pushing import push_city, push_file  # noqa: PLC0415 -- --help has no need of Flight
    from penstock.demo.city import City  # noqa: PLC0415
    from penstock.ingest import TLS, Connection  # noqa: PLC0415

    if city == (file is not None):
        raise IngestError("give either a FILE to push or --city")
    tls = TLS(tls_roots, tls_certificate, tls_key) if tls_roots or tls_certificate else None
    with Connection(to, tls=tls) as connection:
        if file is None:
            push_city(connection, stream or "reports", City(seed, streams), rate or 10.0 * streams, seconds)
        elif stream is None:
            raise IngestError(f"no stream for {file}; name it with --stream, such as --stream reports/taxi-1")
        else:
            push_file(connection, file, stream, rate, append=append)
