"""Penstock's own strategy: forecasts with intervals over many periods, and a price for each move.

It differs from DRF-M in four ways:

- A gate is relieved when its queue is *going to* pass the latency bound, by the upper end of an interval of
  its load, and not when its load once exceeds its capacity. The interval is that of the gate: its width grows
  with the root of the number of streams, where a margin for each stream would grow with the number.
- The stream that leaves is one after which the gate stays within its capacity, and which fits into another
  gate, for as long as forecasts reach. So streams whose peaks fall apart come to share a gate.
- What fits is counted over many periods, so that a stream is not sent to where it cannot stay.
- A gate is emptied if its streams fit elsewhere for long enough that the periods saved are worth the moves.

Every stream has one gate afterwards. Streams leave gates whose queue is going to pass the bound, and gates
that are emptied; neither gets a stream in the same period. It costs O(streams · leads), and O(gates · leads)
for each of the few streams that are tried when one leaves.
"""

from dataclasses import dataclass

import numpy as np

from penstock.control.admission.cluster import NOWHERE, Bools, Cluster, Floats, Ints, Outlook, Placement
from penstock.errors import BadAdmission

__all__ = ["ForecastIntervals"]

# Of an overloaded gate so many streams are tried in every place, and so many gates are tried to be emptied.
_TRIED, _EMPTIED = 12, 3
# Above its capacity by less than this, at once and over the whole reach, a gate counts as relieved.
_SOON, _EVER = 0.005, 0.02
# The periods for which a stream must fit if it fits nowhere for longer.
_NEAR = 2


@dataclass(frozen=True)
class ForecastIntervals:
    """The strategy "penstock".

    `period` is the seconds of a period. A gate is relieved if rows will wait longer than `bound` seconds
    within `alarm` periods, counting `caution` standard errors of its load as certain. A stream fits for
    `reach` periods if rows then wait no longer than `lag` seconds, and the mean load is within the part
    `fill` of the capacity. The default caution is 0, the mean alone: on the six workloads of [000] a wider
    interval costs more gates than it saves redirections. A redirection costs as much as a gate for `price`
    periods.
    """

    period: float = 10.0
    bound: float = 4.8
    alarm: int = 2
    caution: float = 0.0
    lag: float = 1.5
    fill: float = 0.975
    reach: int = 16
    price: float = 3.1

    def __post_init__(self) -> None:
        if min(self.period, self.bound, self.fill) <= 0 or min(self.alarm, self.reach) < 1:
            raise BadAdmission(
                f"{self}; give times and a part above 0, and at least 1 period of alarm and reach"
            )
        if self.caution < 0 or self.price < 0:
            raise BadAdmission(f"caution={self.caution}, price={self.price}; give numbers from 0")

    @property
    def name(self) -> str:
        """The name by which it is chosen."""
        return "penstock"

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """Where every stream is to be."""
        making = _Making(self, cluster, outlook, most)
        making.relieve()
        making.admit()
        making.empty()
        drained = np.array(making.drained, np.int64)
        return Placement(making.home, len(making.capacity), outlook.path[:, 0], making.why, drained)

    def charged(self, outlook: Outlook) -> Floats:
        """The mean over the reach."""
        reached = outlook.leads <= max(self.reach, int(outlook.leads[0]))
        widths = np.diff(outlook.leads[reached], prepend=0).astype(np.float64)
        mean: Floats = outlook.path[:, reached] @ (widths / widths.sum())
        return mean


