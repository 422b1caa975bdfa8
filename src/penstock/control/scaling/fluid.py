"""A queue as a fluid: how it grows and drains when work arrives and units come at known times.

Work and queues are in processor seconds; a unit does one a second. Time runs in steps of equal length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Course", "Ramp", "course", "epochs"]


@dataclass(frozen=True)
class Ramp:
    """Units over time: `before` until `ready` seconds, none for `pause` seconds, then `after`.

    `usable` is the part of a unit that counts.
    """

    before: float
    after: float
    ready: float = 0.0
    pause: float = 0.0
    usable: float = 1.0

    def done(self, begin: float, end: float) -> float:
        """The work that can be done between two instants.

        >>> Ramp(1, 4, ready=5, pause=1).done(0, 10)
        21.0
        """
        early = max(min(end, self.ready) - begin, 0.0)
        late = max(end - max(begin, self.ready + self.pause), 0.0)
        return self.usable * (self.before * early + self.after * late)

    def drained(self, begin: float, work: float) -> float:
        """How long after `begin` this much work is done; infinite if never.

        >>> Ramp(1, 4, ready=5, pause=1).drained(0, 21), Ramp(1, 4, ready=5, pause=1).drained(8, 8)
        (10.0, 2.0)
        """
        first = self.done(begin, self.ready)
        if work <= first:
            return work / (self.before * self.usable) if work else 0.0
        rate = self.after * self.usable
        return max(self.ready + self.pause - begin, 0.0) + (work - first) / rate if rate else float("inf")


@dataclass(frozen=True)
class Course:
    """At the end of each step: the queue, and how long work that arrives then waits; and what was done."""

    queue: tuple[float, ...]
    waits: tuple[float, ...]
    served: tuple[float, ...]


def course(queue: float, arriving: list[float], step: float, ramp: Ramp) -> Course:
    """The queue over the steps; `arriving` is the work of each.

    >>> course(10.0, [5.0, 5.0], 10.0, Ramp(1, 1)).queue
    (5.0, 0.0)
    """
    queues, waits, served = [], [], []
    for number, work in enumerate(arriving):
        begin, end = number * step, (number + 1) * step
        done = min(queue + work, ramp.done(begin, end))
        queue = queue + work - done
        queues.append(queue)
        waits.append(ramp.drained(end, queue))
        served.append(done)
    return Course(tuple(queues), tuple(waits), tuple(served))


def epochs(
    queue: float, arriving: Sequence[float], step: float, ramp: Ramp, fixed: float
) -> list[tuple[float, float]]:
    """When each of the next epochs begins, and how old its oldest work is when it ends.

    Epochs run back to back. Each takes all that waits, and `fixed` seconds more than the work in it; its
    oldest work came when the one before it began. After the last step work comes as in it.

    >>> epochs(1.0, [2.0, 2.0], 4.0, Ramp(1, 1), fixed=1.0)
    [(0.0, 2.0), (2.0, 4.0), (4.0, 4.0), (6.0, 4.0)]
    """
    found: list[tuple[float, float]] = []
    now = before = 0.0
    fixed = max(fixed, step / 20)
    while now < len(arriving) * step:
        took = fixed + ramp.drained(now + fixed, queue)
        found.append((now, before + took))
        if took == float("inf"):
            break
        queue = _came(arriving, step, now + took) - _came(arriving, step, now)
        before, now = took, now + took
    return found


def _came(arriving: Sequence[float], step: float, until: float) -> float:
    """The work that has come by an instant."""
    whole = min(int(until / step), len(arriving) - 1)
    return sum(arriving[:whole]) + arriving[whole] * (until / step - whole)
