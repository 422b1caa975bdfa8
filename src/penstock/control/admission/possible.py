"""A placement within what can be started and drained: planners think of gates as if there were always more.

A stream that was to move to a gate that cannot be started stays where it is, and a new one enters where the
most is free. A gate that has to stay keeps the streams that only its emptying would have moved.
"""

from dataclasses import replace

import numpy as np

from penstock.control.admission.cluster import NOWHERE, Cluster, Placement, loads

__all__ = ["possible"]


def possible(cluster: Cluster, placed: Placement, startable: int | None, least: int) -> Placement:
    """The placement with at most `startable` new gates and at least `least` open ones."""
    if startable is not None and placed.gates > len(cluster.capacity) + startable:
        placed = _with_fewer(cluster, placed, startable)
    opened = int(np.count_nonzero(cluster.open)) + placed.gates - len(cluster.capacity)
    surplus = len(placed.drained) - max(opened - least, 0)
    return placed if surplus <= 0 else _with_more(cluster, placed, surplus)


def _with_fewer(cluster: Cluster, placed: Placement, startable: int) -> Placement:
    gates = len(cluster.capacity) + startable
    home = placed.home.copy()
    beyond = np.flatnonzero(home >= gates)
    home[beyond] = cluster.home[beyond]
    capacity = np.append(cluster.capacity, np.full(startable, cluster.new_capacity))
    taking = np.append(cluster.open, np.ones(startable, np.bool_))
    taking[placed.drained] = False
    load = loads(home, placed.size, gates)
    if taking.any():
        for stream in beyond[home[beyond] == NOWHERE].tolist():
            target = int(np.argmax(np.where(taking, capacity - load, -np.inf)))
            home[stream] = target
            load[target] += placed.size[stream]
    left = np.unique(cluster.home[(home != cluster.home) & (cluster.home != NOWHERE)]).tolist()
    return replace(
        placed, home=home, gates=gates, why={gate: why for gate, why in placed.why.items() if gate in left}
    )


def _with_more(cluster: Cluster, placed: Placement, surplus: int) -> Placement:
    """The gates with the most streams stay: to keep them saves the most moves."""
    held = np.bincount(cluster.home[cluster.home >= 0], minlength=len(cluster.capacity))
    order = np.lexsort((placed.drained, -held[placed.drained]))
    staying = placed.drained[order[:surplus]]
    home = placed.home.copy()
    back = np.isin(cluster.home, staying)
    home[back] = cluster.home[back]
    return replace(
        placed,
        home=home,
        why={gate: why for gate, why in placed.why.items() if gate not in staying.tolist()},
        drained=placed.drained[np.sort(order[surplus:])],
    )
