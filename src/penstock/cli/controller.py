"""`penstock controller`: the directory that assigns gates to clients, and starts and stops gates."""

import logging
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.control.controller import Mode
    from penstock.ingest.directory import Lease

__all__ = ["controller"]

_LOOK_S = 0.2


def controller(  # noqa: PLR0913 -- each is one option of the command
    *,
    address: Annotated[
        str, typer.Option(help="Host and port to listen on; port 0 picks a free one.")
    ] = "127.0.0.1:7300",
    folder: Annotated[Path, typer.Option(help="Folder for the state, which survives restarts.")] = Path(
        "controller"
    ),
    advertise: Annotated[
        str | None, typer.Option(help="Address for gates and clients, if it differs from --address.")
    ] = None,
    away_seconds: Annotated[
        float, typer.Option(min=0.1, help="Silence after which a gate gets no more streams.")
    ] = 5.0,
    poll_seconds: Annotated[
        float, typer.Option(min=0.05, help="Time between two checks of every gate.")
    ] = 1.0,
    capacity: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Rows per second that one gate takes, instead of what is learnt of each.",
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="How streams are placed: penstock, drf-m, drf, ard, ari or par.")
    ] = "penstock",
    period: Annotated[float, typer.Option(min=0.1, help="Seconds between two decisions.")] = 10.0,
    wait_seconds: Annotated[
        float, typer.Option(min=0.01, help="A gate is overloaded if rows wait longer than this.")
    ] = 5.0,
    least_interval: Annotated[
        float, typer.Option(min=0, help="Least time between two moves of one stream, in seconds.")
    ] = 0.0,
    most_moves: Annotated[int, typer.Option(min=0, help="Most moves of one period.")] = 1000,
    exclude: Annotated[
        list[str] | None, typer.Option(help="A stream that is never moved. May be repeated.")
    ] = None,
    control: Annotated[
        str, typer.Option(help="on; observe: decide and record, but move nothing; or off.")
    ] = "on",
    gates_from: Annotated[
        int, typer.Option(min=0, help="Gates that always run, if --gates-to is given.")
    ] = 1,
    gates_to: Annotated[
        int | None, typer.Option(min=1, help="Start and stop gates on this machine, up to this number.")
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(help="TOML file of the hosts on which gates are started, instead of this machine."),
    ] = None,
    gate_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the first of these gates; 0 picks free ones.")
    ] = 7400,
    gate_option: Annotated[
        list[str] | None,
        typer.Option(help="An option for these gates, such as --store-mib=1024. May be repeated."),
    ] = None,
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
) -> None:
    """Run the directory: gates register here, and clients ask here for their gate.

    A strategy decides every period which stream enters through which gate, by what it has learnt of gates and
    streams, and with --gates-to also which gates run. The controller calls gates with the token in
    PENSTOCK_TOKEN, if they need one. It prints one line when it is ready; its log goes to standard error.
    SIGTERM or Ctrl-C stops it.

    A second controller on the same folder stands by: it takes over as soon as the first one has ended, or has
    given no sign for 5 s. One that was taken over ends with status 3. Give clients and gates both addresses.

    Example: penstock controller --address 127.0.0.1:7300 --folder /var/lib/penstock/controller

    Example: penstock controller --gates-from 1 --gates-to 8

    Example: penstock controller --nodes nodes.toml --address 10.0.0.1:7300
    """
    from penstock.control.admission import AdmissionSetup, Limits  # noqa: PLC0415 -- numpy is slow to import
    from penstock.ingest import TLS, Directory, Security  # noqa: PLC0415 -- --help does not need Flight
    from penstock.ingest.directory import LocalNodes, Nodes, RemoteNodes, read_nodes  # noqa: PLC0415

    tls = None if gate_roots is None else TLS(gate_roots, tls_certificate, tls_key)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    security = Security(tls_certificate, tls_key, tls_client_roots, tokens, insecure)
    limits = Limits(least_interval, most_moves, frozenset(exclude or ()), max(gates_from, 1))
    admission = AdmissionSetup(capacity, strategy, period, wait_seconds, limits)

    lease = _lease(folder, advertise or address, ended)
    if lease is None:
        return

    def run_nodes(own: str) -> Nodes:
        if nodes is not None:
            return RemoteNodes(read_nodes(nodes), own, least=gates_from, most=gates_to, term=lease.number)
        assert gates_to is not None
        options = gate_option or ()
        return LocalNodes(
            folder / "gates",
            own,
            least=gates_from,
            most=gates_to,
            port=gate_port,
            options=options,
            term=lease.number,
        )

    directory = Directory(
        address,
        folder,
        away_seconds=away_seconds,
        poll_seconds=poll_seconds,
        admission=admission,
        control=_mode(control),
        nodes=None if gates_to is None and nodes is None else run_nodes,
        lease=lease,
        advertise=advertise,
        security=security,
        tls=tls,
    )
    with directory:
        typer.echo(f"controller ready at {directory.address}")
        while not ended.wait(_LOOK_S):
            if directory.lost.is_set():
                logging.shutdown()
                os._exit(3)  # nothing is ended in order: all that this one had is another one's now


def _lease(folder: Path, address: str, ended: threading.Event) -> "Lease | None":
    """The right to decide, once no other controller on this folder has it; None if this one is to end."""
    from penstock.errors import BadGate  # noqa: PLC0415 -- as above
    from penstock.ingest.directory import Lease, stand_by  # noqa: PLC0415

    while True:
        last = stand_by(folder, ended)
        if last is None:
            return None
        with suppress(BadGate):  # another one that stood by was faster
            return Lease.take(folder, address, from_=last)


def _mode(control: str) -> "Mode":
    from penstock.checks import one_of  # noqa: PLC0415 -- as above
    from penstock.control.controller import MODES  # noqa: PLC0415
    from penstock.errors import BadAdmission  # noqa: PLC0415

    return one_of("--control", control, MODES, BadAdmission)
