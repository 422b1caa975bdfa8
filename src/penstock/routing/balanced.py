"""Evens the load of all keys, not only of tracked ones.

When the number of channels changes, it moves no more state than a plain ring would. When it stays, it moves
what the violation of a tolerance requires, or nothing.

It goes beyond the three algorithms of [003] §4.2, which see tracked keys only. Here a key that the counter
holds but the table does not still counts for its cell of the ring, and cells go to channels that lack load.
The table has the same keys as theirs, and the ring the same number of cells.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.adaptation import utility
from penstock.routing.balance import exceeded, loads, spread_penalty
from penstock.routing.cell_ring import CellRing, cells_of, handed_over
from penstock.routing.feeding import fair_level, feed, part
from penstock.routing.filling import Filling, fill, water_level
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.redistribute import redistribute
from penstock.routing.resources import Growth, Resources
from penstock.routing.ring import Ring
from penstock.routing.threshold import Goal, counter_threshold, table_threshold

__all__ = ["balanced"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Frequencies have errors, so a budget that is met on paper may be missed in fact.
_CAUTION = 0.015
_STAY = 0.05
# Keys down to this part of the table's threshold count for their cells; rarer ones make no difference.
_LIGHT = 0.1
# A placement that leaves less freedom to later changes must be better by this, in log of b, times 3.
_MARGIN = 0.06
# What a change at a constant number of channels must gain after migration, on average over the resources:
# a part of the tolerated spread of load, and of the spread that there is. Errors of counted frequencies
# feign smaller gains.
_GAIN, _RELATIVE_GAIN = 0.1, 0.05
# What a resource above its tolerance weighs more than one within it.
_HELD = 10.0
# Keys of which nothing is known any more stay in the table, up to this number, if they would have to move.
_MOST_STALE = 1024


def balanced(
    before: HashPair,
    known: Frequencies,
    channels: int,
    goal: Goal,
    base: Mapping[Growth, Floats] | None = None,
) -> HashPair:
    """The successor of `before` on `channels` channels; `known` may hold keys far rarer than the table's.

    `base` is what each channel has besides and cannot give away, such as its part of keys on grids, in the
    unit of the costs of these frequencies.

    If the number of channels stays, it is `before` itself while each resource is within its own tolerance,
    and as long as no plan gains more than its migration costs.

    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64) << np.uint64(60), np.array([0.3, 0.2, 0.1, 0.1]))
    >>> two = balanced(one, known, 2, Goal(domain=1000))
    >>> two.targets.tolist(), (np.bincount(two.ring.cells) / 16_384).round(1).tolist()
    ([1, 0, 0, 0], [0.5, 0.5])
    """
    if channels < 1:
        raise BadRouting(f"channels is {channels}; give 1 or more")
    stock = _stock(before, known, channels, goal, base or {})
    if channels == before.channels:
        return _evened(before, stock, goal)
    budget = _budget(before, stock, channels)
    best: tuple[Ints, Filling] | None = None
    for places in _placements(stock, before, channels, goal, budget):
        filling = stock.fill(places, channels, goal.resources, budget=budget, held=0.0)
        if filling.above:
            # The product over resources decides, as b does, unless each of them can be within tolerance.
            within = stock.fill(places, channels, goal.resources, budget=budget, held=_HELD)
            filling = filling if within.above else within
        if best is None or (filling.imbalance < best[1].imbalance - _MARGIN):
            best = places, filling
    assert best is not None
    return _pair(before, stock, channels, *best)


@dataclass(frozen=True)
class _Stock:
    """What there is to place: units (table keys, then heavy cells) and plain cells, with their homes.

    A cell is heavy if it holds a known key. `plain` is what all plain cells together cost.
    """

    tracked: Frequencies
    heavy: Ints
    homes: Ints
    costs: dict[Growth, Floats]
    plain: dict[Growth, float]
    shares: Floats
    state: Growth
    base: dict[Growth, Floats]

    @property
    def total(self) -> float:
        """All state."""
        return float(self.costs[self.state].sum()) + self.plain[self.state]

    def loads(self, places: Ints, shares: Floats, channels: int) -> dict[Growth, Floats]:
        """The load of every channel under each growth, with units in these places and these plain shares."""
        return {
            growth: self.fixed(places, growth, channels) + shares * self.plain[growth] for growth in Growth
        }

    def fixed(self, places: Ints, growth: Growth, channels: int) -> Floats:
        """The load of every channel without plain cells."""
        return self.base[growth] + loads(places, self.costs[growth], channels)

    def moved(self, places: Ints, filling: Filling) -> float:
        """The state that changes its channel."""
        units = float(self.costs[self.state][places != self.homes].sum())
        return units + filling.moved * self.plain[self.state]

    def fill(
        self, places: Ints, channels: int, resources: Resources, *, budget: float, held: float
    ) -> Filling:
        """The most even use of plain cells with units in these places, within the rest of the budget."""
        moved = float(self.costs[self.state][places != self.homes].sum())
        fixed = {growth: self.fixed(places, growth, channels) for growth in Growth}
        plain = max(self.plain[self.state], 1e-300)
        tolerances = tuple(zip(resources.growths, resources.tolerances, strict=True))
        rest = (budget - moved) / plain
        filling = fill(fixed, self.plain, tolerances, self.shares, budget=rest, held=held)
        over = moved + filling.moved * plain > budget + 1e-9 * self.total
        # A placement over budget only counts if there is none within.
        return replace(filling, imbalance=filling.imbalance + (1e6 if over else 0.0))


def _evened(before: HashPair, stock: _Stock, goal: Goal) -> HashPair:
    """The successor on as many channels: the same, unless a resource exceeds its tolerance and moves pay.

    The budget follows the violation: first twice the share of the load that lies above the mean, since a swap
    moves both ways, then four times as much while a resource still exceeds its tolerance.
    """
    channels = before.channels
    now = stock.loads(stock.homes, stock.shares, channels)
    if not exceeded(goal.resources, now):
        return before
    value = utility(goal.utility)
    least = (1 - _RELATIVE_GAIN) * float(value(spread_penalty(goal.resources, now), 0.0)) - _GAIN
    best, cured = before, False
    budget = 2 * _excess(goal.resources, now)
    while not cured:
        allowed = min(budget, 1.0) * stock.total
        for places in _parted(stock, before, goal, allowed):
            filling = stock.fill(places, channels, goal.resources, budget=allowed, held=_HELD)
            moved = stock.moved(places, filling)
            then = stock.loads(places, filling.shares, channels)
            worth = float(value(spread_penalty(goal.resources, then), moved * channels / stock.total))
            if worth < least and moved <= allowed * (1 + 1e-9):
                least, best = worth, _pair(before, stock, channels, places, filling)
                cured = not exceeded(goal.resources, then)
        if budget >= 1:
            break
        budget *= 4
    return best


def _parted(stock: _Stock, before: HashPair, goal: Goal, budget: float) -> Iterator[Ints]:
    """Ways to place the units on as many channels; in the last ones hot keys part and the rest stays."""
    channels, size, homes = before.channels, len(stock.tracked), stock.homes
    yield from _placements(stock, before, channels, goal, budget)
    for growth in dict.fromkeys(each for each in goal.resources.growths if each is not Growth.CONSTANT):
        costs = stock.costs[growth]
        yield part(costs, homes, channels, stock.base[growth])
        table = part(costs[:size], homes[:size], channels, stock.base[growth])
        yield np.concatenate([table, homes[size:]])
        yield _with_cells(stock, table, homes[size:], channels)


def _excess(resources: Resources, load: dict[Growth, Floats]) -> float:
    """The greatest share of a resource's load that lies above the mean, of resources beyond tolerance."""
    return max(
        float(np.maximum(load[growth] - load[growth].mean(), 0).sum() / load[growth].sum())
        for growth in exceeded(resources, load)
    )


