"""Live streams that clients push to gates."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.checks import printable, short, whole_number
from penstock.connect.source import Source, SourceContext
from penstock.errors import BadSource
from penstock.expressions.durations import microseconds
from penstock.expressions.schema import Schema

if TYPE_CHECKING:
    from penstock.connect.sources.gates_reader import GatesReader
    from penstock.ingest import TLS

__all__ = ["ROWS_PER_EPOCH", "GatesSource", "gates"]

ROWS_PER_EPOCH: Final = 1_000_000
"""The default of the rows that an epoch takes."""

_MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, repr=False)
class GatesSource(Source):
    """The streams of one inlet; `patience` is in microseconds. The token never appears in text."""

    addresses: tuple[str, ...]
    inlet: str | None
    stream_column: str | None
    rows_per_epoch: int | None
    patience: int
    token: str | None = field(default=None, repr=False)
    tls: "TLS | None" = None

    @property
    def bounded(self) -> bool:
        """Clients can always push more."""
        return False

    def conform(self, name: str, schema: Schema) -> "GatesSource":
        """Default the inlet to the stream's name, and check that the column of stream ids holds text."""
        inlet = self.inlet or name
        if self.stream_column is None:
            return replace(self, inlet=inlet)
        column = schema.column(self.stream_column)
        if column.type != "string":
            raise BadSource(
                f"stream_column {column.name!r} of stream {name!r} is {column.type}; declare it as string, "
                "since it holds ids"
            )
        return replace(self, inlet=inlet, stream_column=column.name)

    def open(self, context: SourceContext) -> "GatesReader":
        """Read offsets on the driver, and rows in tasks that ask the gates themselves."""
        from penstock.connect.sources.gates_reader import GatesReader  # noqa: PLC0415 -- it needs Flight

        return GatesReader(self, context)

    def __repr__(self) -> str:
        given = [repr(", ".join(self.addresses))]
        given += [f"inlet={self.inlet!r}"] if self.inlet else []
        given += [f"stream_column={self.stream_column!r}"] if self.stream_column else []
        limited = self.rows_per_epoch != ROWS_PER_EPOCH
        given += [f"rows_per_epoch={self.rows_per_epoch}"] if limited else []
        return f"gates({', '.join(given)})"


def gates(  # noqa: PLR0913 -- each is one documented property of the source
    address: str,
    *,
    inlet: str | None = None,
    stream_column: str | None = None,
    rows_per_epoch: int | None = ROWS_PER_EPOCH,
    patience: str | timedelta = "5 minutes",
    token: str | None = None,
    tls: "TLS | None" = None,
) -> GatesSource:
    """Live streams that clients push to gates; a run over them has no end.

    `address` is that of a gate or a controller, or several separated by commas; a controller and the one
    that stands by for it are one address, as "a:7300/b:7300". The source reads all streams of one `inlet`,
    by default the one with the stream's name. `stream_column` names the column of the schema that receives
    the id of each tuple's stream; use it as the `key` of the stream. `rows_per_epoch`, by default a
    million, is shared fairly among the streams; None takes all available rows. `patience` is how long a
    running epoch waits for a gate that does not answer. `token` defaults to the variable PENSTOCK_TOKEN;
    `tls` is a `penstock.TLS`.

    >>> gates("127.0.0.1:7400, 127.0.0.1:7401", inlet="reports", token="sesame")
    gates('127.0.0.1:7400, 127.0.0.1:7401', inlet='reports')
    """
    addresses = tuple(each.strip() for each in address.split(",")) if isinstance(address, str) else ()
    if not addresses or not all(addresses):
        raise BadSource(
            f"address {short(address)}; give the address of a gate or a controller, such as '127.0.0.1:7400'"
        )
    if rows_per_epoch is not None:
        rows_per_epoch = whole_number(
            "rows_per_epoch", rows_per_epoch, 1, _MOST_ROWS, BadSource, hint=", or None for all"
        )
    if inlet is not None and (not isinstance(inlet, str) or not inlet or "/" in inlet):
        raise BadSource(f"inlet {short(inlet)}; give the part before the slash of the streams' ids")
    if stream_column is not None:
        printable("stream_column", stream_column, BadSource)
    if token is not None and not isinstance(token, str):
        # The token itself must not appear in any text.
        raise BadSource(f"token is {type(token).__name__}; give the text that `penstock token` printed")
    _check_tls(tls)
    return GatesSource(
        addresses=addresses,
        inlet=inlet,
        stream_column=stream_column,
        rows_per_epoch=rows_per_epoch,
        patience=microseconds(patience),
        token=token,
        tls=tls,
    )


def _check_tls(given: object) -> None:
    if given is None:
        return
    from penstock.ingest import TLS  # noqa: PLC0415 -- a source without TLS needs no Flight

    if not isinstance(given, TLS):
        raise BadSource(f"tls is {type(given).__name__}; give a penstock.TLS")
