"""What every forecaster promises: many streams at once, gaps that teach nothing, errors that are measured.

A `Method` is frozen configuration and starts a `Forecaster`, which holds the state: arrays whose last axis is
the streams. Streams never touch each other, so any order and any split of them gives the same forecasts.

So large numbers of streams are worked on block by block: the numbers of a block stay in the cache, temporary
arrays stay small, and time and memory grow with the number of streams and no faster.

Every forecaster scores itself. It remembers what it forecast 1, 2, 4 and 8 periods ahead, compares when the
period comes, and keeps a fading mean of the squared errors; intervals and combinations come from these. That
costs 24 numbers a stream and four forecasts a period.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from math import floor, isfinite, sqrt
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import BadForecast, BadRouting
from penstock.sketches.wire import pack, unpack

__all__ = ["LEADS", "Column", "Flags", "Floats", "Forecaster", "Integers", "Method", "check_leads", "fading"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEADS = (1, 2, 4, 8)
"""How many periods ahead forecasts are scored; in between errors are interpolated, beyond they grow on."""

_BLOCK = 2048  # streams that are worked on together
_FADE = 1 - 1 / 30  # squared errors lose a factor e every 30 observations


@dataclass(frozen=True, slots=True)
class Column:
    """An array of state with a row of numbers for each stream; a new stream's are `fill`."""

    name: str
    fill: float = 0.0
    width: int | None = None
    """Numbers of each stream; None for one, without an axis of its own."""
    dtype: type[np.generic] = np.float64

    def rows(self, streams: int) -> NDArray[Any]:
        """The column of streams of which nothing is known."""
        shape = (streams,) if self.width is None else (self.width, streams)
        return np.full(shape, self.fill, self.dtype)


_SCORES = (
    Column("pending", np.nan, sum(LEADS)),
    Column("squares", 0.0, len(LEADS)),
    Column("weights", 0.0, len(LEADS)),
    Column("silent", 0, dtype=np.int64),
)


class Method(ABC):
    """A way to forecast: frozen settings, from which any number of forecasters start."""

    @abstractmethod
    def start(self, streams: int) -> "Forecaster":
        """A forecaster of streams of which nothing is known."""

    def resume(self, data: bytes) -> "Forecaster":
        """The forecaster that wrote these bytes under the same settings."""
        forecaster = self.start(0)
        forecaster.load(data)
        return forecaster


