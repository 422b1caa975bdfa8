"""Penstock's own strategy: forecasts over many periods, and a price for each move.

Everything is counted in gate-periods: what one gate can do in one period. *Strain* is the work above a gate's
capacity that forecasts foresee, over all of their leads. The strategy differs from DRF-M in six ways:

- A gate is relieved when its queue is *going to* pass the latency bound, and not when its load once exceeds
  its capacity. A queue that shrinks needs no relief.
- Of the streams that could leave and the gates that could take them, the pair counts after which the strain
  of both gates is least. So streams whose peaks fall apart come to share a gate, and the largest streams
  leave gates whose load goes on rising.
- What fits is counted over many periods, so that a stream is not sent to where it cannot stay. Where it fits
  nowhere though the total fits, two streams change places rather than a gate is started.
- Gates settle: a stream moves, or two change places, before anything is overloaded, if that takes away more
  strain than the moves cost. Only strain beyond the standard error of the gate's forecast counts there, and
  the further ahead it is the less: there is time for it, and what lies behind it is not seen yet.
- Streams that declare nothing leave room for the errors of their forecasts.
- A gate is emptied if its streams fit elsewhere for long enough that the periods saved are worth the moves.

Every stream has one gate afterwards. Gates whose queue is going to pass the bound, and those that are
emptied, get no stream in the same period, except in exchange for one that leaves. It costs
O(streams · leads), and for each stream that leaves a bounded number of pairs: of many gates a part is tried,
another one each time.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from penstock.control.admission.cluster import (
    NOWHERE,
    Bools,
    Cluster,
    Floats,
    Ints,
    Outlook,
    Placement,
    loads,
)
from penstock.control.admission.members import Members, strain_of, summed
from penstock.control.proposal import Effect
from penstock.errors import BadAdmission

__all__ = ["ForecastIntervals"]

# Of a gate so many streams are tried, in so many other gates; so many gates are tried to be emptied.
_TRIED, _TARGETS, _EMPTIED = 16, 64, 4
# Gates that settle in a period, and one of so many more; each tries the gates that have most room for it.
_SETTLING, _ONE_IN, _ROOMS = 8, 64, 12
# Gates settle while the total is foreseen to lie between this part of what they can do and all of it.
_STEADY = 0.8
# Above its capacity by less than this a gate counts as relieved at once.
_SOON = 0.005
# The periods for which a stream must fit if it fits nowhere for longer.
_NEAR = 2
# How a gate takes a stream: for long, for now, or it has to be started although the total would fit.
_LONG, _NOW, _STARTED = 0, 1, 2


@dataclass(frozen=True)
class ForecastIntervals:
    """The strategy "penstock".

    `period` is the seconds of a period. A gate is relieved if rows will wait longer than `bound` seconds
    within `alarm` periods. A stream fits for `reach` periods if rows then wait no longer than `lag` seconds,
    and the mean load is within the part `fill` of the capacity. If the total will exceed that within `ahead`
    periods, a gate is started rather than the others filled to the brim. Once it is known how long a gate
    takes to start, `alarm` and `ahead` reach at least as far. A redirection costs as much as a gate for
    `price` periods; to settle it must take away the part `worth` of that in strain, counted beyond `doubt`
    standard errors. As much room is left in a gate for streams that declare nothing.
    """

    period: float = 10.0
    bound: float = 4.8
    alarm: int = 2
    lag: float = 2.5
    fill: float = 0.99
    reach: int = 16
    ahead: int = 4
    price: float = 2.5
    worth: float = 0.2
    doubt: float = 0.5

    def __post_init__(self) -> None:
        if min(self.period, self.bound, self.fill) <= 0 or min(self.alarm, self.reach) < 1:
            raise BadAdmission(
                f"{self}; give times and a part above 0, and at least 1 period of alarm and reach"
            )
        if min(self.lag, self.ahead, self.price, self.worth, self.doubt) < 0:
            raise BadAdmission(f"{self}; give lag, ahead, price, worth and doubt from 0")

    @property
    def name(self) -> str:
        """The name by which it is chosen."""
        return "penstock"

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """Where every stream is to be."""
        making = _Making(self, cluster, outlook, most)
        making.relieve()
        making.admit()
        making.settle()
        making.empty()
        drained = np.array(making.drained, np.int64)
        path = outlook.path[:, 0]
        return Placement(making.home, making.gates, path, making.why, drained, making.weighed())

    def charged(self, outlook: Outlook) -> Floats:
        """The mean over the reach."""
        reached = outlook.leads <= max(self.reach, int(outlook.leads[0]))
        widths = np.diff(outlook.leads[reached], prepend=0).astype(np.float64)
        mean: Floats = outlook.path[:, reached] @ (widths / widths.sum())
        return mean


class _Making:
    """A placement in the making: the load of every gate at every lead, and the variance of its forecast."""

    def __init__(self, rules: ForecastIntervals, cluster: Cluster, outlook: Outlook, most: int) -> None:
        self.rules, self.cluster, self.most = rules, cluster, most
        self.path, self.leads = outlook.path, outlook.leads
        self.widths = np.diff(self.leads, prepend=0).astype(np.float64)
        # What comes in at the far end is cut off there: it counts little, and more as it comes near.
        middle = self.leads - (self.widths - 1) / 2
        self.tapered = self.widths * (1 - middle / (self.leads[-1] + 1))
        self.reached, self.soon, self.coming, self.near = (
            max(1, int(np.searchsorted(self.leads, each, side="right")))
            for each in (rules.reach, *_horizon(rules, cluster.starting), _NEAR)
        )
        self.gained, self.price = 0.0, 0.0
        self.total = self.path.sum(axis=0)
        self.home = cluster.home.copy()
        self.gates = len(cluster.capacity)
        self.capacity, self.open = cluster.capacity.copy(), cluster.open.copy()
        self.queue = cluster.waiting * cluster.capacity
        self.load = summed(self.home, self.path, self.gates)
        self.doubt = rules.doubt * np.sqrt(loads(self.home, outlook.spread**2, self.gates))
        # What a stream declares beats the errors of its forecasts; of others they are all that is known.
        self.error = np.where(np.isnan(outlook.declared), outlook.spread, 0.0) ** 2
        self.noise = loads(self.home, self.error, self.gates)
        self.barred = np.zeros(self.gates, np.bool_)
        self.members = Members(self.home, self.gates)
        self.why: dict[int, str] = {}
        self.drained: list[int] = []
        self.turn = 0

    def relieve(self) -> None:
        """Streams leave the gates whose queue is going to pass the bound, the worst gate first."""
        worst = self._waits(slice(None))
        self.barred = worst > self.rules.bound
        late = np.flatnonzero(self.barred)
        for gate in late[np.argsort(-worst[late], kind="stable")].tolist():
            while self.most > 0 and self._waits(slice(gate, gate + 1))[0] > self.rules.bound:
                if not self._relieve(gate):
                    break

    def admit(self) -> None:
        """New streams, those with the highest peak first; none goes where it cannot stay."""
        new = np.flatnonzero(self.home == NOWHERE)
        peak = self.path[new].max(axis=1) if len(new) else np.empty(0)
        for stream in new[np.lexsort((new, -peak))].tolist():
            hows, _, targets = self._offers(np.array([stream]), self._pool(NOWHERE))
            self._move(stream, int(targets[0]) if hows[0] == _LONG else NOWHERE)

    def settle(self) -> None:
        """Streams change gates where that takes away more strain than it costs.

        Where the total will not stay near what the gates can do, some will come or go, and nothing lasts.
        """
        gates, most = np.flatnonzero(self.open & ~self.barred), self.capacity[self.open].sum()
        steady = bool(((self.total > _STEADY * most) & (self.total <= most)).all())
        if len(gates) < 2 or self.gates > len(self.cluster.capacity) or not steady:
            return
        firm = self.capacity + self.doubt
        strain = strain_of(self.load[gates], firm[gates], self.tapered)
        least = self.rules.price * self.rules.worth
        count = _SETTLING + len(gates) // _ONE_IN
        order = np.argsort(-strain, kind="stable")[:count]
        for gate in gates[order[strain[order] > least]].tolist():
            if self.most < 2:
                return
            over = np.maximum(self.load[gate] - firm[gate], 0.0) * self.tapered
            gain, stream, target, back = self._exchange(gate, firm, over, least)
            if gain > 0:
                moves = 1 if back == NOWHERE else 2
                self.gained += gain + least * moves
                self.price += least * moves
                self._swap(stream, target, back, "settled")

    def empty(self) -> None:
        """Gates whose streams fit elsewhere for long enough to be worth the moves, those of fewest first.

        None is emptied in a period in which one is started.
        """
        gates = len(self.cluster.capacity)
        if self.gates > gates:
            return
        for _ in range(_EMPTIED):
            held = np.bincount(self.home, minlength=gates)
            fixed = np.bincount(self.home[~self.cluster.movable], minlength=gates)
            worth = held * self.rules.price <= self._saved()
            can = self.open & ~self.barred & (fixed == 0) & worth & (held <= self.most)
            if np.count_nonzero(self.open) < 2:
                return
            order, saved = np.lexsort((self.load.max(axis=1), held)), self._saved()
            for gate in order[can[order]][:_EMPTIED].tolist():
                if self._empty(gate):
                    self.gained += float(saved[gate])
                    self.price += float(held[gate]) * self.rules.price
                    break
            else:
                return

    def weighed(self) -> Effect:
        """What settling and emptying bring, in gates."""
        periods = int(self.leads[-1])
        return Effect(seconds=self.gained / periods, price=self.price, foreseen=periods)

    def _saved(self) -> Ints:
        """For how many periods the total load would fit without each of the gates, as far as is foreseen."""
        room = self._room(self.capacity, self.noise)
        rest = room[self.open].sum() - room
        beyond = self.total[None, :] > rest[:, None]
        leads = np.append(0, self.leads)
        saved: Ints = leads[np.where(beyond.any(axis=1), beyond.argmax(axis=1), len(self.leads))]
        return saved

    def _waits(self, gates: slice) -> Floats:
        """How long rows will wait while the queue grows, within the alarm, or when gates could be there.

        A gate whose queue will have shrunk by then needs no relief, however long it is.
        """
        capacity, left, load = self.capacity[gates], self.queue[gates], self.load[gates]
        worst = np.zeros(len(left))
        for place in range(max(self.soon, self.coming)):
            change = (load[:, place] - capacity) * (self.rules.period * self.widths[place])
            grown = np.maximum(0.0, left + change)
            if place < self.soon:
                worst = np.where(grown > left, np.maximum(worst, grown / capacity), worst)
            left = grown
        return np.maximum(worst, left / capacity)

    def _relieve(self, gate: int) -> bool:
        """One stream leaves, if there is one that may and another one stays."""
        streams = self.members.of(gate)
        if len(streams) < 2:
            return False
        streams = streams[self.cluster.movable[streams] & (self.path[streams, 0] > 0)]
        if not len(streams):
            return False
        capacity = self.capacity[gate]
        rest = self.load[gate] - self.path[streams]
        above = rest[:, : self.soon].max(axis=1) / capacity - 1
        unsolved = np.where(above > _SOON, above, 0.0)
        strain = strain_of(rest, capacity, self.widths)
        # Those that solve it come first, then those that leave the least strain behind.
        rank = np.lexsort((streams, strain, unsolved))[:_TRIED]
        streams, strain, unsolved = streams[rank], strain[rank], unsolved[rank]
        hows, added, targets = self._offers(streams, self._pool(gate))
        best = np.lexsort((streams, added + strain, unsolved, (unsolved > 0) + hows))[0]
        self.why[gate] = "overloaded"
        if hows[best] == _STARTED and self.most > 1 and self.gates == len(self.cluster.capacity):
            over = np.where(np.arange(len(self.leads)) < self.soon, self.widths, 0.0)
            _, stream, target, back = self._exchange(gate, self.capacity, over, None)
            if stream != NOWHERE:
                self._swap(stream, target, back, "overloaded")
                return True
        self._move(int(streams[best]), int(targets[best]))
        return True

    def _pool(self, source: int) -> Ints:
        """Gates that may take a stream; of many, those with most room now and another part each time."""
        allowed = self.open & ~self.barred
        if source != NOWHERE:
            allowed[source] = False
        found = np.flatnonzero(allowed)
        if len(found) > _TARGETS:
            half = _TARGETS // 2
            self.turn += half
            room = (self.capacity - self.load[:, 0])[found]
            roomy = np.argpartition(-room, half)[:half]
            found = found[np.unique(np.append(roomy, (self.turn + np.arange(half)) % len(found)))]
        return found

    def _offers(self, streams: Ints, gates: Ints) -> tuple[Ints, Floats, Ints]:
        """For each stream how the best gate takes it, the strain that this adds, and the gate."""
        size = len(streams)
        room = self._room(self.capacity[self.open], self.noise[self.open])
        scarce = self.total[: self.coming].max() > room.sum()
        hows = np.full(size, _NOW if scarce else _STARTED)
        added = strain_of(self.path[streams], self.cluster.new_capacity, self.widths)
        targets = np.full(size, NOWHERE)
        if not len(gates):
            return hows, added, targets
        load = self.load[gates][None] + self.path[streams][:, None]
        capacity, each = self.capacity[gates], np.arange(size)
        noise = self.noise[gates][None] + self.error[streams][:, None]
        for_long, for_now, free = self._fits(load, gates, noise)
        more = strain_of(load, capacity, self.widths) - strain_of(self.load[gates], capacity, self.widths)
        # Among gates without strain, the fullest for long, so that space stays whole; the emptiest for now.
        for how, fitting, prefer in ((_NOW, for_now, -1e-3), (_LONG, for_long, 1e-6)):
            if how == _NOW and scarce:
                continue
            best = np.where(fitting, more + prefer * free, np.inf).argmin(axis=1)
            found = fitting[each, best]
            hows = np.where(found, how, hows)
            added = np.where(found, more[each, best], added)
            targets = np.where(found, gates[best], targets)
        return hows, added, targets

    def _room(self, capacity: Floats, noise: Floats) -> Floats:
        """The mean load that gates may have if the forecasts of their undeclared streams err with `noise`."""
        room: Floats = np.minimum(self.rules.fill * capacity, capacity - self.rules.doubt * np.sqrt(noise))
        return room

    def _fits(self, load: Floats, gates: Ints, noise: Floats) -> tuple[Bools, Bools, Floats]:
        """Which loads gates could take for the whole reach, which for now, and the least space left.

        Load above the capacity for a while only waits; it fits if it waits no longer than `lag`, and if
        the mean over the reach leaves room for `noise`, the variance of what nobody declared.
        """
        capacity, widths = self.capacity[gates], self.widths[: self.reached]
        load = load[..., : self.reached]
        waits = self._queues(load, gates)
        within = load @ (widths / widths.sum()) <= self._room(capacity, noise)
        near = waits[min(self.near, len(waits)) - 1]
        free: Floats = capacity - load.max(axis=-1)
        return (waits[-1] <= self.rules.lag) & within, near <= self.rules.lag, free

    def _queues(self, load: Floats, gates: Ints) -> list[Floats]:
        """How long rows wait at most up to each lead, with these loads."""
        capacity = self.capacity[gates]
        left, worst = self.queue[gates], np.zeros(load.shape[:-1])
        found = []
        for place in range(load.shape[-1]):
            change = (load[..., place] - capacity) * (self.rules.period * self.widths[place])
            left = np.maximum(0.0, left + change)
            worst = np.maximum(worst, left / capacity)
            found.append(worst)
        return found

    def _exchange(
        self, gate: int, level: Floats, over: Floats, least: float | None
    ) -> tuple[float, int, int, int]:
        """The exchange with another gate that takes away the most strain: gain, stream, gate, stream back.

        `over` says when the gate wants room. With `least`, the strain that each move has to take away, one
        stream may also move alone, and what is gained beyond it is above 0. Without, the gate is
        overloaded: it must be relieved at once, whatever the gain.
        """
        best = (-np.inf if least is None else 0.0, NOWHERE, NOWHERE, NOWHERE)
        pool = self._pool(gate)
        pool = pool[pool < len(self.cluster.capacity)]
        mine = self._tried(gate, over)
        room = (level[pool, None] - self.load[pool]) @ over
        weights = self.widths if least is None else self.tapered
        before = strain_of(self.load[gate], level[gate], weights)
        for target in pool[np.argsort(-room, kind="stable")[:_ROOMS]].tolist():
            theirs = self._tried(target, -over)
            came = np.concatenate([np.zeros((1, len(self.leads))), self.path[theirs]])
            goes = self.path[mine][:, None] - came[None]
            here, there = self.load[gate] - goes, self.load[target] + goes
            strain = strain_of(here, level[gate], weights) + strain_of(there, level[target], weights)
            gain = before + strain_of(self.load[target], level[target], weights) - strain
            fitting = self._calm(there, target)
            if least is None:
                fitting &= here[..., : self.soon].max(axis=-1) <= self.capacity[gate] * (1 + _SOON)
                fitting[:, 0] = False
            else:
                fitting &= self._calm(here, gate)
                gain -= least * np.append(1.0, np.full(len(theirs), 2.0))
            gain = np.where(fitting, gain, -np.inf)
            if gain.size and gain.max() > best[0]:
                at, other = divmod(int(gain.argmax()), gain.shape[1])
                back = NOWHERE if other == 0 else int(theirs[other - 1])
                best = (float(gain[at, other]), int(mine[at]), target, back)
        return best

    def _tried(self, gate: int, over: Floats) -> Ints:
        """The streams of a gate whose work falls most into these times, relative to their mean work."""
        streams = self.members.of(gate)
        streams = streams[self.cluster.movable[streams]]
        if len(streams) > _TRIED:
            falls = self.path[streams] @ (over if over.sum() > 0 else over - over.mean())
            streams = np.sort(streams[np.argsort(-falls, kind="stable")[:_TRIED]])
        return streams

    def _calm(self, load: Floats, gate: int) -> Bools:
        """Whether rows wait no longer than the lag in the near periods with these loads."""
        waits = self._queues(load[..., : self.near], np.array([gate]))
        return np.asarray(waits[-1] <= self.rules.lag, np.bool_)

    def _swap(self, stream: int, target: int, back: int, why: str) -> None:
        gate = int(self.home[stream])
        self._move(stream, target)
        self.why[gate] = why
        if back != NOWHERE:
            self._move(back, gate)
            self.why.setdefault(target, "settled")

    def _move(self, stream: int, target: int) -> None:
        if target == NOWHERE:
            target = self._start()
        source = int(self.home[stream])
        if source != NOWHERE:
            self.load[source] -= self.path[stream]
            # The difference of sums may fall below 0 by rounding, and has a root.
            self.noise[source] = max(self.noise[source] - self.error[stream], 0.0)
            self.most -= 1
        self.load[target] += self.path[stream]
        self.noise[target] += self.error[stream]
        self.home[stream] = target
        self.members.move(stream, source, target)

    def _start(self) -> int:
        self.capacity = np.append(self.capacity, self.cluster.new_capacity)
        self.open, self.barred = np.append(self.open, True), np.append(self.barred, False)
        self.queue, self.doubt, self.noise = (
            np.append(each, 0.0) for each in (self.queue, self.doubt, self.noise)
        )
        self.load = np.vstack([self.load, np.zeros((1, len(self.leads)))])
        self.gates += 1
        return self.gates - 1

    def _empty(self, gate: int) -> bool:
        """All streams of a gate move, or none does."""
        streams = self.members.of(gate)
        self.open[gate] = False
        moved: list[int] = []
        for stream in streams[np.lexsort((streams, -self.path[streams].max(axis=1)))].tolist():
            hows, _, targets = self._offers(np.array([stream]), self._pool(gate))
            if hows[0] != _LONG:
                for each in moved:
                    self._move(each, gate)
                self.most += 2 * len(moved)
                self.open[gate] = True
                return False
            self._move(stream, int(targets[0]))
            moved.append(stream)
        self.drained.append(gate)
        if moved:
            self.why[gate] = "emptied"
        return True


def _horizon(rules: ForecastIntervals, starting: float | None) -> tuple[int, int]:
    """The periods in which a queue alarms, and a lack of gates: at least as long as one takes to start."""
    if starting is None:
        return rules.alarm, rules.ahead
    least = ceil(starting) + 1
    return max(rules.alarm, least), max(2, least)
