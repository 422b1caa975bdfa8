"""Frequent keys: counted by the channels in an epoch, and over the last epochs on the driver.

Each epoch adds at most 16,384 items, as runs of keys, so a step costs by the keys that channels report,
however many tuples came. A key is
seen if its share of an epoch is at least about 1/16,384. An operator over pairs is also counted for each of
its sides. The frequent keys and the sketch of all keys are part of the manifest: after a restart, counting
continues from them.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.routing import Frequencies
from penstock.routing.spark_hash import spark_hash
from penstock.sketches import Runs, SlidingCounting
from penstock.sketches.distinct import Distinct
from penstock.sketches.splitmix import splitmix64
from penstock.state.keys import normal, number_keys

__all__ = [
    "MOST_KEYS",
    "MOST_ROWS",
    "MOST_TRACKED",
    "FrequentKeys",
    "KeyCounts",
    "KnownKeys",
    "count_keys",
    "rounded",
]

MOST_KEYS = 64
"""The most keys that a channel reports; as many again of each side of an operator over pairs."""

MOST_ROWS = 65_536
"""The most rows of a channel from which its frequent keys are chosen: of more, heavy ones and a sample.

The chosen keys are then counted over all rows.
"""

# The keys of a sample that are counted over all rows: with this many, none of the top ones is left out.
_CANDIDATES = 4 * MOST_KEYS
_TEXTS = 16  # keys of a channel, the most frequent ones, that are told in readable form
_LONGEST_TEXT = 40

_Places = NDArray[np.int64]


@dataclass(frozen=True)
class KeyCounts:
    """Signed hashes of keys with the count of each among `total` tuples; `keys` is the number of all keys.

    `sides` has the counts of the same keys at each port of an operator over pairs, among `totals` tuples, and
    `rates` the usual tuples of an epoch. `texts` are the first of the keys in readable form, if a channel
    reports them.
    `sketch` has the hashes of all keys, if they were asked for.
    """

    hashes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    total: int = 0
    keys: int = 0
    texts: tuple[str, ...] = ()
    sides: tuple[tuple[int, ...], ...] = ()
    totals: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    sketch: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KeyCounts":
        """The counts from their plain values."""
        return cls(
            hashes=tuple(value["hashes"]),
            counts=tuple(value["counts"]),
            total=value["total"],
            keys=value["keys"],
            texts=tuple(value.get("texts", ())),
            sides=tuple(map(tuple, value.get("sides", ()))),
            totals=tuple(value.get("totals", ())),
            rates=tuple(value.get("rates", ())),
            sketch=value.get("sketch", ""),
        )

    def without_copies(self, copies: Mapping[int, tuple[float, float]]) -> "KeyCounts":
        """The counts where each row of these keys arrives so often, on the left and on the right side.

        >>> copied = KeyCounts((7, 8), (10, 4), 14, 2, sides=((4, 4), (6, 0)), totals=(8, 6))
        >>> true = copied.without_copies({7: (2, 3)})
        >>> true.counts, true.total, true.sides, true.totals
        ((4, 4), 8, ((2, 4), (2, 0)), (6, 2))
        """
        if not copies or len(self.sides) != 2:
            return self
        true = [
            tuple(
                round(count / copies.get(key, (1, 1))[side])
                for key, count in zip(self.hashes, own, strict=True)
            )
            for side, own in enumerate(self.sides)
        ]
        fewer = [sum(own) - sum(new) for own, new in zip(self.sides, true, strict=True)]
        return replace(
            self,
            counts=tuple(left + right for left, right in zip(*true, strict=True)),
            total=self.total - sum(fewer),
            sides=tuple(true),
            totals=tuple(total - less for total, less in zip(self.totals, fewer, strict=True)),
        )


def count_keys(
    columns: Sequence[Any],
    rows: int,
    weights: NDArray[np.int64] | None = None,
    *,
    ports: Sequence[int] = (),
    thorough: bool = False,
) -> KeyCounts:
    """Count the keys in these columns of a table; a row counts for as many tuples as its weight says.

    The most frequent keys are counted over all rows. Of more rows than `MOST_ROWS` a sample says which these
    are and how many keys there are. `ports` are the numbers of rows of each side, which follow each other in
    the columns. With `thorough`, the hash of every key goes into a sketch; that costs 20 ns a row for
    numbers, 80 for texts.

    >>> import pyarrow as pa
    >>> found = count_keys([pa.chunked_array([["a", "b", "a"]])], 3, ports=(1, 2))
    >>> found.counts, found.sides, found.total, found.keys
    ((2, 1), ((1, 0), (1, 1)), 3, 2)
    """
    if not columns or not rows:
        return KeyCounts(total=rows)
    every = list(columns)
    if rows > MOST_ROWS:
        at, estimates = _sampled(rows, weights, ports)
        numbers, keys = number_keys([column.take(pa.array(at)) for column in every], len(at))
        number = len(keys[0])
        guesses = [_added(numbers, estimates, number)]
        guesses += [_added(numbers[own], estimates[own], number) for own in _of_ports(at, ports)]
        chosen = _most(guesses, _CANDIDATES)
        candidates = [column.take(pa.array(chosen)) for column in keys]
        places, distinct = _found_in(every, candidates), (every, rows)
    else:
        places, candidates = number_keys(every, rows)
        number = len(candidates[0])
        distinct = (candidates, number)
    counts = _counted(places, weights, len(candidates[0]))
    sides = [_counted(places[own], None, len(candidates[0])) for own in _of_ports(None, ports)]
    top = _most([counts, *sides], MOST_KEYS)
    reported = [column.take(pa.array(top)) for column in candidates]
    shown = [_shown(column.slice(0, _TEXTS)) for column in reported]
    return KeyCounts(
        hashes=tuple(spark_hash(reported, len(top)).view(np.int64).tolist()),
        counts=tuple(counts[top].tolist()),
        total=rows if weights is None else int(weights.sum()),
        keys=number,
        texts=tuple(", ".join(map(str, row))[:_LONGEST_TEXT] for row in zip(*shown, strict=True)),
        sides=tuple(tuple(each[top].tolist()) for each in sides),
        totals=tuple(ports),
        sketch=_sketched(*distinct) if thorough else "",
    )


def _shown(column: Any) -> list[Any]:
    """The values of a column for people; times that Python cannot hold are the numbers behind them."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(f"int{column.type.bit_width}").to_pylist()
    return found


