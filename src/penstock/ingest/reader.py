"""One gate as a reader sees it: the ranges it holds and the rows in them.

Rows come exactly in the order that was asked for, and every batch says what it is; a gate that gives
anything else is an error and never wrong rows.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

from penstock.errors import Refused
from penstock.ingest.access import Access
from penstock.ingest.dial import Line, told

__all__ = ["BATCH_ROWS", "INDEX", "GateReader", "Wanted"]

Wanted = tuple[str, int, int]
"""A stream and its sequences [first, last)."""

BATCH_ROWS: Final = 50_000
"""Up to so many rows come as one batch."""

INDEX: Final = pa.schema([("stream", pa.string()), ("low", pa.int64()), ("high", pa.int64())])
"""The columns of an index that a reader goes by."""


class GateReader:
    """Calls to one gate: `GateAway` if it does not answer, `Refused` if it says no."""

    def __init__(self, address: str, access: Access) -> None:
        self.address = address
        self._access = access
        self._open: Line | None = None
        self._generation: str | None = None
        self._held: Any = INDEX.empty_table()

    def index(self, inlet: str) -> Any:
        """The ranges of every stream of an inlet that the gate holds; only what is new goes over the wire."""
        table = self.line.table({"op": "index", "inlet": inlet, "since": self._generation})
        told = (table.schema.metadata or {}).get(b"generation", b"").decode()
        news = table.select(INDEX.names).cast(INDEX)
        self._held = news if _boot(told) != _boot(self._generation) else _renewed(self._held, news)
        self._generation = told or None
        return self._held

    def rows(self, inlet: str, wanted: Sequence[Wanted], stream_column: str | None) -> Iterator[Any]:
        """The rows of the given ranges in the order given; no timeout, since whoever reads may be slow."""
        ticket = {
            "op": "read",
            "inlet": inlet,
            "ranges": wanted,
            "stream_column": stream_column,
            "together": BATCH_ROWS,
        }
        order = _Order(self.address, wanted)
        line = self.line
        try:
            encoded = fl.Ticket(json.dumps(ticket, separators=(",", ":")).encode())
            for chunk in line.flight.do_get(encoded, line.access.options()):
                order.check_all(json.loads(chunk.app_metadata.to_pybytes()), chunk.data.num_rows)
                yield chunk.data
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise told(error, line.address) from None
        order.check_end()

    @property
    def line(self) -> Line:
        """The way to the gate, opened with the first call."""
        if self._open is None:
            self._open = Line(self.address, self._access)
        return self._open

    def close(self) -> None:
        """Let the connection go; the next call opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _boot(generation: str | None) -> str | None:
    """The start of a gate that a generation belongs to; what is from before another one is void."""
    return generation.partition(":")[0] if generation else None


def _renewed(held: Any, news: Any) -> Any:
    """The ranges held, with all those of the streams in the news replaced by them."""
    if not news.num_rows:
        return held
    same = pc.invert(pc.is_in(held["stream"], value_set=news["stream"].combine_chunks()))
    return pa.concat_tables([held.filter(same), news]).combine_chunks()


class _Order:
    """What has to come next."""

    def __init__(self, address: str, wanted: Sequence[Wanted]) -> None:
        self._address = address
        self._due = iter(wanted)
        self._stream, self._at, self._last = next(self._due)

    def check_all(self, said: dict[str, Any], rows: int) -> None:
        """Refuse a batch that is not the next one, or whose runs are not those of its rows."""
        runs = said["runs"] if "runs" in said else [(said["stream"], said["sequence"], rows)]
        for run in runs:
            self._check(*run)
        if sum(run[2] for run in runs) != rows:
            raise Refused(
                f"gate {self._address} gave {rows} rows as {said}; give gate and run the same version"
            )

    def _check(self, stream: str, sequence: int, rows: int) -> None:
        if self._at == self._last:
            self._stream, self._at, self._last = next(self._due, ("", 0, 0))
        if (stream, sequence) != (self._stream, self._at) or self._at + rows > self._last:
            raise Refused(
                f"gate {self._address} gave {rows} rows of {stream!r} from {sequence}, due was "
                f"{self._stream!r} {self._at} to {self._last}; give gate and run the same version"
            )
        self._at += rows

    def check_end(self) -> None:
        """Refuse an end before the last row."""
        if self._at != self._last or next(self._due, None) is not None:
            raise Refused(
                f"gate {self._address} ended {self._stream!r} at {self._at}, due was {self._last}; see that "
                "its folder is the one that it had before"
            )
