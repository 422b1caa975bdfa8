"""Where the invented city's hotspots, homes and commutes are.

A place is a complex number: metres east of the centre plus 1j times metres north of it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Integers", "Layout", "Places", "degrees", "lay_out"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.complex128]

HOTSPOTS = 48
ZIPF = 1.1
CENTRE_LON, CENTRE_LAT = 8.2, 54.1
METRES_PER_DEGREE = 111_320.0
GOLDEN_ANGLE = 2.39996


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
