"""From what gates count to the rates of streams in a period, what they cost, and what each gate can do.

Raw differences, nothing smoothed. A stream's rows are those that its client was given, whether or not a gate
has taken them: a gate that cannot keep up would otherwise look as if it had just enough to do. A stream whose
gate did not answer has no value, which is not 0; the next value is the mean since the last one. Costs and
capacities are learnt by `penstock.control.admission`. Time is an argument.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import CORE, USUAL_PRICE, Capacities, Costs, Price, PriceFit, StreamCosts
from penstock.ingest.wire.protocol import GateStatistics

__all__ = ["Ability", "Look", "Measured", "Measuring", "StreamMeasure"]

Floats = NDArray[np.float64]
_LONG: Final = 0.2
"""Rows that wait for this part of the bound at two looks in a row had a gate that did all that it can."""
_COUNTS: Final = ("batches", "bytes", "rows")


@dataclass(frozen=True, slots=True)
class Look:
    """What a gate told, and when: gates are asked one after the other."""

    at: float
    told: GateStatistics


@dataclass(frozen=True, slots=True)
class Ability:
    """What a gate says that it may use: so many cores, and rows a second if there is such a limit."""

    cores: float = 1.0
    rows: float = 0.0

    def used(self, cpu: float, rows: float) -> float:
        """The part of the gate that is used with so many cores and rows a second."""
        return max(cpu / (CORE * min(self.cores, 1.0)), rows / self.rows if self.rows else 0.0)


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
    """A period: rows a second of each stream, NaN if nobody knows it, and what they cost a gate.

    Without `costs` a rate is the work itself. `waiting` has the seconds that rows wait for each gate.
    """

    rates: Floats
    costs: Costs | None
    waiting: Mapping[str, float]


@dataclass(slots=True)
class _Offered:
    """The rows that a client had been given at a look."""

    at: float
    rows: int


@dataclass(frozen=True, slots=True)
class _Did:
    """A gate between two looks: batches, bytes and rows a second, and the part of it that was used."""

    seconds: float
    counts: Floats
    used: float


@dataclass
class Measuring:
    """Takes differences of what gates count from look to look, and learns from them.

    With a `capacity` nothing is learnt: every gate takes so many rows a second, times its share. `bound` is
    how long rows may wait.
    """

    capacity: float | None = None
    bound: float = 5.0
    streams: dict[str, StreamMeasure] = field(default_factory=dict)
    _fit: PriceFit = field(default_factory=lambda: PriceFit(USUAL_PRICE))
    _costs: StreamCosts = field(default_factory=StreamCosts)
    _capacities: Capacities = field(default_factory=Capacities)
    _looks: Mapping[str, Look] = field(default_factory=dict)
    _offered: dict[str, _Offered] = field(default_factory=dict)
    _waiting: Mapping[str, float] = field(default_factory=dict)

    def period(
        self,
        now: float,
        homes: Mapping[str, str | None],
        looks: Mapping[str, Look],
        abilities: Mapping[str, Ability] | None = None,
        limited: Collection[str] = (),
    ) -> Measured:
        """Measure the streams with their gates; `looks` are the gates that answered.

        Where gates are `limited` on purpose, that rows wait says nothing of what they can do.
        """
        told: dict[str, list[Mapping[str, Any]]] = {}
        for look in looks.values():
            for stream, each in look.told.streams.items():
                told.setdefault(stream, []).append(each)
        self._offered = {stream: each for stream, each in self._offered.items() if stream in homes}
        rates, streams = np.full(len(homes), np.nan), {}
        for place, (stream, home) in enumerate(homes.items()):
            rate = None
            if home is None or home in looks:
                rate = self._rate(stream, told.get(stream, []), now if home is None else looks[home].at)
            streams[stream] = _measure(rate, told.get(stream, []))
            rates[place] = np.nan if rate is None else rate
        self.streams = streams
        did = self._did(looks, abilities or {})
        self._learn(list(homes), looks, did)
        costs = self.costs(list(homes), abilities or {})
        waiting = self._waits(homes, looks, did) | dict.fromkeys(looks.keys() & set(limited), 0.0)
        for gate, done in did.items():
            long = min(waiting[gate], self._waiting.get(gate, 0.0)) > _LONG * self.bound
            self._capacities.observe(gate, done.counts, done.used, waits=long)
        self._capacities.keep(set(looks))
        self._looks, self._waiting = dict(looks), waiting
        return Measured(rates, costs, waiting)

    def capacity_of(self, gate: str, shares: Mapping[str, float] | None = None) -> float:
        """The work that a gate can do in a second; one that is not known is like the others.

        `shares` say how much more than a usual one gates can do that nobody has measured.
        """
        if self.capacity is None:
            return self._capacities.of(gate, self._fit.price, shares)
        return self.capacity * (shares or {}).get(gate, 1.0)

    def costs(self, streams: Sequence[str], abilities: Mapping[str, Ability]) -> Costs | None:
        """What rows of these streams cost, also of those that nobody has seen; None if a rate is the work."""
        if self.capacity is not None:
            return None
        limits = [each.rows for each in abilities.values() if each.rows]
        row = 1 / (sum(limits) / len(limits)) if limits else 0.0
        self._fit.begin(Price(USUAL_PRICE.batch, USUAL_PRICE.byte, row))
        return self._costs.costs(streams, self._fit.price)

    def to_json(self) -> dict[str, Any]:
        """What was learnt of gates and their work, as plain values."""
        if self.capacity is not None:
            return {}
        price = self._fit.price
        return {"price": [price.batch, price.byte, price.row], "gates": self._capacities.to_json()}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        if value and self.capacity is None:
            self._fit = PriceFit(Price(*value["price"]))
            self._capacities.resume(value["gates"])

    def _rate(self, stream: str, told: Sequence[Mapping[str, Any]], at: float) -> float | None:
        before = self._offered.get(stream)
        offered = max((each["next"] + each.get("client_rows", 0) for each in told), default=0)
        if before is None:
            self._offered[stream] = _Offered(at, offered)
            return None
        if at <= before.at:
            return None
        rate = max(offered - before.rows, 0) / (at - before.at)
        before.at, before.rows = at, max(offered, before.rows)
        return rate

    def _before(self, gate: str, look: Look) -> GateStatistics | None:
        """What a gate told the last time, in the same life."""
        before = self._looks.get(gate)
        same = before is not None and before.told.life == look.told.life
        return before.told if same and before and look.told.seconds > before.told.seconds else None

    def _did(self, looks: Mapping[str, Look], abilities: Mapping[str, Ability]) -> dict[str, _Did]:
        """What gates did since the last look, of those that were looked at before."""
        found = {}
        for gate, look in looks.items():
            if (before := self._before(gate, look)) is not None:
                seconds = look.told.seconds - before.seconds
                counts = [(look.told.counts.get(each, 0) - before.counts.get(each, 0)) for each in _COUNTS]
                cpu = (look.told.cpu_seconds or 0.0) - (before.cpu_seconds or 0.0)
                used = abilities.get(gate, Ability()).used(cpu / seconds, counts[2] / seconds)
                found[gate] = _Did(seconds, np.array(counts, np.float64) / seconds, used)
        return found

    def _learn(self, streams: Sequence[str], looks: Mapping[str, Look], did: Mapping[str, _Did]) -> None:
        """What the rows of streams are made of, and what that costs gates."""
        places = {each: place for place, each in enumerate(streams)}
        counts = np.zeros((3, len(streams)))
        for gate, each in did.items():
            before = self._looks[gate].told.streams
            for stream, told in looks[gate].told.streams.items():
                if stream in places:
                    then = before.get(stream, {})
                    counts[:, places[stream]] += [
                        max(told[name] - then.get(name, 0), 0) / each.seconds for name in _COUNTS
                    ]
            self._fit.observe(each.used, *each.counts.tolist())
        batches, bytes_, rows = counts
        self._costs.observe(streams, rows, batches, bytes_)

    def _waits(
        self, homes: Mapping[str, str | None], looks: Mapping[str, Look], did: Mapping[str, _Did]
    ) -> dict[str, float]:
        """How long rows wait for each gate: at the speed at which it takes them, or as long as the oldest."""
        rows, oldest = dict.fromkeys(looks, 0), dict.fromkeys(looks, 0.0)
        for stream, home in homes.items():
            if home is not None and home in looks:
                rows[home] += self.streams[stream].client_rows
                oldest[home] = max(oldest[home], self.streams[stream].oldest_seconds)
        speeds = {gate: did[gate].counts[2] if gate in did else 0.0 for gate in looks}
        return {
            gate: min(rows[gate] / speeds[gate], oldest[gate]) if speeds[gate] else oldest[gate]
            for gate in looks
        }


def _measure(rate: float | None, told: Sequence[Mapping[str, Any]]) -> StreamMeasure:
    waits = max((each.get("client_rows", 0) for each in told), default=0)
    return StreamMeasure(
        rate,
        waits,
        max((each.get("oldest_seconds", 0.0) for each in told), default=0.0),
        waits + sum(each.get("kept_rows", 0) for each in told),
        any(each.get("connected", False) for each in told),
    )
