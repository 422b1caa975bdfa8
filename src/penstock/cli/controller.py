"""`penstock controller`: the directory that tells clients their gate."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["controller"]


def controller(  # noqa: PLR0913 -- each is one option of the command
    *,
    address: Annotated[str, typer.Option(help="Where to listen, host:port.")] = "127.0.0.1:7300",
    folder: Annotated[Path, typer.Option(help="Folder of its state, which survives a restart.")] = Path(
        "controller"
    ),
    away_seconds: Annotated[
        float, typer.Option(min=0.1, help="A gate silent for so long is away: it gets no streams.")
    ] = 5.0,
    poll_seconds: Annotated[float, typer.Option(min=0.05, help="How often gates are looked at.")] = 1.0,
    tls_certificate: Annotated[Path | None, typer.Option(help="Its certificate, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate, PEM.")] = None,
    tls_client_roots: Annotated[
        Path | None, typer.Option(help="Whom client certificates must be signed by: mutual TLS.")
    ] = None,
    tokens: Annotated[Path | None, typer.Option(help="File of tokens and rights, as for a gate.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without TLS and tokens.")
    ] = False,
    gate_roots: Annotated[
        Path | None, typer.Option(help="Certificates to trust when it calls gates over TLS, PEM.")
    ] = None,
) -> None:
    """Run the directory: gates register here, clients ask here where to go.

    It calls gates with the token in PENSTOCK_TOKEN, if they ask for one. Ctrl-C or SIGTERM ends it.

    Example: [bold]penstock controller --address 127.0.0.1:7300 --folder /var/lib/penstock/controller[/]
    """
    from penstock.ingest import TLS, Directory, Security  # noqa: PLC0415 -- --help has no need of Flight

    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    security = Security(tls_certificate, tls_key, tls_client_roots, tokens, insecure)
    directory = Directory(
        address,
        folder,
        away_seconds=away_seconds,
        poll_seconds=poll_seconds,
        security=security,
        tls=None if gate_roots is None else TLS(gate_roots, tls_certificate, tls_key),
    )
    with directory:
        typer.echo(f"controller ready at {directory.address}")
        ended.wait()
