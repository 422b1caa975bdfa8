"""Channels for subqueries in proportion to their load: no other allotment makes the fullest channel emptier.

The load of a subquery is its cost per tuple times its input rate; each gets at least one channel, and every
further one goes to the subquery whose channels are the fullest ([002] §III.G). Only a channel of
its own could relieve a fuller one, so the greedy choice is optimal. O(channels log subqueries).
"""

import math
from collections.abc import Sequence
from heapq import heapify, heapreplace

from penstock.errors import BadRouting

__all__ = ["allot"]


def allot(channels: int, weights: Sequence[float]) -> tuple[int, ...]:
    """How many channels each subquery gets; in a tie fewer channels win, then the first.

    >>> allot(12, [6.0, 3.0, 2.9])
    (6, 3, 3)
    >>> allot(5, [100.0, 0.0, 1.0])
    (3, 1, 1)
    """
    if channels < len(weights):
        raise BadRouting(
            f"{channels} channels for {len(weights)} subqueries; give at least as many channels as subqueries"
        )
    wrong = [weight for weight in weights if not (math.isfinite(weight) and weight >= 0)]
    if wrong or not weights:
        raise BadRouting(f"weights are {list(weights)}; give one or more, each finite and 0 or more")
    fullest = [(-weight, 1, place) for place, weight in enumerate(weights)]
    heapify(fullest)
    for _ in range(channels - len(weights)):
        _, held, place = fullest[0]
        heapreplace(fullest, (-weights[place] / (held + 1), held + 1, place))
    given = {place: held for _, held, place in fullest}
    return tuple(given[place] for place in range(len(weights)))
