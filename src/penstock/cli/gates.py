"""`penstock gates`: the gates of a controller, and what an operator asks of them."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from penstock.cli.asking import Controller, Json, Roots, TLSCertificate, TLSKey, Watch, asked, shown

__all__ = ["gates"]

_AT = "127.0.0.1:7300"
_WIDE = 1000
gates = typer.Typer(
    invoke_without_command=True, rich_markup_mode=None, context_settings={"max_content_width": 110}
)


@gates.callback()
def listed(  # noqa: PLR0913 -- each is one option of the command
    context: typer.Context,
    *,
    controller: Controller = _AT,
    watch: Watch = None,
    json: Json = False,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """List gates: state, streams, load, forecast and capacity, disk, and why they were last decided on.

    Load, forecast and capacity are work as admission counts it: parts of a usual gate, or rows a second under
    --capacity. Readers that have been silent for long and keep a gate from deleting rows are named below. The
    token comes from PENSTOCK_TOKEN.

    Example: penstock gates --controller 127.0.0.1:7300

    Example: penstock gates drain 127.0.0.1:7401
    """
    if context.invoked_subcommand is not None:
        return
    from penstock.ingest.wire.protocol import GateListRequest  # noqa: PLC0415 -- --help does not need Flight

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:

        def look() -> dict[str, Any]:
            known = running.ask(GateListRequest())
            return {"address": controller, "gates": list(known.gates), "forgotten": list(known.forgotten)}

        shown(look, _show_gates, json=json, watch=watch)


@gates.command()
def redirect(  # noqa: PLR0913 -- each is one option of the command
    streams: Annotated[list[str], typer.Argument(help="The streams to move.", metavar="STREAM...")],
    gate: Annotated[str, typer.Argument(help="The gate that they go to.")],
    *,
    controller: Controller = _AT,
    json: Json = False,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Move streams to a gate. A strategy may move them again later, unless --exclude names them.

    Example: penstock gates redirect reports/taxi-1 127.0.0.1:7401
    """
    from penstock.ingest.wire.protocol import MoveStreams  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        found = running.ask(MoveStreams(tuple(streams), gate))
    shown(found.to_object, _show_moved, json=json)


