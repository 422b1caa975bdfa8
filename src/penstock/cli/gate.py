"""`penstock gate`: runs a gate as a process until SIGTERM or Ctrl-C."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["gate"]

_MIB = 1 << 20
# From malloc.h of glibc: larger pieces are mapped one by one; a heap with more free memory at its end than
# this shrinks.
_M_MMAP_THRESHOLD = -3
_M_TRIM_THRESHOLD = -1


def gate(  # noqa: PLR0913 -- the options of a command
    *,
    address: Annotated[
        str, typer.Option(help="Host and port to listen on; port 0 picks a free one.")
    ] = "127.0.0.1:7400",
    folder: Annotated[Path, typer.Option(help="Folder of the log; every gate needs its own.")] = Path("gate"),
    controller: Annotated[
        str | None, typer.Option(help="Address of a controller to register with, such as 127.0.0.1:7300.")
    ] = None,
    controller_roots: Annotated[
        Path | None,
        typer.Option(help="PEM file of roots to trust; turns on TLS towards the controller."),
    ] = None,
    advertise: Annotated[
        str | None, typer.Option(help="Address that clients and readers use, if it differs from --address.")
    ] = None,
    store_mib: Annotated[
        int, typer.Option(min=1, help="Size of the log at which clients have to wait.")
    ] = 65_536,
    keep_mib: Annotated[int, typer.Option(min=0, help="Committed rows to keep for later readers.")] = 0,
    segment_mib: Annotated[int, typer.Option(min=1, help="Size of one log file.")] = 128,
    discard_uncommitted: Annotated[
        bool, typer.Option("--discard-uncommitted", help="Delete unread rows instead of making clients wait.")
    ] = False,
    gate_mib: Annotated[
        int, typer.Option(min=1, help="Limit of rows in memory, all streams together.")
    ] = 256,
    stream_mib: Annotated[int, typer.Option(min=1, help="Limit of rows in memory, each stream.")] = 16,
    message_mib: Annotated[int, typer.Option(min=1, max=1024, help="Largest record batch.")] = 64,
    calls: Annotated[int, typer.Option(min=1, help="Limit of open pushes.")] = 256,
    reads: Annotated[int, typer.Option(min=1, help="Limit of open reads.")] = 64,
    calls_per_token: Annotated[int, typer.Option(min=1, help="Limit of open pushes of one token.")] = 128,
    reads_per_token: Annotated[int, typer.Option(min=1, help="Limit of open reads of one token.")] = 32,
    token_mib: Annotated[int, typer.Option(min=1, help="Limit of rows in memory, each token.")] = 128,
    rows_per_second: Annotated[
        float, typer.Option(min=0, help="Limit of rows taken each second, all streams together; 0 for none.")
    ] = 0.0,
    idle_seconds: Annotated[
        float, typer.Option(min=0, help="A push that is idle for so long makes room for another one.")
    ] = 30.0,
    silent_seconds: Annotated[
        float,
        typer.Option(min=1, help="A reader that is silent for so long is named if rows are kept for it."),
    ] = 600.0,
    memory_mib: Annotated[
        int, typer.Option(min=256, help="Memory for rows in any form; above it a message is refused.")
    ] = 1024,
    streams: Annotated[int, typer.Option(min=1, help="Limit of streams of the gate.")] = 100_000,
    streams_per_client: Annotated[int, typer.Option(min=1, help="Limit of streams of one push.")] = 10_000,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Go on without rows that the log has lost, where it is not sure which."
        ),
    ] = False,
    give_up: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM:LOW-HIGH",
            help="Rows that are lost for good: readers go on after them, from now on. May be repeated.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of the gate's certificate; turns on TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the key of the certificate.")] = None,
    tls_clients: Annotated[
        Path | None, typer.Option(help="PEM file of roots; clients then need a certificate (mutual TLS).")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="TOML file of tokens; see: penstock token --help.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow addresses beyond loopback without TLS or tokens.")
    ] = False,
) -> None:
    """Run a gate: streams enter here over Arrow Flight and are durable before they are acknowledged.

    The gate prints one line when it is ready; its log goes to standard error. On SIGTERM or Ctrl-C it accepts
    no more rows, makes everything durable, sends clients to the controller if there is one, and exits.

    Example: penstock gate --folder /var/lib/penstock/gate-1 --address 127.0.0.1:7400
    """
    _bound_memory(memory_mib)
    _keep_memory()
    from penstock.ingest import TLS, Limits, Security  # noqa: PLC0415 -- --help does not need Flight
    from penstock.ingest.gate import run_gate  # noqa: PLC0415

    limits = Limits(
        message_bytes=message_mib * _MIB,
        stream_bytes=stream_mib * _MIB,
        gate_bytes=gate_mib * _MIB,
        segment_bytes=segment_mib * _MIB,
        store_bytes=store_mib * _MIB,
        keep_bytes=keep_mib * _MIB,
        discard_uncommitted=discard_uncommitted,
        calls=calls,
        calls_per_token=min(calls_per_token, calls),
        reads=reads,
        reads_per_token=min(reads_per_token, reads),
        token_bytes=token_mib * _MIB,
        idle_seconds=idle_seconds,
        silent_seconds=silent_seconds,
        rows_per_second=rows_per_second,
        streams=streams,
        streams_per_client=streams_per_client,
    )
    security = Security(tls_certificate, tls_key, tls_clients, tokens, insecure)
    run_gate(
        address,
        folder,
        limits,
        security,
        controller=controller,
        controller_tls=TLS(controller_roots, tls_certificate, tls_key) if controller_roots else None,
        advertise=advertise,
        accept_loss=accept_loss,
        give_up=tuple(_range(each) for each in give_up or ()),
    )


def _bound_memory(mib: int) -> None:
    """Give Arrow this much memory and no more; it takes effect when Arrow is loaded.

    Flight decompresses a message before anyone can look at its size, and a few kilobytes can say that they
    are gigabytes. An allocation beyond the reserve fails, and with it only the call that asked for it.
    """
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "mimalloc"
    os.environ["MIMALLOC_RESERVE_OS_MEMORY"] = f"{mib}MiB"
    os.environ["MIMALLOC_DISALLOW_OS_ALLOC"] = "1"


def _keep_memory() -> None:
    """Let the C library keep the memory of messages for the next ones, as far as it knows how.

    Flight receives every message into new memory. Left to itself glibc gives that back to the system and
    takes it again, message by message: every page is then filled with zeros first, which was a fifth of the
    time of a gate with batches of 10,000 rows. What is kept is at most what was once in use.
    """
    with suppress(AttributeError, OSError):  # a C library without it has an allocator of another kind
        tune = ctypes.CDLL(None).mallopt
        tune(_M_MMAP_THRESHOLD, 32 * _MIB)
        tune(_M_TRIM_THRESHOLD, 256 * _MIB)


def _range(text: str) -> tuple[str, int, int]:
    """The stream and the rows [low, high) of STREAM:LOW-HIGH."""
    stream, _, rows = text.rpartition(":")
    low, _, high = rows.partition("-")
    if not stream or not low.isdecimal() or not high.isdecimal() or int(low) >= int(high):
        raise typer.BadParameter(f"{text!r} names no rows; give STREAM:LOW-HIGH, such as reports/a:500-900")
    return stream, int(low), int(high)
