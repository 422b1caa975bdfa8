"""A synthetic city whose vehicles report position and speed: skewed, swinging, bursty and out of order."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.demo.driving import positions, speeds
from penstock.demo.incidents import crowd, incidents, slow_down
from penstock.demo.layout import Floats, Layout, degrees, lay_out
from penstock.demo.rhythm import activity, rush

__all__ = ["DAWN", "DELAY_SECONDS", "SCHEMA", "City"]

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("vehicle", pa.string()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("speed", pa.float64()),
        ("kind", pa.string()),
    ]
)
DAWN = datetime(2024, 5, 14, 6, 0, tzinfo=UTC)
DELAY_SECONDS = 5.0
LATE_SHARE = 0.0005
NULL_TIME_SHARE = 0.0001
CROWD_SHARE = 0.02
KINDS, KIND_SHARES = ("traffic", "ping", "fuel"), (0.85, 0.12, 0.03)
LAYOUT_STREAM, REPORT_STREAM = 0, 1


@dataclass(frozen=True)
class City:
    """A city whose reports depend on nothing but the seed, the number of vehicles, the start and the minute.

    >>> city = City(seed=7, vehicles=1000, start=DAWN)
    >>> city.reports(90).equals(City(seed=7, vehicles=1000, start=DAWN).reports(90))
    True
    """

    seed: int
    vehicles: int
    start: datetime = DAWN
    _layout: Layout = field(init=False, repr=False, compare=False)
    _names: pa.Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the arguments and draw what stays the same from minute to minute."""
        if self.seed < 0 or self.vehicles < 1 or self.start.tzinfo is None:
            raise ValueError(
                f"City(seed={self.seed}, vehicles={self.vehicles}, start={self.start}): give a seed of 0 or "
                "more, at least one vehicle and a start with a time zone."
            )
        rng = np.random.default_rng([self.seed, LAYOUT_STREAM])
        object.__setattr__(self, "_layout", lay_out(rng, self.vehicles))
        object.__setattr__(self, "_names", _vehicle_names(self.vehicles))

    def reports(self, minute: int) -> pa.Table:
        """The reports that arrive in one minute after the start, in the order of arrival.

        A report's time is its arrival less its way through the network: up to 5 seconds for nearly all,
        2 to 10 minutes for the few that come truly late. About one in 10,000 lost its time on the way.
        """
        if minute < 0:
            raise ValueError(f"Minute {minute} lies before the start of the city; give 0 or more.")
        rng = np.random.default_rng([self.seed, REPORT_STREAM, minute])
        under_way = incidents(self.seed, self._layout, minute)
        of_day = (self.start.hour * 60 + self.start.minute + minute) % (24 * 60)
        regular = rng.poisson(self.vehicles * activity(of_day))
        crowded = round(CROWD_SHARE * regular) * len(under_way)
        seconds = _sent(rng, minute, regular + crowded)
        n = len(seconds)
        vehicle = rng.integers(0, self.vehicles, n)
        place, along = positions(rng, self._layout, vehicle, seconds)
        speed = speeds(rng, place, along, rush(of_day))
        crowd(rng, under_way, place, rng.permutation(n)[:crowded])
        slow_down(rng, under_way, place, speed)
        lon, lat = degrees(place)
        columns = [
            self._times(rng, seconds),
            self._names.take(pa.array(vehicle)),
            pa.array(np.round(lon, 6)),
            pa.array(np.round(lat, 6)),
            pa.array(np.round(speed, 1)),
            _kinds(rng, n),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _times(self, rng: np.random.Generator, seconds: Floats) -> pa.Array:
        micros = round(self.start.timestamp() * 1e6) + np.round(seconds * 1e6).astype(np.int64)
        lost = rng.random(len(seconds)) < NULL_TIME_SHARE
        return pa.array(micros, mask=lost).cast(SCHEMA.field("time").type)


def _vehicle_names(count: int) -> pa.Array:
    numbers = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), len(str(count - 1)), "0")
    return pc.binary_join_element_wise("v", numbers, "")


def _sent(rng: np.random.Generator, minute: int, n: int) -> Floats:
    """When n reports that arrive in a minute were sent, in seconds after the start, before which none was."""
    arrival = np.sort(rng.uniform(60.0 * minute, 60.0 * (minute + 1), n))
    sent = arrival - _network_delays(rng, n)
    return sent[sent >= 0.0]


def _network_delays(rng: np.random.Generator, n: int) -> Floats:
    """Seconds from each report's time to its arrival."""
    delay = np.minimum(rng.exponential(0.8, n), DELAY_SECONDS)
    late = rng.random(n) < LATE_SHARE
    return np.where(late, rng.uniform(120.0, 600.0, n), delay)


def _kinds(rng: np.random.Generator, n: int) -> pa.Array:
    codes = np.searchsorted(np.cumsum(KIND_SHARES)[:-1], rng.random(n), side="right")
    return pa.array(KINDS, pa.string()).take(pa.array(codes))
