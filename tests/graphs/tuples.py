"""Random tuples of a stream and their arrival: out of order, late, in bursts, or not before the others."""

import decimal
import itertools
from dataclasses import dataclass
from random import Random

from graphs.graph import Column

SLOTS = 160
"""Event times lie on a grid of this many quarter units."""

VALUES = {
    "k": ("string", [None, "", "a", "a", "b", "Ünï"]),
    "n": ("bigint", [None, 0, 1, 1, 2, 2**40]),
    "i": ("int", [None, *range(-3, 10)]),
    "g": ("bigint", [None, -1000, -1, 0, 1, 2, 3, 1000]),
    "d": ("double", [None, -1.5, 0.0, 0.125, 0.5, 2.0, 3.25, 100.0]),
    "m": ("decimal(9,2)", [None, *map(decimal.Decimal, ("-3.25", "0.00", "0.50", "1.10", "99999.99"))]),
    "s": ("string", [None, "", "a", "ab", "b", "é"]),
}


@dataclass(frozen=True)
class Clock:
    """The scale of a case: a unit of at least four microseconds, and where time begins."""

    start: int
    unit: int
    distinct: bool


def clock(rng: Random) -> Clock:
    start = rng.choice([0, -(10**13) - 1, 1_700_000_000_000_000])
    return Clock(start, rng.choice([4, 4_000, 1_000_000, 60_000_000]), rng.random() < 0.6)


def slots(rng: Random, clock: Clock, counts: list[int]) -> list[list[int]]:
    """Event times of each stream in quarter units; no two alike in all streams if they are distinct."""
    total = sum(counts)
    drawn = (
        rng.sample(range(SLOTS), total) if clock.distinct else [rng.randrange(SLOTS) for _ in range(total)]
    )
    return [[drawn.pop() for _ in range(count)] for count in counts]


def rows(rng: Random, clock: Clock, time: str, columns: tuple[Column, ...], drawn: list[int]) -> list[dict]:
    """Tuples in the order of their arrival; now and then one has no time."""
    wander = rng.choice([0, 4, 16, 80])
    arriving = sorted(drawn, key=lambda slot: slot + rng.uniform(-wander, wander))
    made = []
    for slot in arriving:
        values = {each.name: rng.choice(VALUES[each.name][1]) for each in columns if each.name != time}
        missing = rng.random() < 0.02
        made.append({time: None if missing else clock.start + slot * (clock.unit // 4), **values})
    return made


def epochs(rng: Random, given: list[dict], count: int) -> list[list[dict]]:
    """Cut at random; a stream may begin late, end early, or pause."""
    first = rng.randrange(count) if rng.random() < 0.25 else 0
    cuts = sorted(rng.randint(0, len(given)) for _ in range(count - first - 1))
    edges = [0, *cuts, len(given)]
    cut = [given[a:b] for a, b in itertools.pairwise(edges)]
    return [[] for _ in range(first)] + cut