@gates.command()
def drain(  # noqa: PLR0913 -- as above
    gate: Annotated[str, typer.Argument(help="The gate to empty.")],
    *,
    controller: Controller = _AT,
    json: Json = False,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Move all streams away from a gate, and use it no more before `penstock gates use` says so.

    A gate that the controller has started ends when its rows are read.

    Example: penstock gates drain 127.0.0.1:7401
    """
    from penstock.ingest.wire.protocol import DrainGate  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        found = running.ask(DrainGate(gate))
    shown(found.to_object, _show_moved, json=json)


@gates.command()
def use(
    gate: Annotated[str, typer.Argument(help="The gate.")],
    *,
    controller: Controller = _AT,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Use a gate again that was drained.

    Example: penstock gates use 127.0.0.1:7401
    """
    from penstock.ingest.wire.protocol import UseGate  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        running.ask(UseGate(gate))


@gates.command()
def forget(
    gate: Annotated[str, typer.Argument(help="The gate whose rows are lost for good.")],
    *,
    controller: Controller = _AT,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Say that a gate does not come back, and that what it held is lost; readers go on without it.

    Example: penstock gates forget 127.0.0.1:7401
    """
    from penstock.ingest.wire.protocol import Forget  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        running.ask(Forget(gate=gate))


@gates.command()
def forget_stream(
    streams: Annotated[list[str], typer.Argument(help="Streams that have ended.", metavar="STREAM...")],
    *,
    controller: Controller = _AT,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Forget streams that have ended. One that comes back goes on after its last number.

    Example: penstock gates forget-stream reports/taxi-1
    """
    from penstock.ingest.wire.protocol import Forget  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        running.ask(Forget(streams=tuple(streams)))


@gates.command()
def readers(  # noqa: PLR0913 -- as above
    *,
    controller: Controller = _AT,
    json: Json = False,
    watch: Watch = None,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """List the readers that gates keep rows for: the run of each, what it has had, when it was heard of.

    Example: penstock gates readers
    """
    from penstock.ingest.wire.protocol import ReaderListRequest  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        shown(
            lambda: {"address": controller, "readers": list(running.ask(ReaderListRequest()).readers)},
            _show_readers,
            json=json,
            watch=watch,
        )


@gates.command()
def forget_reader(
    reader: Annotated[
        str, typer.Argument(help="The reader, as `penstock gates readers` says.", metavar="INLET:READER")
    ],
    *,
    controller: Controller = _AT,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Say that a reader does not come back: gates delete what they kept for it.

    Example: penstock gates forget-reader reports:5f0c…
    """
    from penstock.ingest.wire.protocol import ForgetReader  # noqa: PLC0415 -- as above

    inlet, colon, name = reader.partition(":")
    if not colon:
        raise typer.BadParameter(
            f"{reader!r} names no reader; give INLET:READER, as `penstock gates readers` does"
        )
    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        running.ask(ForgetReader(inlet, name))


@gates.command()
def delete_inlet(
    inlet: Annotated[str, typer.Argument(help="The inlet: the part of stream ids before the slash.")],
    *,
    controller: Controller = _AT,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
) -> None:
    """Delete an inlet at all gates: its rows, also those that nobody has read, its schema and its readers.

    Nobody may push to it meanwhile. Its streams go on after their last numbers if they come again.

    Example: penstock gates delete-inlet reports
    """
    from penstock.ingest.wire.protocol import DeleteInlet  # noqa: PLC0415 -- as above

    with asked(controller, tls_roots, tls_certificate, tls_key) as running:
        running.ask(DeleteInlet(inlet), timeout=60.0)


def _show_gates(found: Mapping[str, Any]) -> None:
    names = ("streams", "rows/s", "load", "forecast", "capacity", "disk")
    columns = [("gate", "left"), ("state", "left"), *((each, "right") for each in names), ("why", "left")]
    rows = [
        (
            each["gate"],
            f"away for {each['silent_seconds']:.0f} s" if each["away"] else each["state"],
            f"{each['streams']:,}",
            f"{each['rate']:,.1f}",
            *(
                "" if each[name] is None else f"{each[name]:,.4g}"
                for name in ("load", "forecast", "capacity")
            ),
            _disk(each["info"]),
            each["why"] or "",
        )
        for each in found["gates"]
    ]
    _table(columns, rows)
    typer.echo(f"{len(rows)} gates")
    for each in found["forgotten"]:
        typer.echo(f"forgotten: {each}")
    for gate in found["gates"]:
        for each in gate["info"].get("holding", ()):
            typer.echo(_forgotten(gate["gate"], each))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _disk(info: Mapping[str, Any]) -> str:
    if info.get("store_bytes") is None:
        return ""
    return f"{info['store_bytes'] >> 20:,} of {(info['store_bytes'] + info['room_bytes']) >> 20:,} MiB"


def _forgotten(gate: str, each: Mapping[str, Any]) -> str:
    from penstock.ingest.gate.readers import remedy  # noqa: PLC0415 -- as above

    return (
        f"gate {gate} keeps {each['rows']:,} rows for reader {each['reader']} of inlet {each['inlet']}, "
        f"silent for {each['silent_seconds']:,.0f} s: "
        f"{remedy(each['inlet'], each['reader'], each['run'])}"
    )


def _show_moved(found: Mapping[str, Any]) -> None:
    typer.echo(f"{len(found['moved']):,} streams moved")
    if found["unreached"]:
        typer.echo(
            f"{len(found['unreached']):,} streams go when their clients ask, since their gate did not answer"
        )


def _show_readers(found: Mapping[str, Any]) -> None:
    rows = [
        (
            f"{each['inlet']}:{each['reader']}",
            each["run"] or "",
            f"{each['rows']:,}",
            "not since the start"
            if each["silent_seconds"] is None
            else f"{each['silent_seconds']:,.0f} s ago",
        )
        for each in found["readers"]
    ]
    _table([("reader", "left"), ("run", "left"), ("rows", "right"), ("heard of", "left")], rows)
    typer.echo(f"{len(rows)} readers")


def _heard(silent: float | None) -> str:
    return "not since the start" if silent is None else f"{silent:,.0f} s ago"


def _table(columns: Sequence[tuple[str, Any]], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 -- slow to import
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None)
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=name != "why")
    for row in rows:
        table.add_row(*row)
    if rows:
        # Wide where nobody looks: who reads lines wants each of them whole.
        width = None if sys.stdout.isatty() else _WIDE
        Console(width=width, highlight=False, markup=False).print(table)
