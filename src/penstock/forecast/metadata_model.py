r"""Rates from what streams declare of themselves: levels, rhythm, jumps, trends, bursts ([000] §2.4, §2.5).

What a stream declares beats what is measured of it, what is measured beats what is assumed of streams in
general, and a stream that declares nothing is forecast by Holt's trend.

    max         /--high--\
          ramp /          \ ramp
    min  -----/            \----low----/      period = ramp + high + ramp + low
              phase

- jump: without ramps. The rate is max or min, as the phase says. If none is declared, the last observed
  switch gives it; a switch that is late is expected in the next period; before the first, the
  present level stays.
- trend: Holt's forecast within min and max, or the wave of the drawing at leads at which that had smaller
  errors. Its phase is that of the first harmonic of what was observed, once a whole period was.
- bursts, without a jump or a trend: the burst's peak, or the mean over bursts and pauses.
- only an expected rate: that rate, whatever is observed. A silent stream keeps what it declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Flags, Floats, Forecaster, Integers, Method
from penstock.forecast.holt import Holt

__all__ = ["CHARACTERISTICS", "MetadataForecaster", "MetadataModel", "population_defaults"]

CHARACTERISTICS = (
    "max_rate",
    "min_rate",
    "expected_rate",
    "period",
    "low_period",
    "high_period",
    "transition",
    "burst_share",
    "burst_peak",
    "phase",
)
"""The ten of the paper, of which jump and trend share one name here, and the phase: when a rise begins."""

_ROW = {name: row for row, name in enumerate(CHARACTERISTICS)}
_TIMES = ("period", "low_period", "high_period", "phase")
_TRANSITIONS = {"jump": 0.0, "trend": 1.0}
_SWING = 0.3  # a rate that swings by less than this share of its mean has no two levels
_FORGET = 1 / 200  # by how much measured extremes come back to the mean in a period
_FADE = 1 - 1 / 30  # of the wave's squared errors, as of every forecaster's


@dataclass(frozen=True)
class MetadataModel(Method):
    """`seconds` is the length of a period of observation; what is declared is in seconds.

    >>> rates = MetadataModel(seconds=10).start(2)
    >>> rates.declare([0], {"min_rate": 5, "max_rate": 50, "transition": "jump", "period": 40})
    >>> rates.declare([1], {"expected_rate": 500})
    >>> for period, value in enumerate([5.0, 5.0, 50.0]):  # the rise is in period 2
    ...     rates.observe([value, 0.0], period)
    >>> rates.predict(4).tolist()
    [[50.0, 5.0, 5.0, 50.0], [500.0, 500.0, 500.0, 500.0]]
    """

    seconds: float = 1.0
    bursts: Literal["peak", "mean"] = "peak"
    """What is expected of a stream with bursts: their peak, or the mean over bursts and pauses."""
    holt: Holt = field(default_factory=Holt)

    def __post_init__(self) -> None:
        if not 0 < self.seconds < np.inf or self.bursts not in ("peak", "mean"):
            raise BadForecast(
                f"seconds={self.seconds}, bursts={self.bursts!r}; give seconds above 0 and 'peak' or 'mean'"
            )

    def start(self, streams: int) -> "MetadataForecaster":
        """Without values and declarations yet."""
        return MetadataForecaster(self, streams)


@dataclass(frozen=True)
class _Wave:
    """The drawing's wave of each stream, times in periods of observation; NaN where something is unknown."""

    low: Floats
    high: Floats
    period: Floats
    high_period: Floats
    ramp: Floats

    def at(self, times: Floats, rise: Floats) -> Floats:
        """Rates at times (a column) by streams, if a rise begins at `rise`."""
        since, low, high, high_period, ramp = times - rise, self.low, self.high, self.high_period, self.ramp
        # A fifth of the time of np.mod, and as exact for whole turns.
        place = since - np.floor(since / self.period) * self.period
        if not (ramp > 0).any():
            # What is added is 0, or NaN where the place is not known.
            return np.where(place < high_period, high, low) + 0.0 * place
        steep = np.maximum(ramp, 1e-9)
        up = np.where(ramp > 0, place / steep, 1.0)
        down = (ramp + high_period + ramp - place) / steep
        jumped = np.where(place < high_period, 1.0, 0.0)
        share = np.where(ramp > 0, np.clip(np.minimum(up, down), 0.0, 1.0), jumped)
        return np.where(np.isnan(place), np.nan, low + (high - low) * share)

    def middle(self) -> Floats:
        """The mean over a period."""
        return self.low + (self.high - self.low) * (self.high_period + self.ramp) / self.period