def _sketched(columns: Sequence[Any], rows: int) -> str:
    found = Distinct()
    found.update(spark_hash(columns, rows))
    return found.to_text()


def _of_ports(at: NDArray[Any] | None, ports: Sequence[int]) -> list[slice]:
    """The rows of each side among ascending places, or among all."""
    ends = np.cumsum([0, *ports])
    return [slice(*pair) for pair in pairwise(ends if at is None else np.searchsorted(at, ends))]


def _added(numbers: _Places, weights: NDArray[np.float64], keys: int) -> NDArray[np.float64]:
    return np.bincount(numbers, weights, keys).astype(np.float64)


def _counted(places: _Places, weights: NDArray[np.int64] | None, keys: int) -> _Places:
    """How many tuples each key has; a place behind them is none. Floats add up to 2^53 exactly."""
    return np.bincount(places, weights, keys + 1)[:keys].astype(np.int64)


def _most(counts: Sequence[NDArray[Any]], most: int) -> NDArray[np.intp]:
    """The keys with the most of any of these counts, ordered by the first."""
    chosen = [np.argpartition(-each, min(most, len(each)) - 1)[:most] for each in counts]
    found = np.unique(np.concatenate(chosen))
    return found[np.argsort(-counts[0][found], kind="stable")]


def _found_in(columns: Sequence[Any], keys: Sequence[Any]) -> _Places:
    """The place of each row's key among these keys, behind them if it is none; 15 ns a row and column."""
    rows, wanted = _column_places(columns[0], keys[0])
    if len(columns) == 1:
        return rows
    for column, own in zip(columns[1:], keys[1:], strict=True):
        more, wanted_more = _column_places(column, own)
        size = len(own) + 1
        # Rows of no key get a number that no key has.
        joint, wanted_joint = rows * size + more, wanted * size + wanted_more
        known = np.unique(wanted_joint)
        rows, wanted = _at(known, joint), _at(known, wanted_joint)
    order = np.full(len(known) + 1, len(wanted))
    order[wanted] = np.arange(len(wanted))
    return order[rows]


def _column_places(column: Any, keys: Any) -> tuple[_Places, _Places]:
    """The places of a column's values, and of the keys' own, among the distinct values of the keys."""
    values = keys.unique()
    none = pa.scalar(len(keys), pa.int32())
    found = [pc.fill_null(pc.index_in(each, value_set=values), none) for each in (normal(column), keys)]
    rows, wanted = (np.asarray(each).astype(np.int64) for each in found)
    return rows, wanted


