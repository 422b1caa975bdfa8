"""Penstock's own strategy: forecasts with intervals over many periods, and a price for each move.

It differs from DRF-M in four ways. A gate is relieved when its queue is *going to* pass the latency bound, not
when its load once exceeds its capacity. The stream that leaves is the one after which the gate stays within its
capacity, and which fits into another gate, for as long as forecasts reach; so that streams whose peaks fall
apart come to share a gate. What may go wrong is counted by the spread of a gate's load, which grows with the
root of the number of its streams, instead of a margin for each. And a gate is emptied when the periods that are
saved are worth the moves.

All streams have one gate afterwards. Streams leave gates whose queue is going to pass the bound, and gates that
are emptied. It costs O(streams · leads) and, for each stream that leaves, O(gates · leads).
"""

from dataclasses import dataclass

import numpy as np

from penstock.control.admission.cluster import NOWHERE, Bools, Cluster, Floats, Ints, Outlook, Placement

__all__ = ["ForecastIntervals"]

# Of an overloaded gate so many streams are tried in every place.
_TRIED = 12


@dataclass(frozen=True)
class ForecastIntervals:
    """The strategy "penstock".

    `period` and `bound` are seconds; a gate is relieved if rows will wait longer than `bound` within `alarm`
    periods. `caution` is how many standard errors of a gate's load count as certain. A redirection costs as
    much as a gate for `price` periods.
    """

    period: float = 10.0
    bound: float = 4.0
    alarm: int = 2
    caution: float = 0.5
    price: float = 2.0
    fill: float = 1.0
    empty_fill: float = 0.97
    reach: int = 8
    near: int = 2
    fits_for: int = 8
    large: bool = False
    fewest: bool = False
    tries: int = 1

    name = "penstock"

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """Where every stream is to be."""
        state = _State(self, cluster, outlook, most)
        state.relieve()
        state.admit()
        state.empty()
        return Placement(state.home, len(state.capacity), outlook.path[:, 0], state.why, np.array(state.drained, np.int64))