class MetadataForecaster(Forecaster):
    """What is declared, measured and assumed of each stream, and where it is in its wave."""

    declared: Floats
    measured: Floats
    assumed: Floats
    raised: Floats
    switched: Floats
    rise: Floats
    cosine: Floats
    sine: Floats
    before: Floats
    seen: Integers
    wave_squares: Floats
    wave_weights: Floats

    def __init__(self, model: MetadataModel, streams: int) -> None:
        self.model = model
        size = len(CHARACTERISTICS)
        columns = (
            *(Column(name, np.nan, size) for name in ("declared", "measured", "assumed")),
            *(Column(name, np.nan) for name in ("raised", "switched", "rise", "before")),
            *(Column(name) for name in ("cosine", "sine", "wave_squares", "wave_weights")),
            Column("seen", 0, dtype=np.int64),
        )
        super().__init__(model, streams, columns, members=(model.holt.start(streams),))

    def declare(self, index: ArrayLike, given: Mapping[str, Any]) -> None:
        """What the streams at these places say of themselves, in place of all they said before.

        A value is one for all of them or a sequence with one for each; None and NaN say nothing. Who says the
        same again keeps what was learned of the phase.
        """
        places = np.asarray(index, np.int64).ravel()
        rows, before = self._rows(given, places.size), self.declared[:, places]
        changed = ~((rows == before) | (np.isnan(rows) & np.isnan(before))).all(axis=0)
        places = places[changed]
        self.declared[:, places] = rows[:, changed]
        for name in ("rise", "cosine", "sine", "wave_squares", "wave_weights"):
            getattr(self, name)[places] = np.nan if name == "rise" else 0.0

    def assume(self, given: Mapping[str, Any]) -> None:
        """What holds of streams of which it is neither declared nor measured; see `population_defaults`."""
        self.assumed[:] = self._rows(given, self.streams)

    def learn(self, values: Floats, at: float) -> None:
        """Measure levels and switches, and follow the phase of what is declared."""
        (holt,) = self.members
        holt.observe(values, at)
        known = ~np.isnan(values)
        trends = np.flatnonzero(self._trends())
        self._score_wave(values, at, trends)
        self._measure(values, known)
        changed = self._follow_switches(values, known, at)
        self._follow_jumps(values, at, changed, np.flatnonzero(self._jumps()))
        self._follow_harmonic(values, at, trends)
        self.before = np.where(known, values, self.before)
        self.seen += known

    def means(self, leads: Integers) -> Floats:
        """The declared wave, burst or mean where there is one, else Holt's trend; within what is declared."""
        (holt,) = self.members
        found = holt.predict_at(leads)
        times = (self.at or 0.0) + leads[:, None].astype(np.float64)
        expected, peak, share = (
            self._declared(name) for name in ("expected_rate", "burst_peak", "burst_share")
        )
        plain = np.isnan(self._declared("transition"))
        steady = np.flatnonzero(plain & ~np.isnan(expected))
        found[:, steady] = expected[steady]
        bursty = np.flatnonzero(plain & ~np.isnan(peak) & ~(share == 0))
        if bursty.size:
            found[:, bursty] = self._burst(found, peak, share)[:, bursty]
        jumps, trends = np.flatnonzero(self._jumps()), np.flatnonzero(self._trends())
        if jumps.size:
            found[:, jumps] = self._jumping(times, found[:, jumps], jumps)
        if trends.size:
            found[:, trends] = self._trending(times, leads, found[:, trends], trends)
        unseen = np.isnan(found)
        if unseen.any():
            found = np.where(unseen, self._unseen(), found)
        return self._within(found)

    def intervals(self, horizon: int, level: float) -> tuple[Floats, Floats]:
        """As of every forecaster, within the declared least and greatest rate."""
        lower, upper = super().intervals(horizon, level)
        return self._within(lower.T).T, self._within(upper.T).T

    def _rows(self, given: Mapping[str, Any], count: int) -> Floats:
        rows = np.full((len(CHARACTERISTICS), count), np.nan)
        for name, value in given.items():
            if name not in _ROW:
                raise BadForecast(f"no characteristic {name!r}; they are: {', '.join(CHARACTERISTICS)}")
            row = _numbers(name, value)
            if np.isinf(row).any() or (row < 0).any():
                raise BadForecast(f"{name}={value!r}; give numbers from 0")
            rows[_ROW[name]] = row / self.model.seconds if name in _TIMES else row
        return rows

    def _declared(self, name: str) -> Floats:
        row: Floats = self.declared[_ROW[name]]
        return row

    def _best(self, name: str, places: Integers | slice = slice(None)) -> Floats:
        """Declared, or measured, or assumed."""
        row = _ROW[name]
        return _first(self.declared[row, places], self.measured[row, places], self.assumed[row, places])

    def _jumps(self) -> Flags:
        return self._declared("transition") < 0.5

    def _trends(self) -> Flags:
        return self._declared("transition") >= 0.5

    def _wave(self, places: Integers) -> _Wave:
        """The wave of some streams; what is not declared follows from the rest before it is measured."""

        def declared(name: str) -> Floats:
            return self._declared(name)[places]

        def best(name: str) -> Floats:
            return self._best(name, places)

        low, high, zero = declared("low_period"), declared("high_period"), np.zeros(places.size)
        period = _first(declared("period"), low + high)
        high_jump = _first(high, period - low, best("high_period"))
        low_jump = _first(low, period - high, best("low_period"))
        period = _first(period, high_jump + low_jump, best("period"))
        trend = declared("transition") >= 0.5
        high_part = np.minimum(np.where(trend, _first(high, zero), _first(high_jump, period / 2)), period)
        ramp = np.where(trend, np.maximum(period - high_part - _first(low, zero), 0.0) / 2, 0.0)
        return _Wave(best("min_rate"), best("max_rate"), period, high_part, ramp)

    def _rise(self, wave: _Wave, places: Integers) -> Floats:
        """When a rise begins: declared, or as the last switch or the first harmonic says."""
        sine, cosine = self.sine[places], self.cosine[places]
        centre = np.arctan2(sine, cosine) * wave.period / (2 * np.pi)
        whole = (self.seen[places] >= wave.period) & ((sine != 0) | (cosine != 0))
        harmonic = np.where(whole, centre - wave.high_period / 2 - wave.ramp, np.nan)
        measured = np.where(self._trends()[places], harmonic, self.rise[places])
        return _first(self._declared("phase")[places], measured)

    def _jumping(self, times: Floats, found: Floats, places: Integers) -> Floats:
        wave = self._wave(places)
        by_phase = wave.at(times, self._rise(wave, places))
        unknown = np.flatnonzero(np.isnan(by_phase.sum(axis=0)))
        if unknown.size:
            raised = self.raised[places[unknown]]
            present = np.where(raised > 0, wave.high[unknown], wave.low[unknown])
            present = np.where(np.isnan(raised), self._unseen()[places[unknown]], present)
            there = found[:, unknown]
            by_phase[:, unknown] = _first(by_phase[:, unknown], np.broadcast_to(present, there.shape), there)
        return by_phase

    def _trending(self, times: Floats, leads: Integers, found: Floats, places: Integers) -> Floats:
        (holt,) = self.members
        wave = self._wave(places)
        by_phase = wave.at(times, self._rise(wave, places))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(self.wave_squares[places] / self.wave_weights[places])
        # A comparison with NaN is false: without a phase or scores Holt's forecast stays.
        better = (spread < holt.spread_at(leads)[:, places]) | np.isnan(found)
        return np.where(better & ~np.isnan(by_phase), by_phase, found)

    def _burst(self, found: Floats, peak: Floats, share: Floats) -> Floats:
        if self.model.bursts == "peak":
            return np.broadcast_to(peak, found.shape)
        pause = _first(self._declared("min_rate"), np.zeros(self.streams))
        share = _first(share, self.assumed[_ROW["burst_share"]], np.full(self.streams, 0.5))
        return np.broadcast_to(pause + (peak - pause) * share, found.shape)

    def _unseen(self) -> Floats:
        """What is expected of a stream that has sent nothing."""
        low, high = self._declared("min_rate"), self._declared("max_rate")
        expected = self._declared("expected_rate")
        return _first(expected, (low + high) / 2, high, low, self.assumed[_ROW["expected_rate"]])

    def _within(self, found: Floats) -> Floats:
        most = np.fmax(self._declared("max_rate"), self._declared("burst_peak"))
        # A peak without a greatest rate says nothing of the time between bursts, and bounds it all the same.
        return np.fmin(np.fmax(found, self._declared("min_rate")), most) + 0 * found

    def _score_wave(self, values: Floats, at: float, trends: Integers) -> None:
        wave = self._wave(trends)
        errors = values[trends] - wave.at(np.full((1, 1), at), self._rise(wave, trends))[0]
        scored = ~np.isnan(errors)
        places, errors = trends[scored], errors[scored]
        self.wave_squares[places] = self.wave_squares[places] * _FADE + errors * errors
        self.wave_weights[places] = self.wave_weights[places] * _FADE + 1

    def _measure(self, values: Floats, known: Flags) -> None:
        """Mean, least and greatest rate; the two extremes come back to the mean in the long run."""
        mean, low, high = (self.measured[_ROW[name]] for name in ("expected_rate", "min_rate", "max_rate"))
        count = np.minimum(self.seen + 1, 1 / _FORGET)
        mean[known] = (_first(mean, values) + (values - _first(mean, values)) / count)[known]
        low[known] = np.fmin(low + (mean - low) * _FORGET, values)[known]
        high[known] = np.fmax(high + (mean - high) * _FORGET, values)[known]
        # What is above the declared greatest rate is a burst.
        limit = self._declared("max_rate")
        share, peak = self.measured[_ROW["burst_share"]], self.measured[_ROW["burst_peak"]]
        burst = known & (values > limit)
        limited = known & ~np.isnan(limit)
        old = _first(share, np.zeros(self.streams))
        share[limited] = (old + (burst - old) / count)[limited]
        peak[burst] = np.fmax(peak, values)[burst]

    def _follow_switches(self, values: Floats, known: Flags, at: float) -> Flags:
        """Note how long levels last and how they change; which streams have just changed theirs."""
        low, high = self._best("min_rate"), self._best("max_rate")
        swings = known & (high - low > _SWING * self.measured[_ROW["expected_rate"]])
        middle, slack = (low + high) / 2, (high - low) / 10
        raised = np.where(values > middle + slack, 1.0, np.where(values < middle - slack, 0.0, self.raised))
        raised = np.where(swings, raised, self.raised)
        changed = swings & (raised != self.raised) & ~np.isnan(self.raised)
        self.raised = raised
        places = np.flatnonzero(changed)
        rose = raised[places] > 0
        for name, ended in (("high_period", places[~rose]), ("low_period", places[rose])):
            _approach(self.measured[_ROW[name]], ended, at - self.switched[ended])
        high_period, low_period = self.measured[_ROW["high_period"]], self.measured[_ROW["low_period"]]
        self.measured[_ROW["period"]][places] = (high_period + low_period)[places]
        steps = np.abs(values - self.before)[places] > (high - low)[places] / 2
        _approach(self.measured[_ROW["transition"]], places, np.where(steps, 0.0, 1.0))
        self.switched[places] = at
        return np.asarray(changed, np.bool_)

    def _follow_jumps(self, values: Floats, at: float, changed: Flags, jumps: Integers) -> None:
        """Take the phase of jumps from the last switch; an overdue one is expected in the next period."""
        wave = self._wave(jumps)
        up, new, known = self.raised[jumps] > 0, changed[jumps], ~np.isnan(values[jumps])
        rise = np.where(new, np.where(up, at, at - wave.high_period), self.rise[jumps])
        # Before its first switch a jump cannot be foreseen; those errors say little about the ones to come.
        self.doubt(jumps[np.isnan(self.rise[jumps]) & ~np.isnan(rise)])
        foreseen = wave.at(np.full((1, 1), at), rise)[0] > (wave.low + wave.high) / 2
        overdue = known & ~new & (up != foreseen) & ~np.isnan(rise + wave.period)
        self.rise[jumps] = np.where(overdue, np.where(up, at + 1 - wave.high_period, at + 1), rise)

    def _follow_harmonic(self, values: Floats, at: float, trends: Integers) -> None:
        """Fading sums of the rate against the first harmonic of the period: their angle is the phase."""
        wave = self._wave(trends)
        angle = np.mod(at, wave.period) * (2 * np.pi / wave.period)
        apart = values[trends] - wave.middle()
        counted = ~np.isnan(apart + angle)
        fade = np.exp(-1 / (3 * np.maximum(wave.period, 1.0)))[counted]
        places, angle, apart = trends[counted], angle[counted], apart[counted]
        self.cosine[places] = self.cosine[places] * fade + apart * np.cos(angle)
        self.sine[places] = self.sine[places] * fade + apart * np.sin(angle)


