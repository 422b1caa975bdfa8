"""Penstock's own strategy: forecasts over many periods, and a price for each move.

Everything is counted in gate-periods: what one gate can do in one period. *Strain* is the work above a gate's
level that forecasts foresee, over all of their leads. The strategy differs from DRF-M in five ways:

- A gate is relieved when its queue is *going to* pass the latency bound, and not when its load once exceeds
  its capacity. A queue that shrinks needs no relief.
- Of the streams that could leave and the gates that could take them, the pair counts after which the strain
  of both gates is least. So streams whose peaks fall apart come to share a gate, and large streams leave
  a gate whose load will go on rising.
- What fits is counted over many periods, so that a stream is not sent to where it cannot stay.
- Gates settle: a stream moves, or two change places, before anything is overloaded, if that takes away more
  strain than the moves cost.
- A gate is emptied if its streams fit elsewhere for long enough that the periods saved are worth the moves.

Every stream has one gate afterwards. Gates whose queue is going to pass the bound, and those that are
emptied, get no stream in the same period. It costs O(streams · leads), and for each stream that leaves
a bounded number of pairs: with many gates, a part of them that changes from one to the next is tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.control.admission.cluster import NOWHERE, Bools, Cluster, Floats, Ints, Outlook, Placement
from penstock.errors import BadAdmission

__all__ = ["ForecastIntervals"]

# Of an overloaded gate so many streams are tried, in so many gates, and so many gates are tried to be emptied.
_TRIED, _TARGETS, _EMPTIED = 24, 256, 3
# Gates that settle in a period: those with the most strain, each with the gates that have most room for it.
_SETTLING, _ROOMS = 8, 16
# Above its capacity by less than this a gate counts as relieved at once.
_SOON = 0.005
# The periods for which a stream must fit if it fits nowhere for longer.
_NEAR = 2
# The longest lead at which forecasters score themselves.
_SCORED = 8


@dataclass(frozen=True)
class ForecastIntervals:
    """The strategy "penstock".

    `period` is the seconds of a period. A gate is relieved if rows will wait longer than `bound` seconds
    within `alarm` periods. A stream fits for `reach` periods if rows then wait no longer than `lag` seconds,
    and the mean load with `caution` standard errors is within the capacity. Strain is what exceeds the part
    `fill` of the capacity. A redirection costs as much as a gate for `price` periods, and to settle, a move
    must take away `worth` times as much.
    """

    period: float = 10.0
    bound: float = 4.8
    alarm: int = 2
    caution: float = 0.0
    lag: float = 1.5
    fill: float = 0.975
    reach: int = 16
    price: float = 3.1
    worth: float = 1.0
    level: float = 1.0
    ahead: int = 4
    doubt: float = 1.0
    swap: bool = True

    def __post_init__(self) -> None:
        if min(self.period, self.bound, self.fill) <= 0 or min(self.alarm, self.reach) < 1:
            raise BadAdmission(
                f"{self}; give times and a part above 0, and at least 1 period of alarm and reach"
            )
        if min(self.caution, self.price, self.worth) < 0:
            raise BadAdmission(
                f"caution={self.caution}, price={self.price}, worth={self.worth}; give numbers from 0"
            )

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
        making.weights = making.widths
        making.empty()
        drained = np.array(making.drained, np.int64)
        return Placement(making.home, making.gates, outlook.path[:, 0], making.why, drained)


class _Making:
    """A placement in the making: the load of every gate at every lead, and the variance of its sum."""

    def __init__(self, rules: ForecastIntervals, cluster: Cluster, outlook: Outlook, most: int) -> None:
        self.rules, self.cluster, self.most = rules, cluster, most
        self.leads, self.path, self.variance = outlook.leads, outlook.path, outlook.spread**2
        self.widths = np.diff(self.leads, prepend=0).astype(np.float64)
        self.reached = int(np.searchsorted(self.leads, max(rules.reach, int(self.leads[0])), side="right"))
        self.soon = int(np.searchsorted(self.leads, max(rules.alarm, int(self.leads[0])), side="right"))
        self.weights = self.widths
        self.total = self.path.sum(axis=0)
        self.home = cluster.home.copy()
        self.gates = len(cluster.capacity)
        self.capacity = cluster.capacity.copy()
        self.open = cluster.open.copy()
        self.queue = cluster.waiting * cluster.capacity
        self.mean, self.noise = (_summed(self.home, each, self.gates) for each in (self.path, self.variance))
        scored = min(int(np.searchsorted(self.leads, _SCORED, side="right")), len(self.leads)) - 1
        # An overload within the error of its forecast may never come.
        self.firm = self.capacity * rules.level + rules.doubt * np.sqrt(self.noise[:, scored])
        self.barred = np.zeros(self.gates, np.bool_)
        self.members = _Members(self.home, self.gates)
        self.why: dict[int, str] = {}
        self.drained: list[int] = []
        self.turn = 0

    def relieve(self) -> None:
        """Streams leave the gates whose queue is going to pass the bound, the worst gate first."""
        worst = self._waits(np.arange(self.gates))
        self.barred = worst > self.rules.bound
        late = np.flatnonzero(self.barred)
        for gate in late[np.argsort(-worst[late], kind="stable")].tolist():
            while self.most > 0 and self._waits(np.array([gate]))[0] > self.rules.bound:
                if not self._relieve(gate):
                    break

    def admit(self) -> None:
        """New streams, those with the highest peak first."""
        new = np.flatnonzero(self.home == NOWHERE)
        peak = self.path[new].max(axis=1) if len(new) else np.empty(0)
        for stream in new[np.lexsort((new, -peak))].tolist():
            *_, targets = self._offers(np.array([stream]), self._pool(NOWHERE))
            self._move(stream, int(targets[0]))

    def settle(self) -> None:
        """Streams change gates where that takes away more strain than it costs."""
        gates = np.flatnonzero(self.open & ~self.barred)
        if len(gates) < 2 or self.gates > len(self.cluster.capacity):
            return
        # Where the total exceeds all gates, more of them will be started: that is nothing to settle.
        self.weights = self.widths * (self.total <= self.capacity[self.open].sum())
        strain = self._strain(self.mean[gates], self.firm[gates])
        count = _SETTLING + len(gates) // 32
        for gate in gates[np.argsort(-strain, kind="stable")[:count]].tolist():
            if self.most < 2:
                return
            self._settle(gate)

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
            order = np.lexsort((self.mean.max(axis=1), held))
            if not any(self._empty(gate) for gate in order[can[order]][:_EMPTIED].tolist()):
                return

    def _saved(self) -> Ints:
        """For how many periods the total load would fit without each of the gates, as far as is foreseen."""
        rest = self.rules.fill * (self.capacity[self.open].sum() - self.capacity)
        beyond = self.total[None, :] > rest[:, None]
        leads = np.append(0, self.leads)
        saved: Ints = leads[np.where(beyond.any(axis=1), beyond.argmax(axis=1), len(self.leads))]
        return saved

    def _waits(self, gates: Ints) -> Floats:
        """How long rows will wait while the queue grows, within the alarm.

        A gate whose queue shrinks needs no relief, however long it is.
        """
        capacity, left = self.capacity[gates], self.queue[gates]
        risk = self.mean[gates, : self.soon]
        worst = np.zeros(len(left))
        for place in range(self.soon):
            grown = np.maximum(
                0.0, left + (risk[:, place] - capacity) * self.rules.period * self.widths[place]
            )
            worst = np.where(grown > left, np.maximum(worst, grown / capacity), worst)
            left = grown
        return worst

    def _strain(self, load: Floats, capacity: Floats | float) -> Floats:
        """Gate-periods above the level, over all leads; the last axis of `load` is the leads."""
        capacity = np.asarray(capacity)[..., None]
        strain: Floats = np.maximum(load / capacity - 1, 0.0) @ self.weights
        return strain

    def _relieve(self, gate: int) -> bool:
        """One stream leaves, if there is one that may and another one stays."""
        streams = self.members.of(gate)
        if len(streams) < 2:
            return False
        streams = streams[self.cluster.movable[streams] & (self.path[streams, 0] > 0)]
        if not len(streams):
            return False
        rest = self.mean[gate] - self.path[streams]
        now = np.maximum((rest[:, : self.soon] / self.capacity[gate] - 1).max(axis=1), 0)
        now = np.where(now > _SOON, now, 0.0)
        strain = self._strain(rest, self.capacity[gate])
        # Those that solve it come first, then those that leave the least strain behind.
        rank = np.lexsort((streams, strain, now))[:_TRIED]
        flaws, costs, targets = self._offers(streams[rank], self._pool(gate))
        unsolved = now[rank]
        best = np.lexsort((streams[rank], costs + strain[rank], unsolved, (unsolved > 0) + flaws))[0]
        if flaws[best] == 2 and self.rules.swap and self.most > 1 and self.gates == len(self.cluster.capacity):
            # Rather than start a gate that the total does not need, two streams change places.
            over = np.where(np.arange(len(self.leads)) < self.soon, self.widths, 0.0)
            _, stream, target, back = self._exchange(gate, streams[rank], over, 0.0, urgent=True)
            if stream != NOWHERE:
                self._swap(stream, target, back, "overloaded")
                return True
        self._move(int(streams[rank[best]]), int(targets[best]))
        self.why[gate] = "overloaded"
        return True

    def _pool(self, source: int) -> Ints:
        """Gates that may take a stream; of many, a part that changes from one call to the next."""
        allowed = self.open & ~self.barred
        if source != NOWHERE:
            allowed[source] = False
        found = np.flatnonzero(allowed)
        if len(found) > _TARGETS:
            self.turn += _TARGETS
            found = found[(self.turn + np.arange(_TARGETS)) % len(found)]
        return found

    def _offers(self, streams: Ints, gates: Ints) -> tuple[Ints, Floats, Ints]:
        """For each stream the best gate: its flaw, the strain that it adds, and the gate.

        A flaw of 0 is a gate that fits for long, 1 one that fits for now, 2 one that must be started.
        """
        size = len(streams)
        flaws, targets = np.full(size, self._scarce()), np.full(size, NOWHERE)
        costs = self._strain(self.path[streams], self.cluster.new_capacity)
        if not len(gates):
            return flaws, costs, targets
        load = self.mean[gates][None] + self.path[streams][:, None]
        ever, near, free = self._fits(load, gates, self.noise[gates][None] + self.variance[streams][:, None])
        added = self._strain(load, self.capacity[gates]) - self._strain(self.mean[gates], self.capacity[gates])
        # Of gates without strain the fullest, so that space stays together.
        added = added + 1e-6 * free
        for flaw, fitting in ((1, near), (0, ever)):
            cost = np.where(fitting, added if flaw == 0 else added - 1e-3 * free, np.inf)
            best = cost.argmin(axis=1)
            found = fitting[np.arange(size), best]
            if flaw == 1 and flaws[0] == 1:
                found = found & False
            flaws = np.where(found, flaw, flaws)
            costs = np.where(found, added[np.arange(size), best], costs)
            targets = np.where(found, gates[best], targets)
        return flaws, costs, targets

    def _scarce(self) -> int:
        most = self.total[: int(np.searchsorted(self.leads, self.rules.ahead, side="right"))].max(initial=0.0)
        return 1 if most > self.rules.fill * self.capacity[self.open].sum() else 2

    def _fits(self, load: Floats, gates: Ints, noise: Floats) -> tuple[Bools, Bools, Floats]:
        """Which loads gates could take for the whole reach, which for now, and the least space left.

        Load above the capacity for a while only waits; it fits if it waits no longer than `lag`, and if
        the mean over the reach is within the part `fill` of the capacity.
        """
        capacity = self.capacity[gates]
        left = np.broadcast_to(self.queue[gates], load.shape[:-1])
        worst = near = np.zeros(load.shape[:-1])
        for place in range(self.reached):
            change = (load[..., place] - capacity) * (self.rules.period * self.widths[place])
            left = np.maximum(0.0, left + change)
            worst = np.maximum(worst, left / capacity)
            if self.leads[place] <= _NEAR:
                near = worst
        widths = self.widths[: self.reached]
        risk = load[..., : self.reached] + self.rules.caution * np.sqrt(noise[..., : self.reached])
        within = risk @ (widths / widths.sum()) <= self.rules.fill * capacity
        free: Floats = capacity - load[..., : self.reached].max(axis=-1)
        return (worst <= self.rules.lag) & within, near <= self.rules.lag, free

    def _settle(self, gate: int) -> None:
        """One stream of a gate moves, or changes places with one of another, if that is worth it."""
        least = self.rules.price * self.rules.worth
        if self._strain(self.mean[gate], self.firm[gate]) <= least:
            return
        over = np.maximum(self.mean[gate] - self.firm[gate], 0.0) * self.weights
        gain, stream, target, back = self._exchange(gate, self._movable(gate), over, least)
        if gain > 0:
            self._swap(stream, target, back, "settled")

    def _swap(self, stream: int, target: int, back: int, why: str) -> None:
        gate = int(self.home[stream])
        self._move(stream, target)
        self.why[gate] = why
        if back != NOWHERE:
            self._move(back, gate)
            self.why.setdefault(target, "settled")

    def _exchange(
        self, gate: int, streams: Ints, over: Floats, least: float, *, urgent: bool = False
    ) -> tuple[float, int, int, int]:
        """The move or the exchange that takes away the most strain beyond `least` for each move.

        `over` says when the gate wants room. If it is urgent the gate must be relieved at once, by an exchange.
        """
        best = (0.0 if not urgent else -np.inf, NOWHERE, NOWHERE, NOWHERE)
        pool = self._pool(gate)
        if not len(pool) or not len(streams):
            return best
        before = self._strain(self.mean[gate], self.firm[gate])
        room = (self.firm[pool, None] - self.mean[pool]) @ over
        for target in pool[np.argsort(-room, kind="stable")[:_ROOMS]].tolist():
            others = self._movable(target)
            came = np.concatenate([np.zeros((1, self.path.shape[1])), self.path[others]])
            change = self.path[streams][:, None] - came[None]  # what goes to the target, of each pair
            here, there = self.mean[gate] - change, self.mean[target] + change
            strain = self._strain(here, self.firm[gate]) + self._strain(there, self.firm[target])
            gain = before + self._strain(self.mean[target], self.firm[target]) - strain
            gain[:, 0] -= least
            gain[:, 1:] -= 2 * least
            if urgent:
                fitting = here[..., : self.soon].max(axis=-1) <= self.capacity[gate] * (1 + _SOON)
                fitting[:, 0] = False
                fitting &= self._calm(there[:, :, None], np.array([target]))
            else:
                fitting = self._calm(np.stack([here, there], axis=2), np.array([gate, target]))
            gain = np.where(fitting, gain, -np.inf)
            at, other = np.unravel_index(int(gain.argmax()), gain.shape)
            if gain[at, other] > best[0]:
                back = NOWHERE if other == 0 else int(others[other - 1])
                best = (float(gain[at, other]), int(streams[at]), target, back)
        return best

    def _calm(self, load: Floats, gates: Ints) -> Bools:
        """Whether no queue of these gates passes the lag in the near periods with these loads."""
        capacity = self.capacity[gates]
        left = np.broadcast_to(self.queue[gates], load.shape[:-1])
        worst = np.zeros(load.shape[:-1])
        for place in range(int(np.searchsorted(self.leads, _NEAR, side="right"))):
            change = (load[..., place] - capacity) * (self.rules.period * self.widths[place])
            left = np.maximum(0.0, left + change)
            worst = np.maximum(worst, left / capacity)
        return np.asarray((worst <= self.rules.lag).all(axis=-1), np.bool_)

    def _movable(self, gate: int) -> Ints:
        streams = self.members.of(gate)
        return streams[self.cluster.movable[streams]]

    def _move(self, stream: int, target: int) -> None:
        if target == NOWHERE:
            target = self._start()
        source = int(self.home[stream])
        if source != NOWHERE:
            self.mean[source] -= self.path[stream]
            self.noise[source] = np.maximum(self.noise[source] - self.variance[stream], 0)
            self.most -= 1
        self.mean[target] += self.path[stream]
        self.noise[target] += self.variance[stream]
        self.home[stream] = target
        self.members.move(stream, source, target)

    def _start(self) -> int:
        row = np.zeros((1, len(self.leads)))
        self.capacity = np.append(self.capacity, self.cluster.new_capacity)
        self.open = np.append(self.open, True)
        self.barred = np.append(self.barred, False)
        self.queue = np.append(self.queue, 0.0)
        self.mean, self.noise = np.vstack([self.mean, row]), np.vstack([self.noise, row])
        self.gates += 1
        return self.gates - 1

    def _empty(self, gate: int) -> bool:
        """All streams of a gate move, or none does."""
        streams = self.members.of(gate)
        self.open[gate] = False
        moved: list[int] = []
        for stream in streams[np.lexsort((streams, -self.path[streams].max(axis=1)))].tolist():
            flaws, _, targets = self._offers(np.array([stream]), self._pool(gate))
            if flaws[0] > 0:
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


class _Members:
    """The streams of every gate, found without a search over all streams."""

    def __init__(self, home: Ints, gates: int) -> None:
        self._order = np.argsort(home, kind="stable")
        self._starts = np.searchsorted(home[self._order], np.arange(gates + 1))
        self._changed: dict[int, list[int]] = {}

    def of(self, gate: int) -> Ints:
        """In the order of their numbers."""
        if gate in self._changed:
            return np.array(sorted(self._changed[gate]), np.int64)
        if gate + 1 >= len(self._starts):
            return np.empty(0, np.int64)
        found: Ints = self._order[self._starts[gate] : self._starts[gate + 1]]
        return found

    def move(self, stream: int, source: int, target: int) -> None:
        """Take a stream from one gate to another."""
        if source != NOWHERE:
            self._list(source).remove(stream)
        self._list(target).append(stream)

    def _list(self, gate: int) -> list[int]:
        if gate not in self._changed:
            self._changed[gate] = self.of(gate).tolist()
        return self._changed[gate]


def _summed(home: Ints, values: Floats, gates: int) -> Floats:
    placed = home >= 0
    columns = [np.bincount(home[placed], weights=each[placed], minlength=gates) for each in values.T]
    return np.stack(columns, axis=1).astype(np.float64)