class _Making:
    """A placement in the making: the mean and the variance of every gate's load at every lead."""

    def __init__(self, rules: ForecastIntervals, cluster: Cluster, outlook: Outlook, most: int) -> None:
        self.rules, self.cluster, self.most = rules, cluster, most
        reached = outlook.leads <= max(rules.reach, int(outlook.leads[0]))
        self.leads = outlook.leads[reached]
        self.path, self.variance = outlook.path[:, reached], outlook.spread[:, reached] ** 2
        self.foreseen, self.total = outlook.leads, outlook.path.sum(axis=0)
        self.widths = np.diff(self.leads, prepend=0).astype(np.float64)
        self.home = cluster.home.copy()
        self.capacity = cluster.capacity.copy()
        self.open = cluster.open.copy()
        self.queue = cluster.waiting * cluster.capacity
        gates = len(self.capacity)
        self.mean, self.noise = (_summed(self.home, each, gates) for each in (self.path, self.variance))
        self.barred = np.zeros(gates, np.bool_)
        self.why: dict[int, str] = {}
        self.drained: list[int] = []

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
        """New streams, those with the highest peak first."""
        new = np.flatnonzero(self.home == NOWHERE)
        peak = self.path[new].max(axis=1) if len(new) else np.empty(0)
        for stream in new[np.lexsort((new, -peak))].tolist():
            self._move(stream, self._target(stream, NOWHERE)[0])

    def empty(self) -> None:
        """Gates whose streams fit elsewhere for long enough to be worth the moves, those of fewest first.

        None is emptied in a period in which one is started.
        """
        gates = len(self.cluster.capacity)
        if len(self.capacity) > gates:
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
        leads = np.append(0, self.foreseen)
        saved: Ints = leads[np.where(beyond.any(axis=1), beyond.argmax(axis=1), len(self.foreseen))]
        return saved

    def _waits(self, gates: slice) -> Floats:
        """How long rows will wait while the queue grows, within the alarm.

        A gate whose queue shrinks needs no relief, however long it is.
        """
        capacity, left = self.capacity[gates], self.queue[gates]
        risk = self.mean[gates] + self.rules.caution * np.sqrt(self.noise[gates])
        worst = np.zeros(len(left))
        for place in np.flatnonzero(self.leads <= self.rules.alarm).tolist():
            grown = np.maximum(
                0.0, left + (risk[:, place] - capacity) * self.rules.period * self.widths[place]
            )
            worst = np.where(grown > left, np.maximum(worst, grown / capacity), worst)
            left = grown
        return worst

    def _relieve(self, gate: int) -> bool:
        """One stream leaves, if there is one that may and another one stays."""
        streams = np.flatnonzero(self.home == gate)
        if len(streams) < 2:
            return False
        streams = streams[self.cluster.movable[streams] & (self.path[streams, 0] > 0)]
        if not len(streams):
            return False
        rest = self.mean[gate] - self.path[streams]
        noise = np.maximum(self.noise[gate] - self.variance[streams], 0)
        above = (rest + self.rules.caution * np.sqrt(noise)) / self.capacity[gate] - 1
        soon = self.leads <= max(self.rules.alarm, int(self.leads[0]))
        now, ever = np.maximum(above[:, soon].max(axis=1), 0), above.max(axis=1)
        unsolved, later = now > _SOON, ever > _EVER
        work = self.path[streams, 0]
        # Those that solve it come first, for long before for now, and small ones before large ones.
        rank = np.lexsort((streams, work, later, np.where(unsolved, now, 0)))[:_TRIED]
        keys = []
        for at in rank.tolist():
            target, flaw = self._target(int(streams[at]), gate)
            excess = float(now[at]) if unsolved[at] else 0.0
            key = (int(unsolved[at]) + flaw, bool(later[at]), excess, float(work[at]), int(streams[at]))
            keys.append((key, target))
        (*_, stream), target = min(keys)
        self._move(stream, target)
        self.why[gate] = "overloaded"
        return True

    def _target(self, stream: int, source: int) -> tuple[int, int]:
        """The gate for a stream, and its flaw: 0 fits for long, 1 fits for now, 2 must be started."""
        gates = len(self.capacity)
        allowed = self.open.copy()
        allowed[: len(self.barred)] &= ~self.barred
        if source != NOWHERE:
            allowed[source] = False
        if not gates:
            return NOWHERE, 2
        ever, near, free = self._fits(stream)
        found = np.flatnonzero(allowed & ever)
        if len(found):
            return int(found[np.argmin(free[found])]), 0
        found = np.flatnonzero(allowed & near)
        if len(found):
            return int(found[np.argmax(free[found])]), 1
        return NOWHERE, 2

    def _fits(self, stream: int) -> tuple[Bools, Bools, Floats]:
        """Which gates could take a stream for the whole reach, which for now, and the least space left.

        Load above the capacity for a while only waits; it fits if it waits no longer than `lag`, and if
        the mean over the reach is within the part `fill` of the capacity.
        """
        load = self.mean + self.path[stream]
        left, worst, near = self.queue, np.zeros(len(self.queue)), np.zeros(len(self.queue))
        for place, width in enumerate(self.widths.tolist()):
            left = np.maximum(0.0, left + (load[:, place] - self.capacity) * self.rules.period * width)
            worst = np.maximum(worst, left / self.capacity)
            if self.leads[place] <= _NEAR:
                near = worst
        within = load @ (self.widths / self.widths.sum()) <= self.rules.fill * self.capacity
        free: Floats = self.capacity - load.max(axis=1)
        return (worst <= self.rules.lag) & within, near <= self.rules.lag, free

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

    def _start(self) -> int:
        row = np.zeros((1, len(self.leads)))
        self.capacity = np.append(self.capacity, self.cluster.new_capacity)
        self.open = np.append(self.open, True)
        self.queue = np.append(self.queue, 0.0)
        self.mean, self.noise = np.vstack([self.mean, row]), np.vstack([self.noise, row])
        return len(self.capacity) - 1

    def _empty(self, gate: int) -> bool:
        """All streams of a gate move, or none does."""
        streams = np.flatnonzero(self.home == gate)
        self.open[gate] = False
        moved: list[int] = []
        for stream in streams[np.lexsort((streams, -self.path[streams].max(axis=1)))].tolist():
            ever, _, free = self._fits(stream)
            found = np.flatnonzero(self.open & ~self.barred & ever)
            if not len(found):
                for each in moved:
                    self._move(each, gate)
                self.most += 2 * len(moved)
                self.open[gate] = True
                return False
            self._move(stream, int(found[np.argmin(free[found])]))
            moved.append(stream)
        self.drained.append(gate)
        if moved:
            self.why[gate] = "emptied"
        return True


def _summed(home: Ints, values: Floats, gates: int) -> Floats:
    placed = home >= 0
    columns = [np.bincount(home[placed], weights=each[placed], minlength=gates) for each in values.T]
    return np.stack(columns, axis=1).astype(np.float64)
