"""What admission expects of every stream: Holt's forecast, metadata, and both over the whole horizon.

Precedence ([000] §2.5): what a stream declares beats what is forecast, and a stream of which nothing is known
counts as the mean of the others. Streams may come and go between two periods; those of a gate that is away
have no value, and are forecast as if the gap told nothing.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.control.admission.cluster import Bools, Floats, Ints, Outlook
from penstock.control.admission.costs import Costs
from penstock.control.admission.policy import Seen
from penstock.errors import BadAdmission
from penstock.forecast import (
    CHARACTERISTICS,
    LEADS,
    Holt,
    MetadataForecaster,
    MetadataModel,
    population_defaults,
)

__all__ = ["Expecting", "Horizon"]

# A stream that nothing is known of before anything is known at all.
_UNKNOWN = 1.0


@dataclass(frozen=True)
class Horizon:
    """`seconds` of a period; `later` periods ahead is the horizon of DRF; `leads` are those of intervals.

    Leads grow, since forecasts change more slowly the further they reach, but not fast: between two that are
    far apart a wave rises and falls unseen.
    """

    seconds: float = 10.0
    later: int = 3
    leads: tuple[int, ...] = (*range(1, 5), *range(6, 17, 2), *range(20, 65, 4), *range(72, 129, 8))

    def __post_init__(self) -> None:
        if self.later < 2:
            raise BadAdmission(
                f"later={self.later}; give at least 2 periods, as the rise from 1 to 1 is always 0"
            )
        if not self.leads or self.leads[0] != 1 or list(self.leads) != sorted(set(self.leads)):
            raise BadAdmission(f"leads={self.leads}; give rising numbers of periods from 1")


class Expecting:
    """Forecasters over the streams that were seen, in the order in which they first were."""

    def __init__(self, horizon: Horizon | None = None) -> None:
        self.horizon = horizon or Horizon()
        self._model = MetadataModel(seconds=self.horizon.seconds, holt=Holt())
        self._rates: MetadataForecaster = self._model.start(0)
        self._rows: dict[str, int] = {}
        self._streams: Sequence[str] = ()
        self._order: Ints = np.empty(0, np.int64)
        self._declared: Mapping[str, Floats] = {}
        self._last: Floats = np.empty(0)
        self._costs: Costs | None = None
        self._population: dict[str, Any] | None = None
        self._period = 0

    def observe(self, seen: Seen) -> None:
        """Takes in a period: new streams get a place, those that are gone lose theirs."""
        if seen.streams is not self._streams:
            self._enrol(seen.streams)
            self._declared = {}
        if seen.declared is not self._declared and seen.declared:
            self._rates.declare(self._order, _given(seen.declared))
            self._declared = seen.declared
        values = np.full(self._rates.streams, np.nan)
        values[self._order] = seen.rates
        self._costs = seen.prices
        self._rates.observe(values, self._period)
        self._period += 1
        self._population = None
        known = ~np.isnan(seen.rates)
        before = (
            self._last[self._order]
            if len(self._last) == self._rates.streams
            else np.full(len(seen.rates), np.nan)
        )
        self._last = np.full(self._rates.streams, np.nan)
        self._last[self._order] = np.where(known, seen.rates, before)

    def outlook(self) -> Outlook:
        """What to expect of the streams of the last period."""
        rates = _outlook(self._rates, self._last, self._order, self.horizon, self._mean())
        return rates if self._costs is None else rates.at(self._costs)

    def rates_ahead(self, periods: int) -> dict[str, tuple[Floats, float]]:
        """Rows a second of each stream in the next periods, and the standard error of such a rate."""
        leads = Horizon(self.horizon.seconds, leads=tuple(range(1, periods + 1)))
        found = _outlook(self._rates, self._last, self._order, leads, self._mean())
        return {
            stream: (path, float(error))
            for stream, path, error in zip(self._streams, found.path, found.spread, strict=True)
        }

    def outlook_of_new(
        self, count: int, declared: Mapping[str, Floats], costs: Costs | None = None
    ) -> Outlook:
        """What to expect of streams never seen: what they declare, else what the others are like."""
        if self._population is None:
            self._population = population_defaults(self._rates)
        rates = self._model.start(count)
        rates.declare(np.arange(count), _given(declared))
        rates.assume(self._population)
        found = _outlook(rates, np.full(count, np.nan), np.arange(count), self.horizon, self._mean())
        return found if costs is None else found.at(costs)

    def _mean(self) -> float:
        return float(np.nanmean(self._last)) if np.isfinite(self._last).any() else _UNKNOWN

    def to_json(self) -> dict[str, Any]:
        """Ids in their order, the last measurements, and the forecaster's state."""
        return {
            "streams": list(self._rows),
            "last": [None if np.isnan(each) else each for each in self._last.tolist()],
            "period": self._period,
            "rates": b64encode(self._rates.to_bytes()).decode("ascii"),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Goes on from a state with the same horizon."""
        self._rows = {str(stream): row for row, stream in enumerate(value["streams"])}
        self._last = np.array([np.nan if each is None else each for each in value["last"]], np.float64)
        self._period = int(value["period"])
        rates = self._model.resume(b64decode(value["rates"]))
        assert isinstance(rates, MetadataForecaster)
        self._rates = rates
        self._streams, self._order, self._declared = (), np.empty(0, np.int64), {}
        self._population = None

    def _enrol(self, streams: Sequence[str]) -> None:
        present = set(streams)
        gone = [row for stream, row in self._rows.items() if stream not in present]
        if gone:
            self._rates.drop(gone)
            self._last = np.delete(self._last, gone) if len(self._last) else self._last
            kept = [stream for stream in self._rows if stream in present]
            self._rows = {stream: row for row, stream in enumerate(kept)}
        new = [stream for stream in streams if stream not in self._rows]
        if new:
            self._rates.grow(len(new))
            self._last = np.append(self._last, np.full(len(new), np.nan))
            self._rows |= {stream: len(self._rows) + place for place, stream in enumerate(new)}
            self._rates.assume(population_defaults(self._rates))
        self._order = np.array([self._rows[stream] for stream in streams], np.int64)
        self._streams = streams


def _outlook(rates: MetadataForecaster, known: Floats, order: Ints, horizon: Horizon, mean: float) -> Outlook:
    """What to expect of the streams at these places, of which `known` are the last measurements.

    Block by block of streams: beside the answer itself it needs no memory that grows with their number.
    """
    leads = np.array(horizon.leads)
    last, next_, later, declared, spread = np.empty((5, rates.streams))
    path = np.empty((rates.streams, len(leads)))
    for part, block in rates.blocks():
        parts = _block_outlook(block, known[part], horizon, mean)
        last[part], next_[part], later[part], declared[part], spread[part], path[part] = parts
    if len(order) == rates.streams and (order == np.arange(len(order))).all():
        return Outlook(last, next_, later, declared, leads, path, spread)
    last, next_, later, declared, spread = (each[order] for each in (last, next_, later, declared, spread))
    return Outlook(last, next_, later, declared, leads, path[order], spread)


def _block_outlook(
    rates: MetadataForecaster, last: Floats, horizon: Horizon, mean: float
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Last, next, later, declared, spread and path of a block of streams."""
    (holt,) = rates.members
    next_, later = holt.predict_at(np.array([1, horizon.later]))
    leads = np.array(horizon.leads)
    *ahead, expected = rates.predict_at(np.append(leads, horizon.later))
    path = np.stack(ahead, axis=1)
    spread = rates.spread_at(np.array([LEADS[-1]]))[0]
    # Streams whose metadata say what to expect.
    speaks = ~np.isnan(rates.declared).all(axis=0)
    declared = np.where(speaks, expected, np.nan)
    # Beyond the leads at which forecasts are scored a trend that nobody declared is not trusted.
    far = leads > LEADS[-1]
    if far.any() and not speaks.all():
        path[np.ix_(~speaks, far)] = path[~speaks, np.flatnonzero(~far)[-1]][:, None]
    bursts = _Bursts.of(rates, last)
    if bursts.places.any():
        path[bursts.places], spread[bursts.places] = bursts.on_and_off(leads)
        declared[bursts.places] = bursts.level()
    if np.isnan(path).any():
        path = _known(path, np.where(np.isnan(declared), mean, declared)[:, None])
    spread = np.minimum(_known(spread, 0.0), path.max(axis=1))
    return _known(last, mean), _known(next_, mean), _known(later, mean), declared, spread, path


@dataclass(frozen=True)
class _Bursts:
    """The streams that are on or off, without memory but for their present state: peak, pause, rhythm."""

    places: Bools
    peak: Floats
    pause: Floats
    share: Floats
    cycle: Floats
    last: Floats

    @classmethod
    def of(cls, rates: MetadataForecaster, last: Floats) -> "_Bursts":
        def declared(name: str) -> Floats:
            row: Floats = rates.declared[CHARACTERISTICS.index(name)]
            return row

        places: Bools = ~np.isnan(declared("burst_peak")) & np.isnan(declared("transition"))
        peak = declared("burst_peak")[places]
        pause = _known(declared("min_rate")[places], 0.0)
        share = _known(declared("burst_share")[places], 0.5)
        return cls(places, peak, pause, share, _known(declared("period")[places], 16.0), last[places])

    def level(self) -> Floats:
        """The peak while a burst lasts, else the rate of a pause; their mean before anything is seen."""
        middle, mean = (self.peak + self.pause) / 2, self.pause + self.share * (self.peak - self.pause)
        return np.where(np.isnan(self.last), mean, np.where(self.last > middle, self.peak, self.pause))

    def on_and_off(self, leads: Ints) -> tuple[Floats, Floats]:
        """The mean and the standard error of a two-state process that has no memory but its present state.

        The error is that at the longest lead at which other streams are scored.
        """
        on = (self.last > (self.peak + self.pause) / 2).astype(np.float64)
        on = np.where(np.isnan(self.last), self.share, on)
        cycle, share = self.cycle, self.share
        speed = 1 / np.maximum(cycle * share, 0.5) + 1 / np.maximum(cycle * (1 - share), 0.5)
        # At the present lead the state of the last period counts as it is.
        chance = share[:, None] + (on - share)[:, None] * np.exp(-speed[:, None] * (leads - 1))
        scored = share + (on - share) * np.exp(-speed * (LEADS[-1] - 1))
        swing = self.peak - self.pause
        return self.pause[:, None] + swing[:, None] * chance, swing * np.sqrt(scored * (1 - scored))


def _given(declared: Mapping[str, Floats]) -> dict[str, Any]:
    words = {0.0: "jump", 1.0: "trend"}
    return {
        name: [words.get(each) for each in np.asarray(values).tolist()] if name == "transition" else values
        for name, values in declared.items()
    }


def _known(values: Floats, otherwise: Any) -> Floats:
    return np.where(np.isnan(values), otherwise, values)
