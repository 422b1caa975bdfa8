"""What readers get from a gate: the index of the ranges it holds, and the rows of ranges, in order.

A batch costs about 0.3 ms from gate to reader however few rows it has, and a stream of a few rows a second is
all small batches; so small batches, also of several streams, are joined if the reader asks for it.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import BadMessage, NotAllowed, TooMany
from penstock.ingest.log.log import Log
from penstock.ingest.security.tokens import ALL, Rights
from penstock.ingest.wire.protocol import BatchLabel, IndexTicket, ReadTicket, inlet_of

__all__ = ["MOST_BYTES", "MOST_ROWS", "index", "joined", "rows", "separate"]

MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 16 << 20
_INDEX: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("frontier", pa.int64()),
        ("frontier_at", pa.int64()),
        ("bytes", pa.int64()),
        ("last_ms", pa.int64()),
        ("given_up", pa.bool_()),
    ]
)
NumberedRows: TypeAlias = tuple[str, int, Any]
"""A stream, the sequence of the first row, and the rows."""


def index(log: Log, ticket: IndexTicket, rights: Rights = ALL) -> pa.Table:
    """The ranges that a gate holds of an inlet; with `since` only of streams that changed after it.

    The next `since` is the ``generation`` in the schema's metadata. One from before a restart gives all
    ranges. `bytes` and `last_ms` are those of the stream, repeated with each of its ranges. Rows that were
    given up here are ranges of their own. `frontier` is the last promise of the stream: it holds for rows
    from the number `frontier_at` on. The metadata also has the name of the ``log``.
    """
    generation = log.generation
    lines = [
        (stream, low, high, *(held.promise or (None, None)), held.bytes, held.arrived, given_up)
        for stream, low, high, held, given_up in log.ranges(ticket.inlet, ticket.since)
        if rights.may_read(stream)
    ]
    columns = list(zip(*lines, strict=True)) or [()] * len(_INDEX)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _INDEX, strict=True)]
    about = {"generation": generation, "log": log.catalogue.log}
    return pa.table(arrays, schema=_INDEX.with_metadata(about))


def rows(
    log: Log, ticket: ReadTicket, rights: Rights = ALL, most_ranges: int = 2**63
) -> tuple[pa.Schema, Iterator[Any]]:
    """The schema and the labelled record batches of the ranges that a ticket names.

    Before the first row is read this costs a look at each range, O(log n); then memory for one batch.
    """
    schema = log.catalogue.schema(ticket.inlet)
    _check(ticket, rights, most_ranges)
    for stream, low, high in ticket.ranges:
        log.check_held(stream, low, high)
    timed = _with_column(schema, "arrived_column", ticket.arrived_column, pa.int64())
    result = _with_column(timed, "stream_column", ticket.stream_column, pa.string())
    read = (
        (stream, sequence, batch if timed is schema else _timed(batch, arrived, timed))
        for stream, low, high in ticket.ranges
        for sequence, arrived, batch in log.read_range(stream, low, high, schema)
    )
    return result, joined(read, result, ticket.together) if ticket.together else separate(read, result)


def separate(given: Iterator[NumberedRows], schema: pa.Schema) -> Iterator[tuple[Any, bytes]]:
    """Every batch by itself, with its label."""
    for stream, sequence, batch in given:
        yield _labelled([batch], [(stream, sequence, batch.num_rows)], schema)


def joined(given: Iterator[NumberedRows], schema: pa.Schema, most: int) -> Iterator[tuple[Any, bytes]]:
    """Batches joined up to `most` rows, each with its label; order and sequences stay as they are."""
    held: list[Any] = []
    runs: list[tuple[str, int, int]] = []
    count = size = 0
    for stream, sequence, batch in given:
        if held and (count + batch.num_rows > min(most, MOST_ROWS) or size + batch.nbytes > MOST_BYTES):
            yield _labelled(held, runs, schema)
            held, runs, count, size = [], [], 0, 0
        held.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if runs and runs[-1][0] == stream and runs[-1][1] + runs[-1][2] == sequence:
            runs[-1] = (stream, runs[-1][1], runs[-1][2] + batch.num_rows)
        else:
            runs.append((stream, sequence, batch.num_rows))
    if held:
        yield _labelled(held, runs, schema)


def _labelled(batches: list[Any], runs: list[tuple[str, int, int]], schema: pa.Schema) -> tuple[Any, bytes]:
    """One batch of the schema, whose last column holds the streams if the rows have none for it."""
    label = BatchLabel(tuple(runs)).encode()
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    if len(schema) == whole.num_columns:
        return whole, label
    names = pa.array([run[0] for run in runs], pa.string())
    stream = names.take(pa.array(np.repeat(np.arange(len(runs)), [run[2] for run in runs])))
    return pa.record_batch([*whole.columns, stream], schema=schema), label


def _timed(batch: Any, arrived_ms: int, schema: pa.Schema) -> Any:
    """The rows of one record with the time at which they arrived."""
    arrived = np.full(batch.num_rows, arrived_ms * 1000, np.int64)
    return pa.record_batch([*batch.columns, pa.array(arrived)], schema=schema)


def _with_column(schema: pa.Schema, what: str, column: str | None, type_: Any) -> pa.Schema:
    if column is None:
        return schema
    if column in schema.names:
        raise BadMessage(f"{what}={column!r} is a column of the inlet already; give another name")
    return schema.append(pa.field(column, type_, nullable=False))


def _check(ticket: ReadTicket, rights: Rights, most_ranges: int) -> None:
    if len(ticket.ranges) > most_ranges:
        raise TooMany(f"a ticket of {len(ticket.ranges):,} ranges; at most {most_ranges:,} are read at once")
    ends: dict[str, int] = {}
    for stream, low, high in ticket.ranges:
        if low < ends.get(stream, 0):
            raise BadMessage(
                f"range {low} to {high} of stream {stream!r} comes after one that ends at {ends[stream]}; "
                "ask for each row once, in ascending order"
            )
        ends[stream] = high
        if inlet_of(stream) != ticket.inlet:
            raise BadMessage(f"stream {stream!r} is not of inlet {ticket.inlet!r}; read each inlet by itself")
        if not rights.may_read(stream):
            raise NotAllowed(f"this token may not read stream {stream!r}; use one whose read rights cover it")
