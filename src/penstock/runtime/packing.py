"""Packed exchange: a map task sends each channel a few large messages of Arrow rows, not single rows.

Rows become Arrow once, on the map side, are put in the order of their channels there, and the exchange
carries bytes. What an epoch has to know of a stream (latest and earliest time, rejects, how many) is found
while packing, which saves an observation of every single tuple.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.compile import TIME

__all__ = ["CHANNEL", "NEVER", "PACKED", "SEEN", "Packing", "unpacked"]

NEVER = -(2**62)
"""A time before every tuple; while packing, that of a tuple which does not fit its schema."""

CHANNEL = "_ps_channel"
_SIDE, _MESSAGE = "_ps_side", "_ps_message"
_LATEST, _EARLIEST, _REJECTS, _CAME = "_ps_latest", "_ps_earliest", "_ps_rejects", "_ps_came"
PACKED = (
    f"{CHANNEL} int, {_SIDE} int, {_LATEST} bigint, {_EARLIEST} bigint, {_REJECTS} bigint, {_CAME} bigint, "
    f"{_MESSAGE} binary"
)
"""The columns of an exchange of messages."""

SEEN = f"struct(max({_LATEST}), min({_EARLIEST}), coalesce(max({_REJECTS}), 0L), coalesce(sum({_CAME}), 0L))"
"""What was seen of a stream, over its messages."""

_Channels = NDArray[np.int32]
_Rows = NDArray[np.int64]
# A message is a row to Spark, several copies of which may be in the memory of the JVM at a time.
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Packing:
    """Packs the rows of a side: the first column is the channel, or several; -1 leaves a row out.

    With `watched` it says what came: rows whose time is NEVER are rejects, and rows below `bound` are late;
    both are counted and left out.
    """

    side: int
    channels: int
    watched: bool
    bound: int | None = None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """From batches of rows to batches of messages."""
        outbox = _Outbox(self.side, self.channels)
        for batch in batches:
            channel, row = _copies(batch.column(0))
            if self.watched:
                times = batch.column(TIME).to_numpy()
                channel = self._in_time(outbox.seen, channel, times, row)
            outbox.add(batch.select(batch.schema.names[1:]), channel, row)
            if outbox.bytes > _MOST_BYTES:
                yield outbox.emptied()
        if outbox.bytes or outbox.seen.came:
            yield outbox.emptied()

    def _in_time(
        self, seen: "_Seen", channel: _Channels, times: NDArray[np.int64], row: _Rows | None
    ) -> _Channels:
        fit = times != NEVER
        seen.add(times[fit], len(times))
        taken = fit if self.bound is None else times >= self.bound
        if taken.all():
            return channel
        return np.where(taken if row is None else taken[row], channel, np.int32(-1))


def _copies(channels: Any) -> tuple[_Channels, _Rows | None]:
    """The channel of every copy, and of which row it is one where rows have several."""
    if not pa.types.is_list(channels.type):
        return channels.to_numpy(), None
    row = np.repeat(np.arange(len(channels)), np.diff(channels.offsets.to_numpy()))
    return channels.flatten().to_numpy(), row


def unpacked(messages: Any, side: int, schema: Any) -> Any:
    """The rows of a side that came in the messages of an exchange; without a copy."""
    tables = []
    for batch in messages.to_batches():
        sides = batch.column(_SIDE).to_numpy()
        for place in np.flatnonzero(sides == side):
            message = batch.column(_MESSAGE)[int(place)].as_buffer()
            if message.size:
                tables.append(pa.ipc.open_stream(message).read_all().cast(schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


@dataclass
class _Seen:
    latest: int | None = None
    earliest: int | None = None
    rejects: bool = False
    came: int = 0

    def add(self, times: NDArray[np.int64], came: int) -> None:
        self.came += came
        self.rejects |= len(times) < came
        if len(times):
            latest, earliest = int(times.max()), int(times.min())
            self.latest = latest if self.latest is None else max(self.latest, latest)
            self.earliest = earliest if self.earliest is None else min(self.earliest, earliest)


@dataclass
class _Outbox:
    """Rows on their way to channels, and what was seen since it was last emptied."""

    side: int
    channels: int
    bytes: int = 0
    seen: _Seen = field(default_factory=_Seen)
    _rows: dict[int, list[Any]] = field(default_factory=dict)

    def add(self, rows: Any, channel: _Channels, row: _Rows | None) -> None:
        """Deal rows to their channels."""
        # Sixteen bits are sorted by counting.
        order = np.argsort(channel.astype(np.int16), kind="stable")
        ends = np.searchsorted(channel[order], np.arange(-1, self.channels), side="right")
        if ends[0] == ends[-1]:
            return
        rows = rows.take(pa.array(order if row is None else row[order]))
        for place in range(self.channels):
            first, end = int(ends[place]), int(ends[place + 1])
            if end > first:
                self._rows.setdefault(place, []).append(rows.slice(first, end - first))
        self.bytes += rows.nbytes

    def emptied(self) -> Any:
        """A row of what was seen, and one for every channel with its message."""
        sink = pa.BufferOutputStream()
        ends = [0, 0]
        for batches in self._rows.values():
            with pa.ipc.new_stream(sink, batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            ends.append(sink.tell())
        message = pa.Array.from_buffers(
            pa.binary(), len(ends) - 1, [None, pa.py_buffer(np.array(ends, np.int32)), sink.getvalue()]
        )
        more = [None] * len(self._rows)
        told = (self.seen.latest, self.seen.earliest, int(self.seen.rejects), self.seen.came)
        packed = pa.RecordBatch.from_arrays(
            [
                pa.array([0, *self._rows], pa.int32()),
                pa.array([self.side] * len(message), pa.int32()),
                *(pa.array([each, *more], pa.int64()) for each in told),
                message,
            ],
            names=[CHANNEL, _SIDE, _LATEST, _EARLIEST, _REJECTS, _CAME, _MESSAGE],
        )
        self._rows, self.seen, self.bytes = {}, _Seen(), 0
        return packed
