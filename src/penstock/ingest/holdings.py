"""What a gate holds, as numbers per stream, from the index that it gives."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ingest.dial import Line

__all__ = ["index", "next_sequences"]


def index(line: Line, inlet: str | None) -> pa.Table:
    """The ranges that a gate holds: stream, low, high, frontier, bytes, last_ms."""
    return line.table({"op": "index", "inlet": inlet, "since": None})


def next_sequences(line: Line, inlet: str) -> dict[str, int]:
    """For every stream of an inlet the number after the last row that the gate holds."""
    ends = index(line, inlet).group_by("stream").aggregate([("high", "max")])
    return dict(
        zip(pc.cast(ends["stream"], pa.string()).to_pylist(), ends["high_max"].to_pylist(), strict=True)
    )
