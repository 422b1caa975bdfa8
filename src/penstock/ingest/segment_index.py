"""The index beside a closed segment: what a scan of it would find, without reading its rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from penstock.ingest.record import Header, checksum

__all__ = ["read_index", "write_index"]

_SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("stream", pa.string()),
        ("sequence", pa.int64()),
        ("rows", pa.int64()),
        ("frontier", pa.int64()),
        ("arrived", pa.int64()),
        ("stride", pa.int64()),
    ]
)
Line = tuple[int, str, int, int, int | None, int, int]
"""Offset, stream, sequence, rows, frontier, time of arrival and bytes to the next record."""


def line_of(offset: int, header: Header) -> Line:
    """The line of the index for one scanned record."""
    return (
        offset,
        header.stream,
        header.sequence,
        header.rows,
        header.frontier,
        header.arrived,
        header.stride,
    )


def write_index(path: Path, size: int, lines: Sequence[Line]) -> None:
    """Write the index of a segment of `size` bytes; it is not synced, since its loss costs only a scan."""
    values = list(zip(*lines, strict=True)) or [()] * len(_SCHEMA)
    columns = [pa.array(column, field.type) for column, field in zip(values, _SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA.with_metadata({"size": str(size)})) as writer:
        writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    content = sink.getvalue()
    path.write_bytes(checksum(content).to_bytes(8, "little") + content.to_pybytes())


def read_index(path: Path, size: int) -> list[Line] | None:
    """The lines of an index, or None if it is missing, unsound or of a segment of another size."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if checksum(content[8:]) != int.from_bytes(content[:8], "little"):
        return None
    with pa.ipc.open_stream(content[8:]) as reader:
        if reader.schema.metadata[b"size"] != str(size).encode():
            return None
        table = reader.read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
