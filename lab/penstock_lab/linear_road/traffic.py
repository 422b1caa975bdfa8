"""Traffic of Linear Road (Arasu et al., VLDB 2004): position reports and queries of cars on L expressways.

An expressway has 100 segments of a mile in each of two directions. A car reports every 30 seconds where it is
and how fast it went; its first report comes from the entrance ramp (lane 0), its last one from the exit ramp
(lane 4). The number of cars grows over the run as in the benchmark: from 15 reports a second for each
expressway to 1,700 after three hours. The benchmark's own data comes from a traffic simulator; here speeds
follow waves of congestion that travel along the road.

A part of the reports is followed by a query, with the shares of the benchmark: 0.5 % ask for the balance of
an account and 0.1 % for the expenditure of a day. Queries for travel times (type 4, 0.4 %) are left out, as
in nearly all implementations. The same fields give the same rows.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

__all__ = [
    "BALANCE_QUERY",
    "DAYS",
    "EXIT_LANE",
    "EXPENDITURE_QUERY",
    "HISTORY_COLUMNS",
    "INPUT_COLUMNS",
    "INPUT_NAMES",
    "INTERVAL_S",
    "POSITION_REPORT",
    "SEGMENTS",
    "START_US",
    "Traffic",
    "read_trace",
]

INPUT_COLUMNS = (
    "time timestamp, type int, vid int, speed int, xway int, lane int, dir int, seg int, pos int, qid int, "
    "day int"
)
INPUT_NAMES = tuple(each.split()[0] for each in INPUT_COLUMNS.split(", "))
HISTORY_COLUMNS = "time timestamp, vid int, day int, xway int, toll int"

POSITION_REPORT, BALANCE_QUERY, EXPENDITURE_QUERY = 0, 2, 3
START_US = 1_704_067_200_000_000  # second 0 of a run: 2024-01-01 00:00 UTC
SEGMENTS = 100
INTERVAL_S = 30
EXIT_LANE = 4
DAYS = 69  # that the history goes back

_MILE = 5280  # feet
_LENGTH = SEGMENTS * _MILE
_FEET = 44  # that a car goes in 30 s for each mile an hour
_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
_TIME = pa.timestamp("us", tz="UTC")
_NONE = -1  # what the benchmark writes in fields that a type does not have
_BALANCES, _EXPENDITURES = 0.005, 0.001
_STANDS = 9  # reports, in the mean
_TRIP_FEET = 10 * _MILE

Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Traffic:
    """Rows of `seconds` seconds from second `begin` of a run of `run` seconds, in the order of time.

    `least` and `most` are reports a second on each expressway at the begin and at the end of the run;
    `accidents` are those of an hour on each expressway. A car stands for three to six minutes then, and so do
    as many cars that break down alone. What is generated from the middle of a run begins with the cars that
    are on the road by then, some of which stand.

    >>> traffic = Traffic(expressways=2, seconds=120, begin=600, seed=1)
    >>> traffic.reports.num_rows > 2 * 120 * 100
    True
    """

    expressways: int = 1
    seconds: int = 10_800
    begin: int = 0
    run: int = 10_800
    least: float = 15.0
    most: float = 1700.0
    accidents: float = 3.0
    seed: int = 7

    def __post_init__(self) -> None:
        if self.begin % 60 or self.begin < 0:
            raise ValueError(f"begin is {self.begin}; give a whole minute in seconds, such as 600")
        if self.expressways < 1 or self.seconds < 1 or not 0 <= self.least <= self.most:
            raise ValueError(
                f"expressways is {self.expressways}, seconds {self.seconds}, least {self.least:g} and most "
                f"{self.most:g}; give at least 1, 1, and rates that do not fall"
            )

    def rate(self, second: float) -> float:
        """Reports a second on one expressway; it grows evenly over the run, and stays after it.

        >>> Traffic().rate(5400)
        857.5
        """
        return self.least + (self.most - self.least) * min(1.0, second / self.run)

    @cached_property
    def reports(self) -> pa.Table:
        """Position reports and queries, with the columns of `INPUT_COLUMNS`; about 100 bytes a row."""
        cars = _Cars(self)
        first = self.begin // INTERVAL_S
        steps = [cars.step(first + number) for number in range(-(-self.seconds // INTERVAL_S))]
        made = {name: np.concatenate([each[name] for each in steps]) for name in steps[0]}
        rows = self._with_queries(made)
        kept = np.flatnonzero(rows["second"] < self.begin + self.seconds)
        order = kept[np.argsort(rows["second"][kept], kind="stable")]
        return _table({name: values[order] for name, values in rows.items()})

    @cached_property
    def history(self) -> pa.Table:
        """Tolls of the last 69 days, with the columns of `HISTORY_COLUMNS`.

        The benchmark has a toll for every car and day. Here only cars that ask for an expenditure have a
        history, on four days of five, each on one expressway, since no other row can be in an answer.
        """
        rng = np.random.default_rng([self.seed, 2])
        asks = self.reports.filter(pc.equal(self.reports["type"], EXPENDITURE_QUERY))
        cars = np.unique(asks["vid"].to_numpy())
        vid, day = np.repeat(cars, DAYS), np.tile(np.arange(1, DAYS + 1), len(cars))
        there = rng.random(len(vid)) < 0.8
        vid, day = vid[there], day[there]
        return pa.table(
            {
                "time": pa.array(np.full(len(vid), START_US - _DAY_US)).cast(_TIME),
                "vid": pa.array(vid, pa.int32()),
                "day": pa.array(day, pa.int32()),
                "xway": pa.array(rng.integers(0, self.expressways, len(vid)), pa.int32()),
                "toll": pa.array(rng.integers(10, 100, len(vid)), pa.int32()),
            }
        )

    def _with_queries(self, made: dict[str, Wholes]) -> dict[str, Wholes]:
        """The reports, then the queries that some of them are followed by."""
        rng = np.random.default_rng([self.seed, 1])
        chance = rng.random(len(made["vid"]))
        asking = np.flatnonzero(chance < _BALANCES + _EXPENDITURES)
        wanted = np.where(chance[asking] < _BALANCES, BALANCE_QUERY, EXPENDITURE_QUERY)
        by_day = wanted == EXPENDITURE_QUERY
        nothing = np.full(len(asking), _NONE)
        reports = {"type": np.full(len(made["vid"]), POSITION_REPORT), **made}
        reports |= {name: np.full(len(made["vid"]), _NONE) for name in ("qid", "day")}
        queries = {
            **dict.fromkeys(reports, nothing),
            "type": wanted,
            "second": made["second"][asking],
            "vid": made["vid"][asking],
            "xway": np.where(by_day, rng.integers(0, self.expressways, len(asking)), _NONE),
            "qid": np.arange(len(asking)),
            "day": np.where(by_day, rng.integers(1, DAYS + 1, len(asking)), _NONE),
        }
        return {name: np.concatenate([reports[name], queries[name]]) for name in reports}


class _Cars:
    """The cars on the road, moved by 30 seconds in each step.

    A place holds one car after another: when a car has left, the place is empty for one interval, and then
    the same car comes back or a new one comes. Places are never given up, since the traffic only grows, and
    each has its expressway, its direction and the second of the interval at which it reports.
    """

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._rng = np.random.default_rng([traffic.seed, 0])
        most = self._places(traffic.begin + traffic.seconds)
        number = np.arange(most)
        self._second = number % INTERVAL_S
        self._xway = number // INTERVAL_S % traffic.expressways
        self._dir = number // (INTERVAL_S * traffic.expressways) % 2
        self._vid = np.full(most, _NONE)
        self._age = np.full(most, _NONE)  # reports so far, -1 without a car
        self._way, self._end = np.zeros(most), np.zeros(most)  # feet along the direction
        self._manner = np.zeros(most)  # miles an hour that this driver is faster than others
        self._lane = np.zeros(most, np.int64)
        self._stands = np.zeros(most, np.int64)  # reports that it will still stand
        self._next_vid = 0
        self._phase = self._rng.random(2 * traffic.expressways)

    def step(self, number: int) -> dict[str, Wholes]:
        """The reports of an interval, in the order of places."""
        opening = self._next_vid == 0
        there = self._places(number * INTERVAL_S)
        self._enter(there, on_the_way=opening and number > 0)
        speed = self._drive(there, number)
        self._collide(there, speed, _STANDS if opening and number > 0 else 1)
        return self._reported(there, speed, number)

    def _places(self, second: float) -> int:
        traffic = self._traffic
        return round(INTERVAL_S * traffic.expressways * traffic.rate(second))

    def _enter(self, there: int, *, on_the_way: bool) -> None:
        """Cars for empty places; a place that was left in the last step stays empty for this one."""
        rng, age = self._rng, self._age
        left = np.flatnonzero(age[:there] < _NONE)
        empty = np.flatnonzero(age[:there] == _NONE)
        age[left] += 1
        fresh = (self._vid[empty] < 0) | (rng.random(len(empty)) < 0.5)
        self._vid[empty[fresh]] = self._next_vid + np.arange(fresh.sum())
        self._next_vid += int(fresh.sum())
        self._way[empty] = rng.uniform(0, _LENGTH - _MILE, len(empty))
        trip = _MILE + rng.exponential(_TRIP_FEET, len(empty))
        self._end[empty] = np.minimum(self._way[empty] + trip, _LENGTH - 1)
        self._manner[empty] = rng.normal(0, 4, len(empty))
        self._lane[empty] = rng.integers(1, EXIT_LANE, len(empty))
        age[empty] = int(on_the_way)

    def _drive(self, there: int, number: int) -> Wholes:
        """Move the cars; how fast each went."""
        age, way, stands = self._age[:there], self._way[:there], self._stands[:there]
        wave = self._phase[2 * self._xway[:there] + self._dir[:there]] + number * INTERVAL_S / 1500
        flow = 44 + 30 * np.sin(2 * np.pi * (way / _MILE / 25 + wave))
        speed = np.clip(np.rint(flow + self._manner[:there] + self._rng.normal(0, 3, there)), 5, 100)
        speed[(stands > 0) | (age < 0)] = 0
        moves = age > 0
        way[moves] += speed[moves] * _FEET
        np.minimum(way, self._end[:there], out=way)
        stands[stands > 0] -= 1
        whole: Wholes = speed.astype(np.int64)
        return whole

    def _collide(self, there: int, speed: Wholes, intervals: int) -> None:
        """Stop pairs of neighbours in one place, and as many single cars: those of so many intervals."""
        traffic, rng = self._traffic, self._rng
        count = rng.poisson(traffic.accidents * traffic.expressways * intervals * INTERVAL_S / 3600)
        going = (
            (self._age[:there] > 0) & (self._stands[:there] == 0) & (self._way[:there] < self._end[:there])
        )
        cars = np.flatnonzero(going)
        road = 2 * self._xway[cars] + self._dir[cars]
        cars = cars[np.lexsort((self._way[cars], road))]
        pairs = cars[: len(cars) // 2 * 2].reshape(-1, 2)
        pairs = pairs[np.ptp(2 * self._xway[pairs] + self._dir[pairs], axis=1) == 0]
        pairs = pairs[rng.permutation(len(pairs))[: 2 * count]]
        behind, ahead = pairs[:count].T
        self._way[behind], self._lane[behind] = self._way[ahead], self._lane[ahead]
        self._end[behind] = np.maximum(self._end[behind], np.minimum(self._way[behind] + _MILE, _LENGTH - 1))
        stopped = np.concatenate([behind, ahead, pairs[count:, 0]])
        self._stands[stopped] = rng.integers(_STANDS - 3, _STANDS + 4, len(stopped))
        speed[stopped] = 0

    def _reported(self, there: int, speed: Wholes, number: int) -> dict[str, Wholes]:
        """A report of each car; those at the end of their trips leave."""
        cars = np.flatnonzero(self._age[:there] >= 0)
        leaves = (self._way[cars] >= self._end[cars]) & (self._age[cars] > 0)
        lane = np.where(self._age[cars] == 0, 0, np.where(leaves, EXIT_LANE, self._lane[cars]))
        way = self._way[cars].astype(np.int64)
        direction = self._dir[cars]
        pos = np.where(direction == 0, way, _LENGTH - 1 - way)
        self._age[cars] = np.where(leaves, _NONE - 1, self._age[cars] + 1)
        return {
            "second": number * INTERVAL_S + self._second[cars],
            "vid": self._vid[cars],
            "speed": speed[cars],
            "xway": self._xway[cars],
            "lane": lane,
            "dir": direction,
            "seg": pos // _MILE,
            "pos": pos,
        }


def read_trace(path: Path | str) -> pa.Table:
    """Input of the benchmark from a CSV file with a header, such as the one of the original generator.

    Travel-time queries are left out. The rows stay in the order of the file.
    """
    given = pyarrow.csv.read_csv(path)
    given = given.filter(
        pc.is_in(given["type"], pa.array([POSITION_REPORT, BALANCE_QUERY, EXPENDITURE_QUERY]))
    )
    names = [name for name in INPUT_NAMES if name != "time"]
    return _table({"second": given["time"].to_numpy(), **{name: given[name].to_numpy() for name in names}})


def _table(rows: dict[str, Any]) -> pa.Table:
    time = pa.array(START_US + rows["second"] * _SECOND_US).cast(_TIME)
    return pa.table(
        {
            name: time if name == "time" else pa.array(rows[name]).cast(pa.int32(), safe=True)
            for name in INPUT_NAMES
        }
    )
