"""A synthetic city whose vehicles report position and speed: with skew, rush hours, bursts and late reports.

Vehicles commute between hotspots, of which a few attract most of them. The night is quiet, and there are two
rush hours. Accidents hold up a road for some minutes and cause a burst of slow reports. A place is a complex
number: metres east of the centre plus 1j times metres north of it.
"""

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "DAWN",
    "DELAY_SECONDS",
    "METRES_PER_DEGREE",
    "SCHEMA",
    "City",
    "Incident",
    "Layout",
    "activity",
    "incidents",
    "rush",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.complex128]

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
KINDS, KIND_SHARES = ("traffic", "ping", "fuel"), (0.85, 0.12, 0.03)
# Independent random streams of one seed.
LAYOUT_STREAM, REPORT_STREAM, INCIDENT_STREAM = 0, 1, 2

HOTSPOTS = 48
ZIPF = 1.1
CENTRE_LON, CENTRE_LAT = 8.2, 54.1
METRES_PER_DEGREE = 111_320.0
GOLDEN_ANGLE = 2.39996
ROAD_WIDTH = 40.0

DAY = 24 * 60
MORNING, EVENING = 8 * 60, 17 * 60 + 30

# In minutes.
INCIDENT_BLOCK = 30
SHORTEST_INCIDENT, LONGEST_INCIDENT = 10, 25
# Extra reports from each incident, as a share of all others.
CROWD_SHARE = 0.02


@dataclass(frozen=True)
class Layout:
    """The fixed part of a city: hotspots, and for each vehicle a commute between two of them."""

    hotspot: Places
    spread: Floats
    home: Integers
    work: Integers
    period: Floats
    phase: Floats


def lay_out(rng: np.random.Generator, vehicles: int) -> Layout:
    """Draw a city whose k-th hotspot attracts vehicles in proportion to 1 / k**1.1."""
    rank = np.arange(1, HOTSPOTS + 1)
    share = rank**-ZIPF / (rank**-ZIPF).sum()
    # Popular hotspots lie near the centre, so that a few tiles carry most of the reports.
    distance = 1500.0 * np.sqrt(rank - 1.0) * rng.uniform(0.7, 1.3, HOTSPOTS)
    # The golden angle keeps neighbours in rank from lying next to each other.
    angle = rank * GOLDEN_ANGLE + rng.normal(0, 0.25, HOTSPOTS)
    home = rng.choice(HOTSPOTS, vehicles, p=share)
    elsewhere = (home + rng.integers(1, HOTSPOTS, vehicles)) % HOTSPOTS
    popular = rng.choice(HOTSPOTS, vehicles, p=share)
    return Layout(
        hotspot=distance * (np.cos(angle) + 0.8j * np.sin(angle)),
        spread=rng.uniform(180, 520, HOTSPOTS),
        home=home,
        work=np.where(rng.random(vehicles) < 0.6, popular, elsewhere),
        period=rng.uniform(50 * 60, 150 * 60, vehicles),
        phase=rng.random(vehicles),
    )


def degrees(place: Places) -> tuple[Floats, Floats]:
    """Longitude and latitude of places; flat-earth, fine for one city."""
    lat = CENTRE_LAT + place.imag / METRES_PER_DEGREE
    lon = CENTRE_LON + place.real / (METRES_PER_DEGREE * np.cos(np.radians(CENTRE_LAT)))
    return lon, lat


def rush(minute_of_day: float) -> float:
    """How deep in a rush hour this minute is, from 0 to 1."""
    return max(_bell(minute_of_day, MORNING, 50), _bell(minute_of_day, EVENING, 70))


def activity(minute_of_day: float) -> float:
    """Mean reports per vehicle in this minute; about 0.1 at night, 0.9 at the peak of a rush hour."""
    daylight = _bell(minute_of_day, 13 * 60, 300)
    return 0.1 + 0.35 * daylight + 0.55 * rush(minute_of_day)


def _bell(minute: float, peak: float, width: float) -> float:
    """A bell curve around the clock: 23:59 is one minute from 00:00."""
    distance = abs((minute - peak + DAY / 2) % DAY - DAY / 2)
    return math.exp(-0.5 * (distance / width) ** 2)


def positions(
    rng: np.random.Generator, layout: Layout, vehicle: Integers, seconds: Floats
) -> tuple[Places, Floats]:
    """The places of vehicles at given times, and how far they are on their way from home to work.

    A vehicle stays a while at either end and moves around the hotspot there (`along` is then 0 or 1).
    """
    home, work = layout.home[vehicle], layout.work[vehicle]
    turn = (seconds / layout.period[vehicle] + layout.phase[vehicle]) % 1.0
    along = np.clip(1.7 * np.abs(2.0 * turn - 1.0) - 0.35, 0.0, 1.0)
    stay = layout.spread[np.where(along < 0.5, home, work)]
    scatter = np.where(_staying(along), stay, ROAD_WIDTH)
    on_the_way = layout.hotspot[home] + along * (layout.hotspot[work] - layout.hotspot[home])
    return on_the_way + scatter * normal_places(rng, len(vehicle)), along


