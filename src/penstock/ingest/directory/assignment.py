"""Which gate a stream is sent to."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["GateLoad", "assign", "average_rate"]


@dataclass(frozen=True, slots=True)
class GateLoad:
    """What a gate has already: streams, and the sum of their expected rates in rows per second."""

    gate: str
    streams: int
    rate: float


def assign(rates: Mapping[str, float | None], loads: Sequence[GateLoad], average: float) -> dict[str, str]:
    """The gate of every stream, given the rates expected of them; O((n + gates) log gates) besides sorting.

    A stream goes to the gate with the lowest expected rate, those with the highest rate first. One of unknown
    rate counts as the average of the others (000, section 2.4).

    Equal rates go by the number of streams, then by address, so that the same question has the same answer.

    >>> loads = [GateLoad("a:1", 2, 30.0), GateLoad("b:1", 1, 10.0)]
    >>> assign({"r/1": 15.0, "r/2": 40.0, "r/3": None}, loads, average=5.0)
    {'r/2': 'b:1', 'r/1': 'a:1', 'r/3': 'a:1'}
    """
    heap = [(load.rate, load.streams, load.gate) for load in loads]
    heapq.heapify(heap)
    chosen = {}
    expected = {stream: average if rate is None else rate for stream, rate in rates.items()}
    for stream in sorted(expected, key=lambda each: (-expected[each], each)):
        rate, streams, gate = heap[0]
        chosen[stream] = gate
        heapq.heapreplace(heap, (rate + expected[stream], streams + 1, gate))
    return chosen


def average_rate(rates: Sequence[float]) -> float:
    """The rate of a stream that nothing is known of; 1 row per second before anything is known at all.

    >>> average_rate([10.0, 30.0]), average_rate([])
    (20.0, 1.0)
    """
    return sum(rates) / len(rates) if rates else 1.0
