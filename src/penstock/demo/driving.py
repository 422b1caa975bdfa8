"""Where vehicles are and how fast they go at given times: to and fro between home and work."""

import numpy as np
import numpy.typing as npt

from penstock.demo.layout import Floats, Integers, Layout, Places

__all__ = ["normal_places", "positions", "speeds"]

ROAD_WIDTH = 40.0


def positions(
    rng: np.random.Generator, layout: Layout, vehicle: Integers, seconds: Floats
) -> tuple[Places, Floats]:
    """Places of the vehicles at those times, and how far along their way from home to work they are.

    A vehicle stays a while at either end, where it moves about the hotspot (along is then 0 or 1).
    """
    home, work = layout.home[vehicle], layout.work[vehicle]
    turn = (seconds / layout.period[vehicle] + layout.phase[vehicle]) % 1.0
    along = np.clip(1.7 * np.abs(2.0 * turn - 1.0) - 0.35, 0.0, 1.0)
    stay = layout.spread[np.where(along < 0.5, home, work)]
    scatter = np.where(_staying(along), stay, ROAD_WIDTH)
    on_the_way = layout.hotspot[home] + along * (layout.hotspot[work] - layout.hotspot[home])
    return on_the_way + scatter * normal_places(rng, len(vehicle)), along


def speeds(rng: np.random.Generator, place: Places, along: Floats, rush: float) -> Floats:
    """Speeds in km/h: faster on the road than about a hotspot, outside than in the centre, off the rush."""
    outward = 1.0 - np.exp(-np.abs(place) / 4000.0)
    free = np.where(_staying(along), 27.0 + 22.0 * outward, 36.0 + 60.0 * outward)
    speed = free * (1.0 - 0.3 * rush) * (1.0 + 0.13 * rng.standard_normal(len(place)))
    return np.maximum(speed, 0.0)


def normal_places(rng: np.random.Generator, n: int) -> Places:
    """Places about the origin, with a standard deviation of one metre either way."""
    return rng.standard_normal(n) + 1j * rng.standard_normal(n)


def _staying(along: Floats) -> npt.NDArray[np.bool_]:
    staying: npt.NDArray[np.bool_] = (along == 0.0) | (along == 1.0)
    return staying
