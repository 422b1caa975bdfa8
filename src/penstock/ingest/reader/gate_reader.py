"""Rows out of gates, through their failures: each row that was asked for, in order, once.

Every batch names its rows, and a batch that is not the next one is an error, never wrong rows. What a gate
gave before it went away is kept; the rest is asked for when it is back. Batches of several gates are joined,
because every batch costs a task about as much as a thousand rows.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

from penstock.errors import BadMessage, BadSource, DamagedRows, GateAway, Refused
from penstock.ingest.security.access import Access
from penstock.ingest.wire.flight import Endpoint, ingest_error
from penstock.ingest.wire.protocol import BatchLabel, IndexTicket, ReadTicket

__all__ = [
    "BATCH_ROWS",
    "INDEX",
    "GateReader",
    "Gathering",
    "Part",
    "Wanted",
    "conformed",
    "remaining",
    "resumed",
]

Wanted = tuple[str, int, int]
"""A stream and its sequences [first, last)."""

BATCH_ROWS: Final = 100_000
"""Up to this many rows come as one batch."""

INDEX: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("given_up", pa.bool_()),
        ("frontier", pa.int64()),
        ("frontier_at", pa.int64()),
    ]
)
"""The columns of an index that a reader needs."""


class GateReader:
    """Calls to one gate: `GateAway` if it does not answer, `Refused` if it says no."""

    def __init__(self, address: str, access: Access) -> None:
        self.address = address
        self._access = access
        self._open: Endpoint | None = None
        self._generation: str | None = None
        self._held: Any = INDEX.empty_table()
        self.log: str | None = None
        """The name of the log that the gate had when it was last asked."""

    def index(self, inlet: str) -> Any:
        """The ranges of every stream of an inlet that the gate holds; only what is new goes over the wire."""
        table = self.endpoint.index(IndexTicket(inlet, self._generation))
        generation = (table.schema.metadata or {}).get(b"generation", b"").decode()
        missing = [name for name in INDEX.names if name not in table.column_names]
        if missing:
            raise Refused(
                f"gate {self.address} does not tell {', '.join(missing)} of the rows that it holds; give "
                "gate and run the same version"
            )
        news = table.select(INDEX.names).cast(INDEX)
        self._held = news if _boot(generation) != _boot(self._generation) else _renewed(self._held, news)
        self._generation = generation or None
        self.log = (table.schema.metadata or {}).get(b"log", b"").decode() or None
        return self._held

    def rows(
        self, inlet: str, wanted: Sequence[Wanted], stream_column: str | None, arrived: str | None = None
    ) -> Iterator[Any]:
        """The rows of the ranges in the order given; without a timeout, since the reader may be slow."""
        ticket = ReadTicket(inlet, tuple(wanted), stream_column, BATCH_ROWS, arrived)
        order = _Order(self.address, wanted)
        endpoint = self.endpoint
        try:
            encoded = fl.Ticket(ticket.encode())
            for chunk in endpoint.flight.do_get(encoded, endpoint.access.options()):
                order.check_all(_runs(self.address, chunk), chunk.data.num_rows)
                yield chunk.data
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise ingest_error(error, endpoint.address) from None
        order.check_end()

    @property
    def endpoint(self) -> Endpoint:
        """The channel to the gate, opened with the first call."""
        if self._open is None:
            self._open = Endpoint(self.address, self._access)
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


def _runs(address: str, chunk: Any) -> tuple[tuple[str, int, int], ...]:
    try:
        return BatchLabel.decode(chunk.app_metadata and chunk.app_metadata.to_pybytes()).runs
    except BadMessage as error:
        raise Refused(f"gate {address} gave rows that it does not name: {error}") from None


class _Order:
    """What has to come next."""

    def __init__(self, address: str, wanted: Sequence[Wanted]) -> None:
        self._address = address
        self._due = iter(wanted)
        self._stream, self._at, self._last = next(self._due)

    def check_all(self, runs: Sequence[tuple[str, int, int]], rows: int) -> None:
        """Refuse a batch that is not the next one, or whose runs are not those of its rows."""
        for run in runs:
            self._check(*run)
        if sum(run[2] for run in runs) != rows:
            raise Refused(
                f"gate {self._address} gave {rows} rows as {str(runs)[:80]}; run the same version everywhere"
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


_PAUSE_S: Final = 0.2
_LOGGER = logging.getLogger("penstock.run")


@dataclass(frozen=True)
class Part:
    """What to ask of one gate; `others` may hold the same rows."""

    gate: str
    wanted: tuple[Wanted, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gathering:
    """How the rows of an inlet are fetched; `patience` is how many seconds a gate may be away.

    `arrived` names the column of the schema that gets the time of each row's arrival at its gate.
    """

    inlet: str
    access: Access
    schema: Any
    stream_column: str | None
    patience: float
    arrived: str | None = None

    def rows(self, parts: Sequence[Part], columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Record batches of the schema, part after part; with `columns` only these and `arrived`."""
        kept = self.schema.names if columns is None else {*columns, self.arrived}
        schema = pa.schema([field for field in self.schema if field.name in kept])
        held: list[Any] = []
        count = 0
        for batch in self._given(parts):
            held.append(batch)
            count += batch.num_rows
            if count >= BATCH_ROWS:
                yield self._together(held, schema)
                held, count = [], 0
        if held:
            yield self._together(held, schema)

    def _given(self, parts: Sequence[Part]) -> Iterator[Any]:
        for part in parts:
            given = 0
            try:
                for batch in resumed(partial(self._once, part.gate), part.wanted, self.patience):
                    given += batch.num_rows
                    yield batch
            except DamagedRows as error:
                yield from self._salvaged(part, remaining(part.wanted, given), error)

    def _salvaged(self, part: Part, wanted: Sequence[Wanted], error: DamagedRows) -> Iterator[Any]:
        """The rows of a gate some of whose files are damaged: those that it cannot give, from other gates."""
        for stream, first, last in wanted:
            at = first
            while at < last:
                try:
                    for batch in resumed(partial(self._once, part.gate), [(stream, at, last)], self.patience):
                        at += batch.num_rows
                        yield batch
                except DamagedRows as found:
                    error = found
                else:
                    break
                for batch in self._elsewhere(part, stream, at, last, error):
                    at += batch.num_rows
                    yield batch

    def _elsewhere(self, part: Part, stream: str, first: int, last: int, error: DamagedRows) -> Iterator[Any]:
        """As many rows from `first` on as another gate holds; at least one."""
        for gate in part.others:
            high = min(self._reach(gate, stream, first), last)
            if high > first:
                _LOGGER.warning(
                    "rows %d to %d of %s come from gate %s: %s", first, high, stream, gate, str(error)[:300]
                )
                yield from resumed(partial(self._once, gate), [(stream, first, high)], self.patience)
                return
        raise DamagedRows(
            f"row {first} of stream {stream!r} is damaged at gate {part.gate}, and no other gate that answers"
            f" ({', '.join(part.others) or 'there is none'}) holds it: {error}"
        )

    def _reach(self, gate: str, stream: str, first: int) -> int:
        """How far a gate holds rows of a stream from `first` on; `first` if it does not answer."""
        reader = GateReader(gate, self.access)
        try:
            held = reader.index(self.inlet)
        except (GateAway, Refused):
            return first
        finally:
            reader.close()
        lines = held.filter(pc.and_(pc.equal(held["stream"], stream), pc.invert(held["given_up"])))
        ranges = zip(lines["low"].to_pylist(), lines["high"].to_pylist(), strict=True)
        return max((high for low, high in ranges if low <= first), default=first)

    def _once(self, gate: str, wanted: Sequence[Wanted]) -> Iterator[Any]:
        reader = GateReader(gate, self.access)
        try:
            yield from reader.rows(self.inlet, wanted, self.stream_column, self.arrived)
        finally:
            reader.close()

    def _together(self, batches: list[Any], schema: Any) -> Any:
        """One batch; only columns of several chunks are copied."""
        table = conformed(pa.Table.from_batches(batches), schema, self.inlet)
        columns = [
            each.chunk(0) if each.num_chunks == 1 else pa.concat_arrays(each.chunks) for each in table.columns
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if len(schema) == len(self.schema):
            return batch
        # What is not copied keeps a whole message alive, with all the columns that nobody asked for.
        return pa.ipc.read_record_batch(batch.serialize(), schema)


def resumed(
    fetch: Callable[[Sequence[Wanted]], Iterator[Any]], wanted: Sequence[Wanted], patience: float
) -> Iterator[Any]:
    """The batches of the ranges in order; asks again for the rest, for up to `patience` seconds."""
    given = 0
    heard = time.monotonic()
    while rest := remaining(wanted, given):
        try:
            for batch in fetch(rest):
                given += batch.num_rows
                yield batch
                heard = time.monotonic()
        except GateAway as error:
            if time.monotonic() - heard > patience:
                raise GateAway(
                    f"{error}, for {patience:.0f} s now; it holds rows of an epoch under way: start it again "
                    "on the same folder, then the run, which continues where it was"
                ) from error
            time.sleep(_PAUSE_S)


def remaining(wanted: Sequence[Wanted], given: int) -> list[Wanted]:
    """The ranges without their first rows.

    >>> remaining([("a", 0, 10), ("b", 5, 9)], 12)
    [('b', 7, 9)]
    """
    left = []
    for stream, first, last in wanted:
        skipped = min(given, last - first)
        given -= skipped
        if first + skipped < last:
            left.append((stream, first + skipped, last))
    return left


def conformed(table: Any, schema: Any, inlet: str) -> Any:
    """The columns of the schema out of a table of rows, with their types."""
    from penstock.expressions.types import from_arrow  # noqa: PLC0415 -- it imports a parser of SQL

    known = {name.lower(): place for place, name in enumerate(table.column_names)}
    columns = []
    for field in schema:
        place = known.get(field.name.lower())
        if place is None:
            raise BadSource(
                f"the rows of inlet {inlet!r} have no column {field.name!r}; they have "
                f"{', '.join(table.column_names)}: correct the schema of the stream"
            )
        column = table.column(place)
        if from_arrow(column.type) != from_arrow(field.type):
            raise BadSource(
                f"column {field.name!r} of inlet {inlet!r} is {from_arrow(column.type)}, declared is "
                f"{from_arrow(field.type)}: correct the schema of the stream"
            )
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)