def _stock(
    before: HashPair, known: Frequencies, channels: int, goal: Goal, base: Mapping[Growth, Floats]
) -> _Stock:
    cells = before.ring.cells
    counted = known.at_least(counter_threshold(goal, channels))
    threshold = table_threshold(goal, channels, counted.shares)
    named = known.shares >= threshold
    if channels == before.channels:
        # Here a key never moves because it became rarer: it stays in the table.
        named |= np.isin(known.hashes, before.keys)
    tracked = Frequencies(known.hashes[named], known.shares[named])
    rarer = ~named & (known.shares >= threshold * _LIGHT)
    light = Frequencies(known.hashes[rarer], known.shares[rarer])
    rest = max(goal.domain - len(tracked) - len(light), 1)
    mass = max(1.0 - float(tracked.shares.sum() + light.shares.sum()), 1e-12)
    # Assume that unknown keys are equal: right for their number and volume, too low for their squares.
    each = {
        Growth.CONSTANT: rest / len(cells),
        Growth.LINEAR: mass / len(cells),
        Growth.QUADRATIC: mass**2 / rest / len(cells),
    }
    heavy, at = np.unique(cells_of(light.hashes, len(cells)), return_inverse=True)
    costs = {
        growth: np.concatenate(
            [
                growth.costs(tracked.shares),
                each[growth] + np.bincount(at, growth.costs(light.shares), len(heavy)),
            ]
        )
        for growth in Growth
    }
    plain = np.delete(cells, heavy)
    return _Stock(
        tracked=tracked,
        heavy=heavy,
        homes=np.concatenate([before.route(tracked.hashes), cells[heavy]]).astype(np.intp),
        costs=costs,
        plain={growth: cost * max(len(plain), 1) for growth, cost in each.items()},
        shares=np.bincount(plain[plain < channels], minlength=channels) / max(len(plain), 1),
        state=goal.resources.state,
        base={growth: base.get(growth, np.zeros(channels)) for growth in Growth},
    )


