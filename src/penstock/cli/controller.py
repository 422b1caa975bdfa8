"""`penstock controller`: the directory that assigns gates to clients."""

import logging
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.ingest import TLS

__all__ = ["controller"]


def controller(  # noqa: PLR0913 -- each is one option of the command
    *,
    address: Annotated[
        str, typer.Option(help="Host and port to listen on; port 0 picks a free one.")
    ] = "127.0.0.1:7300",
    folder: Annotated[Path, typer.Option(help="Folder for the state, which survives restarts.")] = Path(
        "controller"
    ),
    away_seconds: Annotated[
        float, typer.Option(min=0.1, help="Silence after which a gate gets no more streams.")
    ] = 5.0,
    poll_seconds: Annotated[
        float, typer.Option(min=0.05, help="Time between two checks of every gate.")
    ] = 1.0,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of the controller's certificate; turns on TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the key of the certificate.")] = None,
    tls_client_roots: Annotated[
        Path | None, typer.Option(help="PEM file of roots; clients then need a certificate (mutual TLS).")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="TOML file of tokens; see: penstock token --help.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow addresses beyond loopback without TLS or tokens.")
    ] = False,
    gate_roots: Annotated[
        Path | None, typer.Option(help="PEM file of roots to trust; turns on TLS towards gates.")
    ] = None,
    readers: Annotated[
        bool, typer.Option("--readers", help="List the readers of the controller that runs at --address.")
    ] = False,
    forget_gate: Annotated[
        list[str] | None,
        typer.Option(help="Tell the controller that runs at --address that what a gate held is lost."),
    ] = None,
    forget_reader: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INLET:READER",
            help="Tell the controller that runs at --address that a reader does not come back.",
        ),
    ] = None,
) -> None:
    """Run the directory: gates register here, and clients ask here for their gate.

    The controller calls gates with the token in PENSTOCK_TOKEN, if they need one. It prints one line when it
    is ready; its log goes to standard error. SIGTERM or Ctrl-C stops it.

    Example: penstock controller --address 127.0.0.1:7300 --folder /var/lib/penstock/controller

    Example: penstock controller --address 127.0.0.1:7300 --forget-reader reports:5f0c…
    """
    from penstock.ingest import TLS, Directory, Security  # noqa: PLC0415 -- --help does not need Flight

    tls = None if gate_roots is None else TLS(gate_roots, tls_certificate, tls_key)
    if readers or forget_reader or forget_gate:
        _ask(address, tls, forget_reader or [], forget_gate or [])
        return
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
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
        tls=tls,
    )
    with directory:
        typer.echo(f"controller ready at {directory.address}")
        ended.wait()


def _ask(address: str, tls: "TLS | None", forget: list[str], gates: list[str]) -> None:
    """Have a running controller forget readers and gates, then print the readers that it knows."""
    from penstock.ingest.security import Access  # noqa: PLC0415 -- --help does not need Flight
    from penstock.ingest.wire import CONTROLLER_PORT, Address, Endpoint  # noqa: PLC0415
    from penstock.ingest.wire.protocol import Forget, ForgetReader, ReaderListRequest  # noqa: PLC0415

    with Endpoint(Address.parse(address, CONTROLLER_PORT), Access(tls)) as running:
        for gate in gates:
            running.ask(Forget(gate=gate))
        for each in forget:
            inlet, colon, reader = each.partition(":")
            if not colon:
                raise typer.BadParameter(f"{each!r} names no reader; give INLET:READER as --readers does")
            running.ask(ForgetReader(inlet, reader))
        for known in running.ask(ReaderListRequest()).readers:
            silent = known["silent_seconds"]
            heard = "not heard of since the start" if silent is None else f"heard of {silent:,.0f} s ago"
            typer.echo(f"{known['inlet']}:{known['reader']}  {known['rows']:,} rows, {heard}")