class Forecaster(ABC):
    """The state of one method over streams 0 to `streams` - 1.

    A subclass names its columns, learns from the values of a period (`learn`) and tells means (`means`).
    """

    whole: bool = True
    """Whether times have to be whole numbers of periods."""

    pending: Floats
    squares: Floats
    weights: Floats
    silent: Integers
    """Periods since each stream's last value, as far as they matter."""

    def __init__(
        self,
        method: Method,
        streams: int,
        columns: Sequence[Column],
        *,
        memory: int = max(LEADS),
        members: Sequence["Forecaster"] = (),
    ) -> None:
        self.streams = streams
        self.at: float | None = None
        """The time of the last observation."""
        self.members = tuple(members)
        self._method = method
        self._columns = (*columns, *_SCORES)
        # After this many periods without data another one changes nothing.
        self._memory = max(memory, *LEADS)
        for each in self._columns:
            setattr(self, each.name, each.rows(streams))

    @abstractmethod
    def learn(self, values: Floats, at: float) -> None:
        """Take in the values of a period; NaN is a gap. Periods come one by one, each of them."""

    @abstractmethod
    def means(self, leads: Integers) -> Floats:
        """Forecasts as leads by streams, NaN for streams of which nothing is known; they may be below 0."""

    def observe(self, values: ArrayLike, at: float) -> None:
        """Take in the mean rate of every stream in the period `at`; NaN where it is not known.

        Periods that are left out are gaps of all streams.
        """
        rates = self._checked(values, at)
        last: Forecaster = self
        for part, last in self.blocks():
            last._catch_up(rates[part], at)  # noqa: SLF001 -- a block is a forecaster of the same kind
            self._put(part, last)
        self._stamp(last)

    def blocks(self) -> Iterator[tuple[slice, Self]]:
        """The streams block by block, each block a forecaster of its own that shares this one's numbers."""
        if self.streams <= _BLOCK:
            yield slice(None), self
            return
        for start in range(0, self.streams, _BLOCK):
            part = slice(start, min(start + _BLOCK, self.streams))
            yield part, self._part(part)

    def predict(self, horizon: int) -> Floats:
        """The mean rates of the next `horizon` periods, streams by periods, never below 0."""
        return self.predict_at(check_leads(horizon)).T

    def predict_at(self, leads: Integers) -> Floats:
        """The mean rates at some leads, leads by streams."""
        return self._blockwise(lambda block: np.maximum(block.means(leads), 0.0), len(leads))

    def intervals(self, horizon: int, level: float) -> tuple[Floats, Floats]:
        """Bounds between which a rate falls with probability `level`, lower and upper, streams by periods.

        A stream whose forecasts were never scored gets the spread that equals its mean.
        """
        if not 0 < level < 1:
            raise BadForecast(f"level={level}; give a probability between 0 and 1, such as 0.9")
        leads = check_leads(horizon)
        means = self.predict_at(leads)
        below, above = self.offsets(leads, level)
        unscored = np.isnan(below)
        wide = NormalDist().inv_cdf((1 + level) / 2) * means
        lower = means + np.where(unscored, -wide, below)
        upper = means + np.where(unscored, wide, above)
        return np.maximum(lower, 0.0).T, np.maximum(upper, 0.0).T

    def offsets(self, leads: Integers, level: float) -> tuple[Floats, Floats]:
        """How far the bounds are from the means, leads by streams; here as of normal errors."""
        wide = NormalDist().inv_cdf((1 + level) / 2) * self.spread_at(leads)
        return -wide, wide

    def spread_at(self, leads: Integers) -> Floats:
        """The root of the fading mean of squared errors, leads by streams; NaN before the first score.

        It never falls with the lead: what is scored at one lead bounds the longer ones from below. For a
        stream in a gap the lead counts from its last value.
        """
        return self._blockwise(lambda block: block._spread_at(leads), len(leads))  # noqa: SLF001 -- as above

    def _spread_at(self, leads: Integers) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            scored = np.sqrt(self.squares / self.weights)
        for shorter, longer in pairwise(range(len(LEADS))):
            growth = sqrt(LEADS[longer] / LEADS[shorter])  # of a random walk, until it is measured
            guess = np.where(np.isnan(scored[longer]), scored[shorter] * growth, scored[longer])
            scored[longer] = np.fmax(guess, scored[shorter])
        found = np.stack([_between(scored, lead) for lead in leads])
        quiet = np.flatnonzero(self.silent)
        if quiet.size:
            found[:, quiet] = [_between(scored[:, quiet], lead + self.silent[quiet]) for lead in leads]
        return found

    def pending_for(self, lead: int, period: int) -> Floats:
        """What was forecast for a period `lead` periods before it, NaN for streams without a forecast."""
        waiting: Floats = self.pending[_slot(lead, period)]
        return waiting

    def doubt(self, streams: Integers) -> None:
        """Let past scores of these streams count a tenth: they are forecast in another way from now on."""
        self.squares[:, streams] *= 0.1
        self.weights[:, streams] *= 0.1

    def grow(self, count: int) -> None:
        """Append `count` streams of which nothing is known."""
        if count < 0:
            raise BadForecast(f"grow({count}); give how many streams are added, 0 or more")
        self.streams += count
        for each in self._columns:
            setattr(self, each.name, np.concatenate([getattr(self, each.name), each.rows(count)], axis=-1))
        for member in self.members:
            member.grow(count)

    def drop(self, index: ArrayLike) -> None:
        """Forget the streams at these places; those behind move up. The whole state is copied once."""
        places = np.asarray(index, np.int64).ravel()
        if places.size and (places.min() < 0 or places.max() >= self.streams):
            raise BadForecast(f"drop of stream {places.max()} of {self.streams}; give places of streams")
        self.streams -= np.unique(places).size
        for each in self._columns:
            setattr(self, each.name, np.delete(getattr(self, each.name), places, axis=-1))
        for member in self.members:
            member.drop(places)

    def to_bytes(self) -> bytes:
        """The whole state, to store; `Method.resume` reads it."""
        times = {} if self.at is None else {"at": self.at}
        return pack(_tag(self._method), {"streams": self.streams, **times}, self.arrays())

    def load(self, data: bytes) -> None:
        """Take over a state that `to_bytes` wrote under the same settings."""
        try:
            numbers, arrays = unpack(_tag(self._method), data)
        except BadRouting as wrong:
            raise BadForecast(str(wrong)) from None
        self.take(int(numbers["streams"]), numbers.get("at"), arrays)

    def arrays(self) -> list[NDArray[Any]]:
        """The columns of the state, then those of the members."""
        own = [getattr(self, each.name) for each in self._columns]
        return [*own, *(array for member in self.members for array in member.arrays())]

    def take(self, streams: int, at: float | None, arrays: list[NDArray[Any]]) -> None:
        """Take what `arrays` gave from the front of a list."""
        self.streams, self.at = streams, at
        for each in self._columns:
            setattr(self, each.name, arrays.pop(0))
        for member in self.members:
            member.take(streams, at, arrays)

    def _checked(self, values: ArrayLike, at: float) -> Floats:
        rates = np.array(values, np.float64)
        if rates.shape != (self.streams,):
            raise BadForecast(f"values of shape {rates.shape}; give one for each of {self.streams} streams")
        if np.isinf(rates).any() or (rates < 0).any():
            raise BadForecast("a rate is negative or infinite; give rates from 0, and NaN for a gap")
        if not isfinite(at) or (self.whole and at != floor(at)):
            raise BadForecast(f"at={at}; give the number of the period")
        if self.at is not None and at <= self.at:
            raise BadForecast(f"at={at} after {self.at}; give periods in rising order")
        return rates

    def _blockwise(self, tell: Callable[["Forecaster"], Floats], rows: int) -> Floats:
        """What is told of each block, side by side."""
        if self.streams <= _BLOCK:
            return tell(self)
        found = np.empty((rows, self.streams))
        for part, block in self.blocks():
            found[:, part] = tell(block)
        return found

    def _part(self, part: slice) -> Self:
        """A forecaster of some of the streams; what it changes in place changes here."""
        block = copy(self)
        block.streams = part.stop - part.start
        for each in self._columns:
            setattr(block, each.name, getattr(self, each.name)[..., part])
        block.members = tuple(member._part(part) for member in self.members)  # noqa: SLF001 -- members are forecasters, too
        return block

    def _put(self, part: slice, block: "Forecaster") -> None:
        """Take over the columns of a block that it has not changed in place."""
        if block is self:
            return
        for each in self._columns:
            mine, theirs = getattr(self, each.name)[..., part], getattr(block, each.name)
            if not np.may_share_memory(mine, theirs):
                mine[...] = theirs
        for member, other in zip(self.members, block.members, strict=True):
            member._put(part, other)  # noqa: SLF001 -- as above

    def _stamp(self, block: "Forecaster") -> None:
        """Take over the time of a block, when all have it."""
        self.at = block.at
        for member, other in zip(self.members, block.members, strict=True):
            member._stamp(other)  # noqa: SLF001 -- as above

    def _catch_up(self, rates: Floats, at: float) -> None:
        """The periods that were left out, then this one."""
        if self.at is not None:
            first = floor(self.at + 0.5) + 1
            for missing in range(max(first, floor(at + 0.5) - self._memory), floor(at + 0.5)):
                self._step(np.full(self.streams, np.nan), missing)
        self._step(rates, at)

    def _step(self, values: Floats, at: float) -> None:
        period = floor(at + 0.5)
        # Where times are not whole, a second observation in a period teaches but is not scored.
        new = self.at is None or period > floor(self.at + 0.5)
        if new:
            self._score(values, period)
        self.learn(values, at)
        self.silent = np.where(np.isnan(values), np.minimum(self.silent + 1, self._memory), 0)
        self.at = at
        if new:
            ahead = self.predict_at(np.array(LEADS))
            for lead, means in zip(LEADS, ahead, strict=True):
                self.pending[_slot(lead, period)] = means

    def _score(self, values: Floats, period: int) -> None:
        for row, lead in enumerate(LEADS):
            errors = values - self.pending_for(lead, period)
            scored = ~np.isnan(errors)
            np.multiply(self.squares[row], _FADE, out=self.squares[row], where=scored)
            np.multiply(self.weights[row], _FADE, out=self.weights[row], where=scored)
            np.add(self.squares[row], errors * errors, out=self.squares[row], where=scored)
            np.add(self.weights[row], 1.0, out=self.weights[row], where=scored)