def _approach(means: Floats, places: Integers, values: Floats) -> None:
    """Move fading means towards new values, or start them."""
    old = means[places]
    means[places] = np.where(np.isnan(old), values, old + 0.3 * (values - old))


def population_defaults(streams: MetadataForecaster) -> dict[str, Any]:
    """The characteristics of an average stream, for streams of which nothing is known ([000] §2.4).

    Each is the mean over streams of what they declare or, without that, of what was measured; a
    characteristic of which nothing is known is left out, and a phase has no average.

    >>> rates = MetadataModel().start(3)
    >>> rates.declare([0], {"expected_rate": 30, "transition": "jump"})
    >>> rates.observe([0.0, 10.0, np.nan], 0)
    >>> population_defaults(rates)["expected_rate"], population_defaults(rates)["transition"]
    (20.0, 'jump')
    """
    found: dict[str, Any] = {}
    for name, row in _ROW.items():
        known = _first(streams.declared[row], streams.measured[row])
        known = known[~np.isnan(known)]
        if name == "phase" or not known.size:
            continue
        mean = float(known.mean())
        if name == "transition":
            found[name] = "jump" if mean < 0.5 else "trend"
        else:
            found[name] = mean * streams.model.seconds if name in _TIMES else mean
    return found


def _numbers(name: str, value: Any) -> Floats:
    if name != "transition":
        return np.array(value, np.float64)  # None becomes NaN
    texts = [value] if value is None or isinstance(value, str) else list(value)
    wrong = [each for each in texts if each is not None and each not in _TRANSITIONS]
    if wrong:
        raise BadForecast(f"transition={wrong[0]!r}; give 'jump', 'trend' or None")
    return np.array([np.nan if each is None else _TRANSITIONS[each] for each in texts])


def _first(*given: Floats) -> Floats:
    """The first of several that is known, place by place."""
    found = given[0]
    for each in given[1:]:
        found = np.where(np.isnan(found), each, found)
    return found
