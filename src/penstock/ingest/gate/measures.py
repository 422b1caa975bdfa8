"""What a gate measures of itself and its streams: raw counts that only grow, and what waits where.

A controller takes differences of the counts between two looks, so that it can fit what a batch, a byte and a
row cost (`penstock.control.admission.fit_price`). Nothing here is smoothed.
"""

import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.ingest.gate.state import GateState
from penstock.ingest.gate.stream import StreamState
from penstock.ingest.limits import Limits
from penstock.ingest.log.holdings import StreamHoldings
from penstock.ingest.log.log import Log
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["CpuMeter", "holding", "kept_rows", "oldest_seconds", "room", "stream_measures"]


class CpuMeter:
    """The processor time of this process since the meter was made: a gate should have a process of its own.

    It has the time in Python, in Flight and in the kernel, for pushes and for reads.
    """

    def __init__(self) -> None:
        self._start = time.process_time()

    def seconds(self) -> float:
        """Seconds of all threads together."""
        return round(time.process_time() - self._start, 6)


def oldest_seconds(state: GateState, now: float) -> float:
    """The age of the oldest row that waits at any client of a gate; O(streams)."""
    return round(max((each.oldest(now) for each in list(state.streams.values())), default=0.0), 3)


def kept_rows(ranges: Iterable[tuple[int, int]], positions: Iterable[int]) -> int:
    """Rows of ranges [low, high) that some reader has not committed, by the positions of all; all without.

    >>> kept_rows([(0, 10), (20, 30)], [25, 40]), kept_rows([(0, 10)], [10]), kept_rows([(0, 10)], [])
    (5, 0, 10)
    """
    first = min(positions, default=0)
    return sum(max(high - max(low, first), 0) for low, high in ranges)


_MOST_NAMED: Final = 20


def holding(state: GateState, log: Log, limits: Limits, now: float) -> tuple[dict[str, Any], ...]:
    """Readers that have been silent for long and for which rows are kept; O(streams) for each of them."""
    found = []
    for (inlet, reader), seconds in state.readers.silent(now, limits.silent_seconds):
        positions = state.readers.positions.get((inlet, reader), {})
        streams = [(each, held) for each, held in list(log.held.streams.items()) if inlet_of(each) == inlet]
        rows = sum(kept_rows(held.positions.ranges(), [positions.get(each, 0)]) for each, held in streams)
        if rows:
            run = state.readers.runs.get((inlet, reader))
            known = {"inlet": inlet, "reader": reader, "run": run, "rows": rows}
            found.append({**known, "silent_seconds": round(seconds, 1)})
    return tuple(found[:_MOST_NAMED])


def room(log: Log, limits: Limits) -> int:
    """How many bytes the log can still grow by: up to its limit, or until the disk is full."""
    return max(min(limits.store_bytes - log.bytes, shutil.disk_usage(log.folder).free), 0)


def stream_measures(state: GateState, log: Log, now: float) -> dict[str, dict[str, Any]]:
    """The measures of every stream that was here in this life of the gate, or whose rows a reader needs.

    O(streams times readers of their inlets, plus ranges); no lock is held.
    """
    readers: dict[str, list[Mapping[str, int]]] = {}
    for (inlet, _), positions in list(state.readers.positions.items()):
        readers.setdefault(inlet, []).append(positions)
    held, known = dict(log.held.streams), dict(state.streams)
    measures = {}
    for stream in sorted({*held, *known}):
        holdings = held.get(stream) or StreamHoldings()
        upto = (each.get(stream, 0) for each in readers.get(inlet_of(stream), ()))
        kept = kept_rows(holdings.positions.ranges(), upto)
        if kept or stream in known:
            here = _counts(known.get(stream), now)
            measures[stream] = {
                "next": state.next(stream),
                "frontier": holdings.frontier,
                "kept_rows": kept,
                **here,
            }
            if stream in state.metadata:
                measures[stream]["metadata"] = dict(state.metadata[stream])
    return measures


def _counts(stream: StreamState | None, now: float) -> dict[str, Any]:
    if stream is None:
        nothing = ("rows", "bytes", "batches", "pending_bytes", "client_rows")
        return {**dict.fromkeys(nothing, 0), "connected": False, "oldest_seconds": 0.0}
    return {
        "rows": stream.rows,
        "bytes": stream.bytes,
        "batches": stream.batches,
        "pending_bytes": stream.pending_bytes,
        "client_rows": stream.client_rows(),
        "connected": stream.call is not None,
        "oldest_seconds": round(stream.oldest(now), 3),
    }