def check_leads(horizon: int) -> Integers:
    """The leads 1 to `horizon`.

    >>> check_leads(3).tolist()
    [1, 2, 3]
    """
    if horizon < 1:
        raise BadForecast(f"horizon={horizon}; give a number of periods from 1")
    return np.arange(1, horizon + 1)


def fading(name: str, periods: int) -> float:
    """The factor by which a sum fades each period so that it remembers about `periods` of them.

    >>> fading("history", 4)
    0.75
    """
    if periods < 1:
        raise BadForecast(f"{name}={periods}; give a number of periods from 1")
    return 1 - 1 / periods


def _slot(lead: int, period: int) -> int:
    """Where a forecast made `lead` periods before `period` waits; each lead has a ring of as many places."""
    return sum(each for each in LEADS if each < lead) + period % lead


def _between(scored: Floats, lead: int | Integers) -> Floats:
    """Linear between two scored leads, and on with the last slope beyond them; one lead, or one a stream."""
    steps = np.array(LEADS)
    row = np.clip(np.searchsorted(steps, lead), 1, len(LEADS) - 1)
    part = (lead - steps[row - 1]) / (steps[row] - steps[row - 1])
    each = slice(None) if np.ndim(row) == 0 else np.arange(scored.shape[1])
    line: Floats = scored[row - 1, each] + (scored[row, each] - scored[row - 1, each]) * part
    return line


def _tag(method: Method) -> str:
    return f"forecast {method!r}"
