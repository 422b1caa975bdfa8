"""From what gates count to the work of streams in a period: raw differences, nothing smoothed.

A stream's rows are those that its client was given, whether or not a gate has taken them: a gate that cannot
keep up would otherwise look as if it had just enough to do. A stream whose gate did not answer has no
value, which is not 0; the next value is the mean since the last one. Time is an argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import Price, PriceFit
from penstock.ingest.wire.protocol import GateStatistics

__all__ = ["Look", "Measured", "Measuring", "StreamMeasure"]

Floats = NDArray[np.float64]
ROWS: Final = Price.per_row(1.0)
"""The price by which work is rows."""
_STEP: Final = 1.25
"""What a declared row costs changes in such steps, since forecasts begin anew with what is declared."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a gate told, and when: gates are asked one after the other."""

    at: float
    told: GateStatistics


@dataclass(frozen=True, slots=True)
class StreamMeasure:
    """A stream as gates last told it: rows per second of the last period, and what waits where."""

    rate: float | None = None
    client_rows: int = 0
    oldest_seconds: float = 0.0
    lag: int = 0
    """Rows that gates hold because a reader has not committed them, and those that wait at the client."""
    connected: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """The work of each stream a second, NaN if nobody knows it, and what waits at clients, as work."""

    work: Floats
    waiting: Floats


@dataclass(slots=True)
class _Counts:
    """What was last known of a stream: rows offered by its client, and counts at the gates since a look."""

    at: float
    offered: int
    row_cost: float | None = None


class Measuring:
    """Takes differences of what gates count from look to look; with `fitted` also what their work costs."""

    def __init__(self, price: Price = ROWS, *, fitted: bool = False) -> None:
        self._price = price
        self._fit = PriceFit(price) if fitted else None
        self._gates: dict[str, GateStatistics] = {}
        self._known: dict[str, _Counts] = {}
        self._stored: dict[tuple[str, str], tuple[str | None, Mapping[str, Any]]] = {}
        self.streams: dict[str, StreamMeasure] = {}

    def period(self, now: float, homes: Mapping[str, str | None], looks: Mapping[str, Look]) -> Measured:
        """Measure the streams with their gates; `looks` are the gates that answered."""
        seen: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for gate, look in looks.items():
            for stream, told in look.told.streams.items():
                seen.setdefault(stream, []).append((gate, told))
        lives = {gate: look.told.life for gate, look in looks.items()}
        self._fit_price({gate: look.told for gate, look in looks.items()})
        self._known = {stream: each for stream, each in self._known.items() if stream in homes}
        work, waiting = np.full(len(homes), np.nan), np.zeros(len(homes))
        streams = {}
        for place, (stream, home) in enumerate(homes.items()):
            told = seen.get(stream, [])
            rate = None
            if home is None or home in looks:
                rate = self._rate(stream, told, now if home is None else looks[home].at)
            cost = self._row_cost(stream, told, lives)
            measure = _measure(rate, told)
            streams[stream] = measure
            if rate is not None:
                work[place] = rate * cost
            waiting[place] = measure.client_rows * cost
        self.streams = streams
        self._stored = {
            (gate, stream): (lives[gate], told) for stream, each in seen.items() for gate, told in each
        }
        return Measured(work, waiting)

    @property
    def price(self) -> Price:
        """What work costs now."""
        return self._price

    def _fit_price(self, told: Mapping[str, GateStatistics]) -> None:
        if self._fit is None:
            return
        for gate, now in told.items():
            before = self._gates.get(gate)
            seconds = now.seconds - before.seconds if before is not None else 0.0
            if before is None or before.life != now.life or seconds <= 0:
                continue
            counts = [
                now.counts.get(each, 0) - before.counts.get(each, 0) for each in ("batches", "bytes", "rows")
            ]
            busy = (now.cpu_seconds or 0.0) - (before.cpu_seconds or 0.0)
            self._fit.observe(busy / seconds, *(each / seconds for each in counts))
        self._gates = dict(told)
        self._price = self._fit.price

    def row_costs(self, streams: Sequence[str]) -> Floats:
        """What a row of each stream costs, in steps; that of the others where nothing is known."""
        if self._price == ROWS:
            return np.ones(len(streams))
        known = [None if each not in self._known else self._known[each].row_cost for each in streams]
        some = [each for each in known if each]
        mean = sum(some) / len(some) if some else self._price.row or self._price.byte or self._price.batch
        return np.array([_stepped(each or mean) for each in known], np.float64)

    def _rate(self, stream: str, told: Sequence[tuple[str, Mapping[str, Any]]], at: float) -> float | None:
        before = self._known.get(stream)
        offered = max((each["next"] + each.get("client_rows", 0) for _, each in told), default=0)
        if before is None:
            self._known[stream] = _Counts(at, offered)
            return None
        if at <= before.at:
            return None
        rate = max(offered - before.offered, 0) / (at - before.at)
        before.at, before.offered = at, max(offered, before.offered)
        return rate

    def _row_cost(
        self, stream: str, told: Sequence[tuple[str, Mapping[str, Any]]], lives: Mapping[str, str | None]
    ) -> float:
        """What a row costs at the gates: by its batches and bytes of the period, else as before."""
        if self._price == ROWS:
            return 1.0
        known = self._known.get(stream)
        counts = np.zeros(3)
        for gate, each in told:
            life, before = self._stored.get((gate, stream), (None, {}))
            same = life == lives[gate]
            counts += [
                each[name] - (before.get(name, 0) if same else 0) for name in ("batches", "bytes", "rows")
            ]
        if known is not None and counts[2] > 0:
            known.row_cost = float(self._price.of(*np.array(counts)[:, None])[0] / counts[2])
        return (known.row_cost if known is not None else None) or self._price.row


def _measure(rate: float | None, told: Sequence[tuple[str, Mapping[str, Any]]]) -> StreamMeasure:
    waits = max((each.get("client_rows", 0) for _, each in told), default=0)
    return StreamMeasure(
        rate,
        waits,
        max((each.get("oldest_seconds", 0.0) for _, each in told), default=0.0),
        waits + sum(each.get("kept_rows", 0) for _, each in told),
        any(each.get("connected", False) for _, each in told),
    )


def _stepped(cost: float) -> float:
    return float(_STEP ** round(log(cost) / log(_STEP))) if cost > 0 else cost
