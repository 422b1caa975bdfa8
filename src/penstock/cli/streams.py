"""`penstock streams`: the streams of a controller or a gate: rate, forecast, metadata, gate, lag."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from penstock.cli.asking import Json, Roots, TLSCertificate, TLSKey, Watch, asked, shown

__all__ = ["streams"]


def streams(  # noqa: PLR0913 -- each is one option of the command
    address: Annotated[str, typer.Argument(help="Address of a controller or a gate.")] = "127.0.0.1:7300",
    *,
    inlet: Annotated[str | None, typer.Option(help="Only the streams of this inlet.")] = None,
    declare: Annotated[
        str | None,
        typer.Option(
            metavar="STREAM",
            help="Say what is known of this stream's rate, with --metadata; it need not flow yet.",
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A characteristic, such as max_rate=500. May be repeated."),
    ] = None,
    watch: Watch = None,
    tls_roots: Roots = None,
    tls_certificate: TLSCertificate = None,
    tls_key: TLSKey = None,
    json: Json = False,
) -> None:
    """List streams: state, rows per second, the forecast, what is declared, the gate, what waits where.

    Lag counts the rows that readers have not committed or that wait at the client; oldest is how long the
    oldest of these waits at the client. The token comes from PENSTOCK_TOKEN.

    Example: penstock streams 127.0.0.1:7300 --inlet reports

    Example: penstock streams 127.0.0.1:7300 --declare reports/taxi-1 --metadata expected_rate=500
    """
    from penstock.errors import BadMetadata  # noqa: PLC0415
    from penstock.ingest.wire.protocol import (  # noqa: PLC0415
        Declare,
        GateStatisticsRequest,
        StreamListRequest,
        WhereRequest,
        inlet_of,
    )

    if (declare is None) != (not metadata):
        raise BadMetadata("give --declare STREAM together with --metadata NAME=VALUE")
    with asked(address, tls_roots, tls_certificate, tls_key) as endpoint:
        if declare is not None:
            endpoint.ask(Declare(declare, _characteristics(metadata or [])))
            inlet = inlet or inlet_of(declare)
        at_controller = endpoint.offers(WhereRequest)

        def look() -> dict[str, Any]:
            if at_controller:
                return {"address": address, "streams": list(endpoint.ask(StreamListRequest(inlet)).streams)}
            told = endpoint.ask(GateStatisticsRequest())
            found = [
                _at_gate(stream, each, told.gate)
                for stream, each in sorted(told.streams.items())
                if inlet is None or inlet_of(stream) == inlet
            ]
            return {"address": address, "streams": found}

        shown(look, _print, json=json, watch=watch)


def _at_gate(stream: str, told: Mapping[str, Any], gate: str) -> dict[str, Any]:
    """A gate knows its own part: no rates, since it keeps counts, and no forecasts."""
    return {
        "stream": stream,
        "gate": gate,
        "state": "connected" if told["connected"] else "quiet",
        "rate": None,
        "forecast": None,
        "frontier": told["frontier"],
        "next": told["next"],
        "client_rows": told["client_rows"],
        "oldest_seconds": told["oldest_seconds"],
        "lag": told["kept_rows"] + told["client_rows"],
        "metadata": told.get("metadata", {}),
    }


def _characteristics(given: Sequence[str]) -> dict[str, Any]:
    from penstock.errors import BadMetadata  # noqa: PLC0415

    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise BadMetadata(f"{each!r} is no characteristic; give NAME=VALUE, such as max_rate=500")
        try:
            found[name] = value if name == "transition" else float(value)
        except ValueError:
            raise BadMetadata(f"{name}={value!r}; give a number from 0") from None
    return found


def _print(listed: Mapping[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 -- slow to import
    from rich.table import Table  # noqa: PLC0415

    found = listed["streams"]
    table = Table(box=None)
    table.add_column("stream")
    table.add_column("state")
    for name in ("rows/s", "forecast", "next", "lag", "oldest"):
        table.add_column(name, justify="right")
    for name in ("gate", "metadata"):
        table.add_column(name)
    for each in found:
        said = ", ".join(
            f"{name}={value:g}" if name != "transition" else str(value)
            for name, value in each["metadata"].items()
        )
        table.add_row(
            each["stream"],
            each["state"],
            *("" if each[name] is None else f"{each[name]:,.1f}" for name in ("rate", "forecast")),
            f"{each['next']:,}",
            f"{each['lag']:,}",
            f"{each['oldest_seconds']:.1f} s",
            each["gate"] or "none yet",
            said,
        )
    console = Console()
    if found:
        console.print(table)
    console.print(f"{len(found):,} streams")
