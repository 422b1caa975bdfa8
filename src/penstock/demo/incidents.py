"""Accidents that hold up one road of the city for some minutes and draw a burst of slow reports."""

from dataclasses import dataclass

import numpy as np

from penstock.demo.driving import normal_places
from penstock.demo.layout import Floats, Integers, Layout, Places

__all__ = ["Incident", "crowd", "incidents", "slow_down"]

BLOCK = 30
SHORTEST, LONGEST = 10, 25
STREAM = 2


@dataclass(frozen=True)
class Incident:
    """One accident: from which minute, until before which minute, where, and how far it reaches."""

    start: int
    end: int
    place: complex
    radius: float


def incidents(seed: int, layout: Layout, minute: int) -> list[Incident]:
    """The incidents under way in a minute.

    They are drawn per block of 30 minutes. The longest is shorter than a block, so this block and the
    one before it hold every incident that can still be under way.
    """
    first = max(minute // BLOCK - 1, 0)
    drawn = (each for block in range(first, minute // BLOCK + 1) for each in _block(seed, layout, block))
    return [each for each in drawn if each.start <= minute < each.end]


def crowd(rng: np.random.Generator, under_way: list[Incident], place: Places, rows: Integers) -> None:
    """Move the rows, in place and shared out evenly, to the incidents: the people stuck there report."""
    for turn, each in enumerate(under_way):
        mine = rows[turn :: len(under_way)]
        place[mine] = each.place + 0.4 * each.radius * normal_places(rng, len(mine))


def slow_down(rng: np.random.Generator, under_way: list[Incident], place: Places, speed: Floats) -> None:
    """Bring every vehicle within reach of an incident, in place, to a crawl of 2 to 12 km/h."""
    for each in under_way:
        stuck = np.abs(place - each.place) < each.radius
        speed[stuck] = rng.uniform(2.0, 12.0, int(stuck.sum()))


def _block(seed: int, layout: Layout, block: int) -> list[Incident]:
    rng = np.random.default_rng([seed, STREAM, block])
    return [_incident(rng, layout, block) for _ in range(1 + rng.poisson(2))]


def _incident(rng: np.random.Generator, layout: Layout, block: int) -> Incident:
    vehicle = int(rng.integers(len(layout.home)))
    home, work = layout.hotspot[layout.home[vehicle]], layout.hotspot[layout.work[vehicle]]
    start = block * BLOCK + int(rng.integers(BLOCK))
    return Incident(
        start=start,
        end=start + int(rng.integers(SHORTEST, LONGEST + 1)),
        place=complex(home + rng.uniform(0.35, 0.65) * (work - home)),
        radius=float(rng.uniform(300, 600)),
    )