def _budget(before: HashPair, stock: _Stock, channels: int) -> float:
    """The state that may move: on growth what the plain ring of the paper moves, and no more than ideal."""
    fair = stock.total / channels
    new = channels - before.channels
    if new <= 0:
        lost = float(stock.costs[stock.state][stock.homes >= channels].sum())
        lost += (1 - float(stock.shares.sum())) * stock.plain[stock.state]
        return lost + 0.1 * fair
    ring = Ring(channels, replicas=before.ring.replicas, buckets=before.ring.buckets, seed=before.ring.seed)
    taken = float((ring.cells >= before.channels).mean())
    # With redist tracked keys may stay while the ring moves its share of the others: allow a little less.
    # With few channels the load of the new one alone decides the balance, so caution has a price.
    stay = min(float(stock.tracked.shares.sum()), _STAY) * (1 - 2 / channels)
    return (1 - _CAUTION * (1 - 1 / channels) - stay) * min(taken * stock.total, new * fair)


def _placements(stock: _Stock, before: HashPair, channels: int, goal: Goal, budget: float) -> Iterator[Ints]:
    """Some ways to place the units, the one that leaves most freedom to later changes first."""
    size, homes, linear = len(stock.tracked), stock.homes, stock.costs[Growth.LINEAR]
    new = channels - before.channels
    short = 1 / channels - budget / new if new > 0 and stock.state is Growth.LINEAR else 0.0
    if Growth.QUADRATIC in goal.resources.growths:
        yield from _by_squares(stock, before, channels, goal)
    else:
        # A new channel takes fewer keys by what the budget denies it, so that it gets cells like the others.
        level = fair_level(linear, channels)
        yield feed(linear, homes, channels, level=level, cap=level - short)
    if stock.state is Growth.CONSTANT:
        # All keys cost the same to move: place the whole table again, the heaviest first.
        table = feed(linear[:size], homes[:size] + channels, channels, level=np.inf)
        yield _with_cells(stock, table, homes[size:], channels)
    # Old channels give to new ones only, and what is uneven among the old ones stays.
    closed = np.where(np.arange(channels) < before.channels, np.inf, 0.0)
    yield feed(linear, homes, channels, base=closed, level=fair_level(linear, channels))
    yield feed(linear, homes, channels, level=np.inf)


def _by_squares(stock: _Stock, before: HashPair, channels: int, goal: Goal) -> Iterator[Ints]:
    """Placements for a quadratic resource: all units even the squares, unless one key rules that out."""
    size, homes, squares = len(stock.tracked), stock.homes, stock.costs[Growth.QUADRATIC]
    even = feed(squares, homes, channels, level=fair_level(squares, channels))
    if squares.max(initial=0.0) > squares.sum() / channels:
        # Squares cannot be even, and volume would pile up where they are low: let cells even the volume.
        yield _with_cells(stock, even[:size], even[size:], channels)
        yield _with_cells(stock, even[:size], homes[size:], channels)
        return
    mixed = redistribute(before, stock.tracked, channels, goal).targets.astype(np.intp)
    yield even
    yield np.concatenate([mixed, even[size:]])
    yield _with_cells(stock, even[:size], homes[size:], channels)
    yield _with_cells(stock, mixed, homes[size:], channels)


def _with_cells(stock: _Stock, table: Ints, cells: Ints, channels: int) -> Ints:
    """This placement of the table, with heavy cells fed from these places to even the volume of both."""
    size, linear = len(table), stock.costs[Growth.LINEAR]
    under = loads(table, linear[:size], channels)
    level = water_level(under, float(linear[size:].sum()))
    return np.concatenate([table, feed(linear[size:], cells, channels, base=under, level=level)])


def _pair(before: HashPair, stock: _Stock, channels: int, places: Ints, filling: Filling) -> HashPair:
    cells = before.ring.cells.astype(np.int32)
    size = len(stock.tracked)
    cells[stock.heavy] = places[size:]
    plain = np.delete(np.arange(len(cells)), stock.heavy)
    cells[plain] = handed_over(cells[plain], filling.shares)
    ring = CellRing.over(before.ring, cells, channels)
    keys, targets = stock.tracked.hashes, places[:size].astype(np.int32)
    if channels == before.channels:
        stale = np.flatnonzero(~np.isin(before.keys, keys) & (before.targets != ring.route(before.keys)))
        stale = stale[:_MOST_STALE]
        keys, targets = np.append(keys, before.keys[stale]), np.append(targets, before.targets[stale])
    return HashPair(keys, targets, ring)
