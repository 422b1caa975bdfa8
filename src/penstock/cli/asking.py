"""What the commands that ask a running controller have in common: where it is, and how answers are shown."""

import json as json_text
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from penstock.ingest.wire import Endpoint

__all__ = ["Controller", "Json", "Roots", "TLSCertificate", "TLSKey", "Watch", "asked", "shown"]

_CLEAR = "\x1b[2J\x1b[H"
Controller = Annotated[
    str, typer.Option("--controller", help="Address of the controller; A/B if another stands by.")
]
Roots = Annotated[Path | None, typer.Option("--tls-roots", help="PEM file of roots to trust; turns on TLS.")]
TLSCertificate = Annotated[
    Path | None, typer.Option("--tls-certificate", help="PEM file of a certificate, for mutual TLS.")
]
TLSKey = Annotated[Path | None, typer.Option("--tls-key", help="PEM file of the key of that certificate.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Watch = Annotated[
    float | None,
    typer.Option("--watch", min=0.1, help="Show it again every so many seconds, until Ctrl-C."),
]


@contextmanager
def asked(
    address: str, roots: Path | None, certificate: Path | None, key: Path | None
) -> Iterator["Endpoint"]:
    """A controller or gate to ask, with the token in PENSTOCK_TOKEN."""
    from penstock.ingest import TLS  # noqa: PLC0415 -- --help does not need Flight
    from penstock.ingest.security import Access  # noqa: PLC0415
    from penstock.ingest.wire import CONTROLLER_PORT, Endpoint  # noqa: PLC0415

    tls = TLS(roots, certificate, key) if roots or certificate else None
    with Endpoint(address, Access(tls), port=CONTROLLER_PORT) as endpoint:
        yield endpoint


def shown(
    look: Callable[[], Mapping[str, Any]],
    show: Callable[[Mapping[str, Any]], None],
    *,
    json: bool,
    watch: float | None = None,
) -> None:
    """Show what `look` finds, as one JSON object or for people, once or every `watch` seconds."""
    while True:
        found = look()
        if json:
            sys.stdout.write(json_text.dumps(found) + "\n")
            sys.stdout.flush()
        else:
            if watch is not None and sys.stdout.isatty():
                typer.echo(_CLEAR, nl=False)
            show(found)
        if watch is None:
            return
        try:
            time.sleep(watch)
        except KeyboardInterrupt:
            return