def _at(known: _Places, wanted: _Places) -> _Places:
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, places, len(known))


def _sampled(
    rows: int, weights: NDArray[np.int64] | None, ports: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ascending places and weights of the rows that stand for all: every heavy row, a sample of light ones.

    A row is heavy if it has more than 1/32,768 of all weight, so no frequent key is missed because of one
    row. The sample takes a row at random out of each of many equal runs, so that no period in the data can
    meet it. The same rows always give the same sample. Each side has its own sample.
    """
    if len(ports) > 1:
        starts = np.cumsum([0, *ports])
        parts = [
            (_one_of_each_run(each, MOST_ROWS // len(ports)), start, each)
            for start, each in zip(starts, ports, strict=False)
            if each
        ]
        places = np.concatenate([at + start for at, start, _ in parts])
        return places, np.concatenate([np.full(len(at), each / len(at)) for at, _, each in parts])
    if weights is None:
        taken = _one_of_each_run(rows, MOST_ROWS)
        return taken, np.full(len(taken), rows / len(taken))
    total = int(weights.sum())
    is_heavy = weights > total / (MOST_ROWS // 2)
    heavy = np.flatnonzero(is_heavy)
    taken = _one_of_each_run(rows, MOST_ROWS - len(heavy))
    taken = taken[~is_heavy[taken]]
    rest, found = total - int(weights[heavy].sum()), int(weights[taken].sum())
    scaled = weights[taken] * (rest / found if found else 1.0)
    return np.concatenate([heavy, taken]), np.concatenate([weights[heavy].astype(np.float64), scaled])


def _one_of_each_run(rows: int, most: int) -> NDArray[np.intp]:
    """A place at random out of each of at most so many equal runs of rows."""
    run = -(-rows // most)
    starts = np.arange(0, rows, run)
    within = splitmix64(starts.astype(np.uint64), seed=2) % np.uint64(run)
    return np.minimum(starts + within.astype(np.intp), rows - 1)


MOST_TRACKED = 1024
"""The most keys of a stage that are tracked."""

_ITEMS = 16_384  # of an epoch
_EPOCHS = 4  # that count; with more, changed keys are known too late
_WINDOW = _EPOCHS * _ITEMS
# Errors of shares: more is never needed for the table, and less than half an item of an epoch cannot be seen.
_EPSILON, _FINEST = 1e-4, 0.5 / _ITEMS
_REMEMBERED = 256  # keys in a manifest
# If so much of all tuples went over to others of the top keys, in an epoch of enough tuples to tell.
_TOP, _CHANGED, _TELLING = 16, 0.1, 2000
_MOST_TEXTS = 1024
_SHOWN_TEXTS = 64
_DIGITS = 7  # of shares in observations
# Keys are sketched again after one epoch while they become more than so many times as many as they were, and
# after twice as many epochs each time that they do not.
_GROWN, _LONGEST_REST = 1.05, 16


@dataclass(frozen=True)
class KnownKeys:
    """The frequent keys over the last epochs: signed hashes, and the share of tuples of each, the most first.

    An operator over pairs also has the shares of each side's own tuples, in the order of the hashes, and how
    many tuples each side had. `texts` are some of the keys in readable form. Shares have seven digits, which
    is more than was counted, so that a recording has them as they are.
    """

    hashes: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    sides: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    rates: tuple[float, float] = (0.0, 0.0)
    texts: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KnownKeys":
        """The keys from their plain values."""
        left, right = value["sides"]
        one, other = value["rates"]
        return cls(
            tuple(np.frombuffer(base64.b64decode(value["hashes"]), "<i8").tolist()),
            _shares(value["shares"]),
            (_shares(left), _shares(right)),
            (one, other),
            {int(key): text for key, text in value["texts"].items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values: hashes and shares as bytes in text, shares in units of the last digit."""
        return {
            "hashes": base64.b64encode(np.array(self.hashes, "<i8").tobytes()).decode(),
            "shares": _units(self.shares),
            "sides": [_units(each) for each in self.sides],
            "rates": self.rates,
            "texts": self.texts,
        }

    @property
    def frequencies(self) -> Frequencies:
        """The keys as routers take them."""
        return Frequencies(np.array(self.hashes, np.int64).view(np.uint64), np.array(self.shares, np.float64))


def rounded(shares: NDArray[np.float64]) -> tuple[float, ...]:
    """Shares as `KnownKeys` have them."""
    return tuple(np.round(shares, _DIGITS).tolist())


def _units(shares: Sequence[float]) -> str:
    units = np.rint(np.array(shares, np.float64) * 10**_DIGITS).astype("<u4")
    return base64.b64encode(units.tobytes()).decode()


def _shares(units: str) -> tuple[float, ...]:
    return tuple((np.frombuffer(base64.b64decode(units), "<u4") / 10**_DIGITS).tolist())


@dataclass
class _Shares:
    """The shares of keys over about the last four epochs.

    `known` are the keys that came more than once. People may ask for them while an epoch is counted.
    """

    epsilon: float = _EPSILON
    known: Frequencies = field(init=False)
    _counting: SlidingCounting = field(init=False)

    def __post_init__(self) -> None:
        self._counting = SlidingCounting(self.epsilon, _WINDOW)
        self.known = Frequencies(np.zeros(0, np.uint64), np.zeros(0))

    def update(self, hashes: Sequence[int], counts: Sequence[int], total: int) -> None:
        """Take in an epoch."""
        if not total:
            return
        scale = max(1.0, total / _ITEMS)
        keys = np.array(hashes, np.int64).view(np.uint64)
        items = np.round(np.array(counts, np.int64) / scale).astype(np.int64)
        # What is not reported counts in the total, as keys that come once and never again.
        others = max(0, round(total / scale) - int(items.sum()))
        self._counting.update(Runs(keys, items, others))
        found = self._counting.items()
        often = int(np.searchsorted(-found.counts, -1.0))  # counts fall
        most = min(often, MOST_TRACKED)
        self.known = Frequencies(found.hashes[:most], found.frequencies[:most])


@dataclass
class FrequentKeys:
    """The frequent keys of one stage; `keys` is the largest number of keys that was counted in an epoch.

    `rates` are the tuples that each side of an operator over pairs has in an epoch, on average.
    """

    keys: int = 0
    rates: tuple[float, ...] = ()
    _all: _Shares = field(default_factory=_Shares)
    _sides: tuple[_Shares, ...] = ()
    _epochs: int = 0
    _distinct: Distinct = field(default_factory=Distinct)
    _texts: dict[int, str] = field(default_factory=dict)
    _rest: int = 0
    _rested: int = 0

    @property
    def epsilon(self) -> float:
        """By how much a share may be too low."""
        return self._all.epsilon

    @property
    def domain(self) -> int:
        """About how many keys there have been, with a standard error of 1.6 %; never below what is known."""
        return max(round(self._distinct.estimate), self.keys, len(self.known()), 1)

    @property
    def texts(self) -> Mapping[int, str]:
        """Some of the keys in readable form, by signed hash."""
        return self._texts

    @property
    def curious(self) -> bool:
        """Whether the channels should sketch all keys of the next epoch."""
        return self._rested >= self._rest

    def aim(self, delta: float) -> None:
        """Count finely enough for keys of this share: with errors of a tenth of it, as far as can be seen.

        Never coarser than before; finer counters start from the keys that a manifest would hold.
        """
        epsilon = max(delta / 10, _FINEST)
        # By half at least, so that a goal that changes little does not start the counters again.
        if epsilon < self.epsilon:
            counts = self.counts()
            finer = max(min(epsilon, self.epsilon / 2), _FINEST)
            self._all, self._sides = _Shares(finer), tuple(_Shares(finer) for _ in self._sides)
            self._count([counts])

    def resume(self, counts: KeyCounts) -> None:
        """Continue from what a manifest holds."""
        if counts.rates:
            self.rates, self._epochs = counts.rates, _EPOCHS
        if counts.sketch:
            self._distinct.merge(Distinct.from_text(counts.sketch))
        self._count([counts])

    def update(self, channels: Sequence[KeyCounts]) -> None:
        """Take in what the channels of an epoch report."""
        if not any(each.total for each in channels):
            return
        if self._changed(channels):
            # What was counted is of other keys: their shares would blur those of the new ones for epochs.
            self._all, self._sides = _Shares(self.epsilon), tuple(_Shares(self.epsilon) for _ in self._sides)
        self._count(channels)
        self._epochs += 1
        totals = [sum(each) for each in zip(*(one.totals for one in channels if one.totals), strict=True)]
        if totals:
            past = self.rates or (0.0,) * len(totals)
            weight = 1 / min(self._epochs, _EPOCHS)
            self.rates = tuple(old + (new - old) * weight for old, new in zip(past, totals, strict=True))
        self._sketch([each.sketch for each in channels if each.sketch])
        for each in channels:
            self._texts |= zip(each.hashes, each.texts, strict=False)
        while len(self._texts) > _MOST_TEXTS:
            del self._texts[next(iter(self._texts))]

    def _changed(self, channels: Sequence[KeyCounts]) -> bool:
        """Whether other keys are frequent in this epoch than in those before."""
        total, known = sum(each.total for each in channels), self.known()
        if total < _TELLING or not len(known):
            return False
        counted: dict[int, int] = {}
        for each in channels:
            for key, count in zip(each.hashes, each.counts, strict=True):
                counted[key] = counted.get(key, 0) + count
        top = sorted(counted, key=lambda key: (-counted[key], key))[:_TOP]
        keys = np.union1d(np.array(top, np.int64).view(np.uint64), known.hashes[:_TOP])
        own = np.array([counted.get(key, 0) / total for key in keys.view(np.int64).tolist()])
        return float(np.abs(own - known.of(keys)).sum()) / 2 > _CHANGED

    def _count(self, channels: Sequence[KeyCounts]) -> None:
        hashes = [key for each in channels for key in each.hashes]
        self.keys = max(self.keys, sum(each.keys for each in channels))
        self._all.update(
            hashes, [one for each in channels for one in each.counts], sum(each.total for each in channels)
        )
        sided = [each for each in channels if each.totals]
        if sided and not self._sides:
            self._sides = tuple(_Shares(self.epsilon) for _ in sided[0].totals)
        for side, shares in enumerate(self._sides):
            shares.update(
                [key for each in sided for key in each.hashes],
                [one for each in sided for one in each.sides[side]],
                sum(each.totals[side] for each in sided),
            )

    def _sketch(self, texts: Sequence[str]) -> None:
        self._rested += 1
        if not texts:
            return
        before = self._distinct.estimate
        for text in texts:
            self._distinct.merge(Distinct.from_text(text))
        grown = self._distinct.estimate > before * _GROWN
        self._rest = 0 if grown else min(max(2 * self._rest, 1), _LONGEST_REST)
        self._rested = 0

    def known(self) -> Frequencies:
        """The keys that came more than once, with their shares."""
        return self._all.known

    def observed(self) -> KnownKeys:
        """The same for policies, with the shares of each side, and keys that only one side has often."""
        known = self.known()
        hashes, shares = known.hashes, known.shares
        sides = [each.known for each in self._sides]
        if sides:
            more = np.setdiff1d(np.concatenate([each.hashes[:_REMEMBERED] for each in sides]), hashes)
            whole = sum(self.rates) or 1.0
            rare = sum(
                (each.of(more) * rate / whole for each, rate in zip(sides, self.rates, strict=True)),
                start=np.zeros(len(more)),
            )
            together = Frequencies(np.concatenate([hashes, more]), np.concatenate([shares, rare]))
            hashes, shares = together.hashes, together.shares
        signed = hashes.view(np.int64).tolist()
        own = [rounded(each.of(hashes)) for each in sides]
        return KnownKeys(
            hashes=tuple(signed),
            shares=rounded(shares),
            sides=(own[0], own[1]) if len(own) == 2 else ((), ()),
            rates=(self.rates[0], self.rates[1]) if len(self.rates) == 2 else (0.0, 0.0),
            texts={key: self._texts[key] for key in signed[:_SHOWN_TEXTS] if key in self._texts},
        )

    def counts(self) -> KeyCounts:
        """The part that a manifest holds."""
        known = self.known()
        hashes, shares = known.hashes[:_REMEMBERED], known.shares[:_REMEMBERED]
        counts = np.round(shares * _ITEMS).astype(np.int64)
        sides = [np.round(each.known.of(hashes) * _ITEMS).astype(np.int64) for each in self._sides]
        kept = np.logical_or.reduce([counts > 0, *(each > 0 for each in sides)])
        return KeyCounts(
            hashes=tuple(hashes[kept].view(np.int64).tolist()),
            counts=tuple(counts[kept].tolist()),
            total=_ITEMS,
            keys=self.keys,
            sides=tuple(tuple(each[kept].tolist()) for each in sides),
            totals=(_ITEMS,) * len(sides),
            rates=self.rates,
            sketch=self._distinct.to_text(),
        )