def speeds(rng: np.random.Generator, place: Places, along: Floats, rush_depth: float) -> Floats:
    """Speeds in km/h: higher on the road than around a hotspot, outside the centre, off the rush hours."""
    outward = 1.0 - np.exp(-np.abs(place) / 4000.0)
    free = np.where(_staying(along), 27.0 + 22.0 * outward, 36.0 + 60.0 * outward)
    speed = free * (1.0 - 0.3 * rush_depth) * (1.0 + 0.13 * rng.standard_normal(len(place)))
    return np.maximum(speed, 0.0)


def normal_places(rng: np.random.Generator, n: int) -> Places:
    """Places around the origin, with a standard deviation of one metre in each direction."""
    return rng.standard_normal(n) + 1j * rng.standard_normal(n)


def _staying(along: Floats) -> npt.NDArray[np.bool_]:
    staying: npt.NDArray[np.bool_] = (along == 0.0) | (along == 1.0)
    return staying


@dataclass(frozen=True)
class Incident:
    """One accident: its first minute, the minute after its last, its place, and how far it reaches."""

    start: int
    end: int
    place: complex
    radius: float


def incidents(seed: int, layout: Layout, minute: int) -> list[Incident]:
    """The incidents that are active in a minute.

    They are drawn per block of 30 minutes. The longest is shorter than a block, so this block and the
    one before it hold every incident that can still be active.
    """
    first = max(minute // INCIDENT_BLOCK - 1, 0)
    drawn = (
        each for block in range(first, minute // INCIDENT_BLOCK + 1) for each in _block(seed, layout, block)
    )
    return [each for each in drawn if each.start <= minute < each.end]


def crowd(rng: np.random.Generator, active: list[Incident], place: Places, rows: Integers) -> None:
    """Move rows, in place and in equal shares, to the incidents: vehicles stuck there report."""
    for turn, each in enumerate(active):
        mine = rows[turn :: len(active)]
        place[mine] = each.place + 0.4 * each.radius * normal_places(rng, len(mine))


def slow_down(rng: np.random.Generator, active: list[Incident], place: Places, speed: Floats) -> None:
    """Slow every vehicle within reach of an incident, in place, to 2 to 12 km/h."""
    for each in active:
        stuck = np.abs(place - each.place) < each.radius
        speed[stuck] = rng.uniform(2.0, 12.0, int(stuck.sum()))


def _block(seed: int, layout: Layout, block: int) -> list[Incident]:
    rng = np.random.default_rng([seed, INCIDENT_STREAM, block])
    return [_incident(rng, layout, block) for _ in range(1 + rng.poisson(2))]


def _incident(rng: np.random.Generator, layout: Layout, block: int) -> Incident:
    vehicle = int(rng.integers(len(layout.home)))
    home, work = layout.hotspot[layout.home[vehicle]], layout.hotspot[layout.work[vehicle]]
    start = block * INCIDENT_BLOCK + int(rng.integers(INCIDENT_BLOCK))
    return Incident(
        start=start,
        end=start + int(rng.integers(SHORTEST_INCIDENT, LONGEST_INCIDENT + 1)),
        place=complex(home + rng.uniform(0.35, 0.65) * (work - home)),
        radius=float(rng.uniform(300, 600)),
    )


@dataclass(frozen=True)
class City:
    """A city whose reports depend only on the seed, the number of vehicles, the start and the minute.

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
        """Check the arguments and draw what is the same in every minute."""
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

        The time of a report is its arrival minus its delay in the network: up to 5 seconds for nearly all
        reports, 2 to 10 minutes for the few late ones. About one report in 10,000 has lost its time.
        """
        if minute < 0:
            raise ValueError(f"Minute {minute} lies before the start of the city; give 0 or more.")
        rng = np.random.default_rng([self.seed, REPORT_STREAM, minute])
        active = incidents(self.seed, self._layout, minute)
        of_day = (self.start.hour * 60 + self.start.minute + minute) % (24 * 60)
        regular = rng.poisson(self.vehicles * activity(of_day))
        crowded = round(CROWD_SHARE * regular) * len(active)
        seconds = _sent(rng, minute, regular + crowded)
        n = len(seconds)
        vehicle = rng.integers(0, self.vehicles, n)
        place, along = positions(rng, self._layout, vehicle, seconds)
        speed = speeds(rng, place, along, rush(of_day))
        crowd(rng, active, place, rng.permutation(n)[:crowded])
        slow_down(rng, active, place, speed)
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
    """When the reports that arrive in a minute were sent, in seconds after the start; none is negative."""
    arrival = np.sort(rng.uniform(60.0 * minute, 60.0 * (minute + 1), n))
    sent = arrival - _network_delays(rng, n)
    return sent[sent >= 0.0]


def _network_delays(rng: np.random.Generator, n: int) -> Floats:
    """Seconds from the time of each report to its arrival."""
    delay = np.minimum(rng.exponential(0.8, n), DELAY_SECONDS)
    late = rng.random(n) < LATE_SHARE
    return np.where(late, rng.uniform(120.0, 600.0, n), delay)


def _kinds(rng: np.random.Generator, n: int) -> pa.Array:
    codes = np.searchsorted(np.cumsum(KIND_SHARES)[:-1], rng.random(n), side="right")
    return pa.array(KINDS, pa.string()).take(pa.array(codes))
