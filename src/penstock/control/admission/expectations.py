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
from penstock.control.admission.policy import Seen
from penstock.errors import BadAdmission
from penstock.forecast import LEADS, Holt, MetadataForecaster, MetadataModel, population_defaults

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
    leads: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 20, 26, 32, 38, 44, 50, 56, 64)

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
        values[self._order] = seen.work
        self._rates.observe(values, self._period)
        self._period += 1
        known = ~np.isnan(seen.work)
        before = (
            self._last[self._order]
            if len(self._last) == self._rates.streams
            else np.full(len(seen.work), np.nan)
        )
        self._last = np.full(self._rates.streams, np.nan)
        self._last[self._order] = np.where(known, seen.work, before)

    def outlook(self) -> Outlook:
        """What to expect of the streams of the last period."""
        horizon, order = self.horizon, self._order
        (holt,) = self._rates.members
        ahead = np.array([1, horizon.later])
        next_, later = holt.predict_at(ahead)[:, order]
        last = self._last[order]
        mean = float(np.nanmean(last)) if np.isfinite(last).any() else _UNKNOWN
        leads = np.array(horizon.leads)
        path = self._rates.predict_at(leads)[:, order].T
        spread = self._rates.spread_at(np.array([LEADS[-1]]))[0, order]
        declared = np.where(self._speaks()[order], self._rates.predict_at(ahead[1:])[0, order], np.nan)
        on_off = self._bursts()[order]
        if on_off.any():
            places = order[on_off]
            path[on_off], spread[on_off] = self._on_and_off(places, leads)
            declared[on_off] = self._level(places)
        path = _known(path, np.where(np.isnan(declared), mean, declared)[:, None])
        return Outlook(
            _known(last, mean),
            _known(next_, mean),
            _known(later, mean),
            declared,
            leads,
            path,
            np.minimum(_known(spread, 0.0), path.max(axis=1)),
        )

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

    def _characteristic(self, name: str) -> Floats:
        return self._rates._declared(name)  # noqa: SLF001

    def _speaks(self) -> Bools:
        """Streams whose metadata say what to expect."""
        return np.asarray(~np.isnan(self._rates.declared).all(axis=0), np.bool_)

    def _bursts(self) -> Bools:
        bursts: Bools = ~np.isnan(self._characteristic("burst_peak")) & np.isnan(
            self._characteristic("transition")
        )
        return bursts

    def _level(self, places: Ints) -> Floats:
        """On-off streams have no memory: the peak while a burst lasts, else the rate of a pause."""
        peak = self._characteristic("burst_peak")[places]
        pause = _known(self._characteristic("min_rate")[places], 0.0)
        last = _known(self._last[places], _known(self._characteristic("expected_rate")[places], np.inf))
        return np.where(last > (peak + pause) / 2, peak, pause)

    def _on_and_off(self, places: Ints, leads: Ints) -> tuple[Floats, Floats]:
        """The mean and the standard error of a two-state process that has no memory but its present state.

        The error is that at the longest lead at which other streams are scored.
        """
        peak = self._characteristic("burst_peak")[places]
        pause = _known(self._characteristic("min_rate")[places], 0.0)
        share = _known(self._characteristic("burst_share")[places], 0.5)
        cycle = _known(self._characteristic("period")[places], 16.0)
        on = (self._level(places) == peak).astype(np.float64)
        speed = 1 / np.maximum(cycle * share, 0.5) + 1 / np.maximum(cycle * (1 - share), 0.5)
        # At the present lead the state of the last period counts as it is.
        chance = share[:, None] + (on - share)[:, None] * np.exp(-speed[:, None] * (leads - 1))
        scored = share + (on - share) * np.exp(-speed * (LEADS[-1] - 1))
        swing = peak - pause
        return pause[:, None] + swing[:, None] * chance, swing * np.sqrt(scored * (1 - scored))


def _given(declared: Mapping[str, Floats]) -> dict[str, Any]:
    words = {0.0: "jump", 1.0: "trend"}
    return {
        name: [words.get(each) for each in np.asarray(values).tolist()] if name == "transition" else values
        for name, values in declared.items()
    }


def _known(values: Floats, otherwise: Any) -> Floats:
    return np.where(np.isnan(values), otherwise, values)