class _State:
    """A placement in the making: the mean and the variance of every gate's load at every lead."""

    def __init__(self, rules: ForecastIntervals, cluster: Cluster, outlook: Outlook, most: int) -> None:
        self.rules, self.cluster, self.most = rules, cluster, most
        self.path, self.variance = outlook.path, outlook.spread**2
        kept = outlook.leads <= rules.reach
        self.path, self.variance = self.path[:, kept], self.variance[:, kept]
        self.leads = outlook.leads[kept]
        self.widths = np.diff(self.leads, prepend=0).astype(np.float64)
        self.home = cluster.home.copy()
        self.capacity = cluster.capacity.copy()
        self.open = cluster.open.copy()
        self.queue = cluster.waiting * cluster.capacity
        gates = len(self.capacity)
        self.mean, self.noise = (_summed(self.home, each, gates) for each in (self.path, self.variance))
        self.why: dict[int, str] = {}
        self.drained: list[int] = []
        self.started = False

    def waits(self, mean: Floats, noise: Floats, queue: Floats, capacity: Floats) -> Floats:
        """How long rows will wait at most while the queue grows, within the alarm, for rows of gates.

        A gate whose queue shrinks needs no relief, however long it is.
        """
        left, worst = queue, np.zeros(len(queue))
        risk = mean + self.rules.caution * np.sqrt(noise)
        for place, lead in enumerate(self.leads.tolist()):
            if lead > self.rules.alarm:
                break
            grown = np.maximum(0.0, left + (risk[..., place] - capacity) * self.rules.period * self.widths[place])
            worst = np.where(grown > left, np.maximum(worst, grown / capacity), worst)
            left = grown
        return worst

    def relieve(self) -> None:
        """Streams leave the gates whose queue is going to pass the bound, the worst gate first."""
        worst = self.waits(self.mean, self.noise, self.queue, self.capacity)
        load_now = self.mean[:, 0] if len(self.mean) else np.empty(0)
        over = (worst > self.rules.bound) & (self.mean[:, 0] > 0)
        self.barred = over.copy()
        del load_now
        for gate in np.flatnonzero(over)[np.argsort(-worst[over], kind="stable")].tolist():
            while self.most > 0 and self._late(gate):
                if not self._relieve(gate):
                    break

    def _late(self, gate: int) -> bool:
        one = slice(gate, gate + 1)
        worst = self.waits(self.mean[one], self.noise[one], self.queue[one], self.capacity[one])
        return bool(worst[0] > self.rules.bound)

    def _relieve(self, gate: int) -> bool:
        streams = np.flatnonzero((self.home == gate))
        if len(streams) < 2:
            return False
        streams = streams[self.cluster.movable[streams] & (self.path[streams, 0] > 0)]
        if not len(streams):
            return False
        # What the gate is left with, at the worst lead, after each of them.
        rest = self.mean[gate] - self.path[streams]
        risk = rest + self.rules.caution * np.sqrt(np.maximum(self.noise[gate] - self.variance[streams], 0))
        excess = (risk - self.capacity[gate]) / self.capacity[gate]
        soon = self.leads <= max(self.rules.alarm, int(self.leads[0]))
        now, ever = np.maximum(excess[:, soon].max(axis=1), 0), np.maximum(excess.max(axis=1), 0)
        # Those that solve it come first, for long before for now, small before large.
        rank = np.lexsort((streams, self.path[streams, 0], ever > 0.02, now > 0.005))
        if now[rank[0]] > 0.005:
            rank = np.lexsort((streams, now))
        best: tuple[float, ...] | None = None
        move = (0, 0)
        for at in rank[:_TRIED].tolist():
            stream = int(streams[at])
            target, cost = self._target(stream, gate)
            key = (float(now[at] > 0.005) + cost, float(ever[at] > 0.02), float(now[at]) * (now[at] > 0.005), self.path[stream, 0] * (-1 if self.rules.large else 1))
            if best is None or key < best:
                best, move = key, (stream, target)
        self._move(*move)
        self.why[gate] = "overloaded"
        return True

    def _target(self, stream: int, source: int) -> tuple[int, float]:
        """The gate for a stream and what is wrong with it: 0 fits for long, 1 for now, 2 must be started."""
        if not len(self.capacity):
            return NOWHERE, 2.0
        free = self._free(stream)
        allowed = self.open.copy()
        allowed[: len(self.barred)] &= ~self.barred
        if source >= 0:
            allowed[source] = False
        ever = np.where(allowed, free[:, self.leads <= self.rules.fits_for].min(axis=1), -np.inf)
        found = np.flatnonzero(ever >= 0)
        if len(found):
            return int(found[np.argmin(ever[found])]), 0.0
        soon = free[:, self.leads <= self.rules.near].min(axis=1)
        soon = np.where(allowed, soon, -np.inf)
        found = np.flatnonzero(soon >= 0)
        if len(found):
            return int(found[np.argmax(ever[found])]), 1.0
        return NOWHERE, 2.0

    def _free(self, stream: int) -> Floats:
        """The space that every gate would have left at every lead, with this stream."""
        risk = self.mean + self.path[stream] + self.rules.caution * np.sqrt(self.noise + self.variance[stream])
        free: Floats = self.rules.fill * self.capacity[:, None] - risk - (self.queue / self.rules.period)[:, None] * 0.5
        return free

    def _move(self, stream: int, target: int) -> None:
        if target == NOWHERE:
            target = self._start()
        source = int(self.home[stream])
        if source >= 0:
            self.mean[source] -= self.path[stream]
            self.noise[source] = np.maximum(self.noise[source] - self.variance[stream], 0)
            self.most -= 1
        self.mean[target] += self.path[stream]
        self.noise[target] += self.variance[stream]
        self.home[stream] = target

    def _start(self) -> int:
        leads = len(self.leads)
        self.capacity = np.append(self.capacity, self.cluster.new_capacity)
        self.open = np.append(self.open, True)
        self.queue = np.append(self.queue, 0.0)
        self.mean = np.vstack([self.mean, np.zeros((1, leads))])
        self.noise = np.vstack([self.noise, np.zeros((1, leads))])
        self.started = True
        return len(self.capacity) - 1

    def admit(self) -> None:
        """New streams, those with the highest peak first."""
        new = np.flatnonzero(self.home == NOWHERE)
        peak = self.path[new].max(axis=1)
        for stream in new[np.lexsort((new, -peak))].tolist():
            self._move(stream, self._target(stream, NOWHERE)[0])

    def empty(self) -> None:
        """Gates whose streams fit elsewhere for long enough to be worth the moves."""
        gates = len(self.cluster.capacity)
        if self.started or gates < 2:
            return
        tried = 0
        horizon = float(self.leads[-1])
        while tried < 3:
            held = np.bincount(self.home, minlength=len(self.capacity))
            fixed = np.bincount(self.home[~self.cluster.movable], minlength=len(self.capacity))
            can = self.open & (fixed == 0) & (held * self.rules.price <= horizon) & (held <= self.most)
            if np.count_nonzero(self.open) < 2 or not can.any():
                return
            peak = self.mean.max(axis=1)
            order = np.lexsort((peak, held)) if self.rules.fewest else np.argsort(peak, kind="stable")
            if not any(self._empty(gate) for gate in order[can[order]][: self.rules.tries].tolist()):
                return
            tried += 1

    def _empty(self, gate: int) -> bool:
        kept = (self.home.copy(), self.mean.copy(), self.noise.copy(), self.most)
        self.open[gate] = False
        streams = np.flatnonzero(self.home == gate)
        for stream in streams[np.lexsort((streams, -self.path[streams].max(axis=1)))].tolist():
            free = self._free(stream) - (1 - self.rules.empty_fill) * self.capacity[:, None]
            ever = np.where(self.open, free.min(axis=1), -np.inf)
            found = np.flatnonzero(ever >= 0)
            if not len(found):
                self.home, self.mean, self.noise, self.most = kept
                self.open[gate] = True
                return False
            self._move(stream, int(found[np.argmin(ever[found])]))
        self.drained.append(gate)
        self.why[gate] = "emptied"
        return True


def _summed(home: Ints, values: Floats, gates: int) -> Floats:
    placed = home >= 0
    columns = [np.bincount(home[placed], weights=each[placed], minlength=gates) for each in values.T]
    return np.stack(columns, axis=1).astype(np.float64) if columns else np.zeros((gates, 0))


_Unused = Bools
