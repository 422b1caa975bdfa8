"""Call description records as in [002] §IV.B, with cloned phones that are known to be frauds.

A record is emitted when a call has ended. People move slowly, so two records of one phone are never further
apart than `TOP_SPEED` times the seconds between them; a clone calls within a minute of the real phone from
at least `FAR` metres away. The same fields give the same records.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock_lab.workloads.zipf import draw, zipf_shares

__all__ = ["CALL_COLUMNS", "FAR", "SUSPECT_COLUMNS", "TOP_SPEED", "CallRecords"]

CALL_COLUMNS = (
    "time timestamp not null, caller bigint not null, called bigint not null, start timestamp not null, "
    "stop timestamp not null, district int not null, x double not null, y double not null"
)
SUSPECT_COLUMNS = "time timestamp not null, number bigint not null"
TOP_SPEED = 30.0  # metres a second
FAR = 60_000.0  # metres
DISTRICTS = 100

_START_US = 1_704_067_200_000_000  # 2024-01-01 00:00 UTC
_SECOND_US = 1_000_000
_SIDE = 100_000.0  # metres, of the square in which people live
_ROUND = 3_000.0  # metres, the most that somebody goes away from home
_FIRST_NUMBER = 600_000_000
_MEAN_CALL = 120  # seconds
_WITHIN = 59  # seconds from a real call to one of the clone
_TIME = pa.timestamp("us", tz="UTC")

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]


@dataclass(frozen=True)
class CallRecords:
    """`calls` records over `seconds` of emission time, in order of arrival.

    Callers and called numbers are drawn from `phones` by Zipf(`skew`). A part `cloned` of the records comes
    from clones, a part `suspicious` of the phones is reported as such, once. A record arrives less than
    `disorder` seconds after it was emitted.

    >>> records = CallRecords(calls=1000, seconds=600, phones=50, cloned=0.01)
    >>> records.table.num_rows, records.frauds.num_rows, records.suspects.num_rows
    (1000, 10, 2)
    """

    calls: int
    seconds: int = 600
    phones: int = 100_000
    skew: float = 1.0
    cloned: float = 0.001
    suspicious: float = 0.05
    disorder: float = 1.0
    seed: int = 7

    @cached_property
    def table(self) -> pa.Table:
        """The records, with the columns of `CALL_COLUMNS`; costs about 300 bytes a record while it works."""
        rng = np.random.default_rng([self.seed, 1])
        phone = np.concatenate([self._phone, self._phone[self._copied]])
        time = np.concatenate([self._time, self._clone_time])
        stop = time - rng.integers(0, 2 * _SECOND_US, self.calls)
        length = np.minimum(rng.exponential(_MEAN_CALL, self.calls) + 1, 3600) * _SECOND_US
        x, y = self._places(phone, time)
        made = {
            "time": pa.array(time, _TIME),
            "caller": pa.array(phone + _FIRST_NUMBER),
            "called": pa.array(self._popular(rng, self.calls) + _FIRST_NUMBER),
            "start": pa.array(stop - length.astype(np.int64), _TIME),
            "stop": pa.array(stop, _TIME),
            "district": pa.array(_district(x, y)),
            "x": pa.array(x),
            "y": pa.array(y),
        }
        arrival = time + rng.integers(0, max(1, int(self.disorder * _SECOND_US)), self.calls)
        return pa.table(made).take(pa.array(np.argsort(arrival, kind="stable")))

    @cached_property
    def frauds(self) -> pa.Table:
        """The truth: a phone, the time of its own call and the time of the call of its clone after it."""
        return pa.table(
            {
                "caller": pa.array(self._phone[self._copied] + _FIRST_NUMBER),
                "real": pa.array(self._time[self._copied], _TIME),
                "clone": pa.array(self._clone_time, _TIME),
            }
        )

    @cached_property
    def suspects(self) -> pa.Table:
        """Suspicious numbers in order of the time at which they were reported."""
        rng = np.random.default_rng([self.seed, 2])
        count = int(self.phones * self.suspicious)
        time = _START_US + np.sort(rng.integers(0, self.seconds * _SECOND_US, count))
        number = rng.permutation(self.phones)[:count] + _FIRST_NUMBER
        return pa.table({"time": pa.array(time, _TIME), "number": pa.array(number)})

    @property
    def _clones(self) -> int:
        return int(self.calls * self.cloned)

    @cached_property
    def _phone(self) -> Wholes:
        """The phones of the real calls."""
        return self._popular(np.random.default_rng([self.seed, 3]), self.calls - self._clones)

    @cached_property
    def _time(self) -> Wholes:
        """When the records of the real calls were emitted, evenly."""
        count = self.calls - self._clones
        steps: Wholes = np.arange(count, dtype=np.int64) * (self.seconds * _SECOND_US) // max(count, 1)
        return _START_US + steps

    @cached_property
    def _copied(self) -> Wholes:
        """The real calls that a clone follows."""
        rng = np.random.default_rng([self.seed, 4])
        return rng.permutation(self.calls - self._clones)[: self._clones]

    @cached_property
    def _clone_time(self) -> Wholes:
        rng = np.random.default_rng([self.seed, 5])
        later: Wholes = rng.integers(_SECOND_US, _WITHIN * _SECOND_US, self._clones)
        return self._time[self._copied] + later

    def _popular(self, rng: np.random.Generator, count: int) -> Wholes:
        # Without the permutation hot phones would be neighbours, which flatters range partitioning.
        order = np.random.default_rng([self.seed, 6]).permutation(self.phones)
        found: Wholes = order[draw(rng, zipf_shares(self.phones, self.skew), count)]
        return found

    def _places(self, phone: Wholes, time: Wholes) -> tuple[Reals, Reals]:
        """Where phones are: on a circle around home, clones as far away as the square allows."""
        rng = np.random.default_rng([self.seed, 7])
        home = rng.uniform(_ROUND, _SIDE - _ROUND, (2, self.phones))
        radius = rng.uniform(100, _ROUND, self.phones)
        turning = rng.uniform(0, TOP_SPEED, self.phones) / radius
        angle = turning[phone] * (time - _START_US) / _SECOND_US
        places = home[:, phone] + radius[phone] * np.stack([np.cos(angle), np.sin(angle)])
        clone = np.arange(len(phone)) >= self.calls - self._clones
        # Half a side further, from whichever side one is: each coordinate changes by half a side at least.
        far = np.where(home < _SIDE / 2, _SIDE / 2, -_SIDE / 2)[:, phone]
        x, y = np.where(clone, places + far, places)
        return x, y


def _district(x: Reals, y: Reals) -> NDArray[np.int32]:
    """The number of a square of ten by ten; outside the large square, the nearest one."""
    side = int(DISTRICTS**0.5)
    column, row = (np.clip(each // (_SIDE / side), 0, side - 1) for each in (x, y))
    district: NDArray[np.int32] = (row * side + column).astype(np.int32)
    return district
