"""NEXMark: an auction house as three streams, of persons, auctions and bids, for the queries of that name.

Of 50 events one is a new person, three are new auctions and 46 are bids, evenly spaced in time. Half of the
bids go to a hot auction, the latest whose number is divisible by 100; three quarters of the bids come from a
hot bidder, and three quarters of the auctions from a hot seller, chosen in the same way. Other bids go to
one of the last 100 auctions, and other people are among the last 1,000. Prices are log-uniform from 100 to
100,000,000. Half of the bids come through one of four large channels, the others through one of 10,000.

The shape is that of the public generators (Tucker et al., "NEXMark: a benchmark for queries over data
streams", 2002; Apache Beam; nexmark/nexmark); the random numbers are our own.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["AUCTION", "BID", "PERSON", "Nexmark"]

PERSON: Final = (
    "id bigint, name string, email string, credit_card string, city string, state string, "
    "date_time timestamp, extra string"
)
AUCTION: Final = (
    "id bigint, item_name string, description string, initial_bid bigint, reserve bigint, "
    "date_time timestamp, expires timestamp, seller bigint, category bigint, extra string"
)
BID: Final = (
    "auction bigint, bidder bigint, price bigint, channel string, url string, date_time timestamp, "
    "extra string"
)

_START_US = 1_436_918_400_000_000  # 2015-07-15 00:00 UTC
_CYCLE, _PERSONS, _AUCTIONS = 50, 1, 3
_BIDS = _CYCLE - _PERSONS - _AUCTIONS
_FIRST = 1000  # the number of the first person and of the first auction
_HOT_EVERY = 100
_IN_FLIGHT, _ACTIVE, _LEAD = 100, 1000, 10
_CHANNELS = 10_000
_CATEGORIES, _FIRST_CATEGORY = 5, 10
_POOL = 4096  # texts from which long columns are drawn
_TIME = pa.timestamp("us", tz="UTC")
_LARGE = ("Google", "Facebook", "Baidu", "Apple")
_PLACES = (
    ("Phoenix", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Redmond", "WA"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
)
_FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")

Wholes = NDArray[np.int64]


@dataclass(frozen=True)
class Nexmark:
    """`events` events, `rate` a second of event time, each stream in the order of time.

    >>> house = Nexmark(events=1000)
    >>> house.persons.num_rows, house.auctions.num_rows, house.bids.num_rows
    (20, 60, 920)
    """

    events: int
    rate: int = 10_000
    seed: int = 7

    @cached_property
    def persons(self) -> pa.Table:
        """New persons, with the columns of `PERSON`."""
        rng = np.random.default_rng([self.seed, 1])
        number = np.arange(self._cycles)
        count = len(number)
        first, last = rng.integers(0, len(_FIRST_NAMES), count), rng.integers(0, len(_LAST_NAMES), count)
        place = rng.integers(0, len(_PLACES), count)
        names = [f"{one} {other}" for one in _FIRST_NAMES for other in _LAST_NAMES]
        mails = [f"{name.replace(' ', '.').lower()}@example.com" for name in names]
        cards = [" ".join(f"{part:04}" for part in four) for four in rng.integers(0, 10_000, (_POOL, 4))]
        full = first * len(_LAST_NAMES) + last
        return pa.table(
            {
                "id": number + _FIRST,
                "name": _chosen(names, full),
                "email": _chosen(mails, full),
                "credit_card": _chosen(cards, rng.integers(0, _POOL, count)),
                "city": _chosen([city for city, _ in _PLACES], place),
                "state": _chosen([state for _, state in _PLACES], place),
                "date_time": self._times(number * _CYCLE),
                "extra": _texts(rng, count, 60),
            }
        )

    @cached_property
    def auctions(self) -> pa.Table:
        """New auctions, with the columns of `AUCTION`."""
        rng = np.random.default_rng([self.seed, 2])
        number = np.arange(self._cycles * _AUCTIONS)
        count, cycle = len(number), number // _AUCTIONS
        event = cycle * _CYCLE + _PERSONS + number % _AUCTIONS
        # As long as it takes until 100 other auctions have begun, on average.
        horizon = max(_IN_FLIGHT * _CYCLE * 1_000_000 // (_AUCTIONS * self.rate), 1)
        initial = _prices(rng, count)
        return pa.table(
            {
                "id": number + _FIRST,
                "item_name": _texts(rng, count, 20),
                "description": _texts(rng, count, 100),
                "initial_bid": initial,
                "reserve": initial + _prices(rng, count),
                "date_time": self._times(event),
                "expires": self._times(event, later=1 + rng.integers(0, 2 * horizon, count)),
                "seller": _people(rng, cycle, hot=0),
                "category": _FIRST_CATEGORY + rng.integers(0, _CATEGORIES, count),
                "extra": _texts(rng, count, 80),
            }
        )

    @cached_property
    def bids(self) -> pa.Table:
        """Bids, with the columns of `BID`."""
        rng = np.random.default_rng([self.seed, 3])
        number = np.arange(self._cycles * _BIDS)
        count, cycle = len(number), number // _BIDS
        event = cycle * _CYCLE + _PERSONS + _AUCTIONS + number % _BIDS
        newest = cycle * _AUCTIONS + _AUCTIONS - 1
        recent = newest - (rng.random(count) * np.minimum(newest + 1, _IN_FLIGHT)).astype(np.int64)
        hot = newest // _HOT_EVERY * _HOT_EVERY
        channel = np.where(
            rng.random(count) < 0.5,
            rng.integers(0, len(_LARGE), count),
            len(_LARGE) + rng.integers(0, _CHANNELS, count),
        )
        channels = [*_LARGE, *(f"channel-{each}" for each in range(_CHANNELS))]
        return pa.table(
            {
                "auction": np.where(rng.random(count) < 0.5, hot, recent) + _FIRST,
                "bidder": _people(rng, cycle, hot=1),
                "price": _prices(rng, count),
                "channel": _chosen(channels, channel),
                "url": _chosen(_urls(rng), channel),
                "date_time": self._times(event),
                "extra": _texts(rng, count, 50),
            }
        )

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The three streams by their names."""
        return {"person": self.persons, "auction": self.auctions, "bid": self.bids}

    def write(self, folder: Path, files: int) -> dict[str, Path]:
        """A folder of so many Parquet files for each stream; the n-th files cover the same span of time."""
        folders = {}
        for name, table in self.tables.items():
            folders[name] = folder / name
            folders[name].mkdir(parents=True)
            cycles = np.linspace(0, self._cycles, files + 1).astype(np.int64)
            bounds = (cycles * (table.num_rows // self._cycles)).tolist()
            for place, (begin, end) in enumerate(pairwise(bounds)):
                path = folders[name] / f"{place:05}.parquet"
                pq.write_table(table.slice(begin, end - begin), path, compression="zstd")
        return folders

    @property
    def _cycles(self) -> int:
        return max(self.events // _CYCLE, 1)

    def _times(self, event: Wholes, later: Wholes | int = 0) -> pa.Array:
        return pa.array(_START_US + event * 1_000_000 // self.rate + later, _TIME)


def _people(rng: np.random.Generator, cycle: Wholes, *, hot: int) -> Wholes:
    """Three quarters are the hot one, the others among the latest, and some who are not yet known."""
    count = len(cycle)
    among = np.minimum(cycle + 1, _ACTIVE) + _LEAD
    recent = cycle + _LEAD - (rng.random(count) * among).astype(np.int64)
    found: Wholes = np.where(rng.random(count) < 0.75, cycle // _HOT_EVERY * _HOT_EVERY + hot, recent)
    return np.maximum(found, 0) + _FIRST


def _prices(rng: np.random.Generator, count: int) -> Wholes:
    prices: Wholes = np.round(10 ** (rng.random(count) * 6) * 100).astype(np.int64)
    return prices


def _texts(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """Small letters, from half as many to half as many more."""
    letters = rng.integers(97, 123, _POOL * 2 * length, dtype=np.uint8).tobytes().decode()
    sizes = rng.integers(length // 2, length + length // 2 + 1, _POOL).tolist()
    pool = [letters[2 * length * place :][:size] for place, size in enumerate(sizes)]
    return _chosen(pool, rng.integers(0, _POOL, count))


def _urls(rng: np.random.Generator) -> list[str]:
    """One for each channel; nine of ten small channels have their number in it."""
    parts = rng.integers(97, 123, ((len(_LARGE) + _CHANNELS) * 3, 5), dtype=np.uint8)
    names = [bytes(each).decode() for each in parts]
    tagged = rng.random(len(_LARGE) + _CHANNELS) < 0.9
    urls = []
    for place in range(len(_LARGE) + _CHANNELS):
        path = "/".join(names[3 * place : 3 * place + 3])
        tag = f"&channel_id={place - len(_LARGE)}" if place >= len(_LARGE) and tagged[place] else ""
        urls.append(f"https://www.nexmark.com/{path}/item.htm?query=1{tag}")
    return urls


def _chosen(pool: list[str], places: Wholes) -> pa.Array:
    return pa.array(pool).take(pa.array(places))
