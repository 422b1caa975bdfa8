"""What readers get from a gate: the index of ranges it holds, and the rows of ranges, in order."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadMessage, NotAllowed
from penstock.ingest.bundles import bundled, singly
from penstock.ingest.intake import Intake
from penstock.ingest.rights import ALL, Rights
from penstock.ingest.wire import check_stream, inlet_of

__all__ = ["index", "rows", "with_stream"]

INDEX: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("frontier", pa.int64()),
        ("bytes", pa.int64()),
        ("last_ms", pa.int64()),
    ]
)


def index(intake: Intake, inlet: str, since: str | None, rights: Rights = ALL) -> pa.Table:
    """The ranges that a gate holds of an inlet; with `since` only of streams that changed after it.

    The next `since` is the ``generation`` in the schema's metadata. One from before a restart gives all.
    `bytes` and `last_ms` are those of the stream, said with each of its ranges.
    """
    log = intake.log
    generation = log.generation
    lines = [
        (stream, low, high, held.frontier, held.bytes, held.arrived)
        for stream, low, high, held in log.ranges(inlet, since)
        if rights.may_read(stream)
    ]
    columns = list(zip(*lines, strict=True)) or [()] * len(INDEX)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, INDEX, strict=True)]
    return pa.table(arrays, schema=INDEX.with_metadata({"generation": generation}))


def with_stream(schema: pa.Schema, column: str | None) -> pa.Schema:
    """The schema of rows that are read, with a column for the stream's id at the end if one is named."""
    if column is None:
        return schema
    if column in schema.names:
        raise BadMessage(f"stream_column={column!r} is a column of the inlet already; give another name")
    return schema.append(pa.field(column, pa.string(), nullable=False))


def rows(  # noqa: PLR0913 -- what a ticket says
    intake: Intake,
    inlet: str,
    ranges: Any,
    column: str | None,
    rights: Rights = ALL,
    *,
    together: int | None = None,
) -> tuple[pa.Schema, Iterator[Any]]:
    """The schema and the record batches of ranges [stream, from, to], each with its stream and sequence.

    With `together` batches are put together up to so many rows, also of several streams.
    """
    schema = intake.inlets.schema(inlet)
    wanted = [(each[0], intake.log.pieces(*each)) for each in _checked(inlet, ranges, rights)]
    result = with_stream(schema, column)

    read = (
        (stream, piece.sequence, intake.log.read(piece, schema))
        for stream, pieces in wanted
        for piece in pieces
    )
    return result, bundled(read, result, together) if together else singly(read, result)


def _checked(inlet: str, ranges: Any, rights: Rights) -> Sequence[tuple[str, int, int]]:
    if not isinstance(ranges, list):
        raise BadMessage(f"ranges is a {type(ranges).__name__}; give a list of [stream, from, to]")
    for each in ranges:
        match each:
            case [str(stream), int(low), int(high)] if 0 <= low <= high:
                check_stream(stream)
                if inlet_of(stream) != inlet:
                    raise BadMessage(
                        f"stream {stream!r} is not of inlet {inlet!r}; read each inlet by itself"
                    )
                if not rights.may_read(stream):
                    raise NotAllowed(
                        f"this token may not read stream {stream!r}; use one whose read rights cover it"
                    )
            case _:
                raise BadMessage(f"no range: {str(each)[:80]}; give [stream, from, to] with 0 <= from <= to")
    return [tuple(each) for each in ranges]
