"""Scale-in without churn: the emptiest gate is drained when its streams fit elsewhere below a lower mark.

[000] states no such rule, though its number of nodes falls with the load. Two things keep gates from being
emptied and started in turn: the mark lies below the capacity, and nothing is emptied in a period in which a
gate was overloaded or started.
"""

from dataclasses import replace

import numpy as np

from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.cluster import Cluster, Placement, loads

__all__ = ["scale_in"]


def scale_in(cluster: Cluster, placed: Placement, *, mark: float, most: int) -> Placement:
    """The placement with at most one gate emptied, whose streams are at most `most`; else `placed` itself.

    The emptiest gate is the one with the least load that holds streams; a gate without streams is drained
    as it is. A stream that may not move keeps its gate.
    """
    gates = len(cluster.capacity)
    quiet = placed.gates == gates and not placed.why
    if not quiet or not gates:
        return placed
    load = loads(placed.home, placed.size, gates)
    held = np.bincount(placed.home[placed.home >= 0], minlength=gates)
    idle = np.flatnonzero(cluster.open & (held == 0))
    fixed = np.bincount(placed.home[(placed.home >= 0) & ~cluster.movable], minlength=gates)
    candidates = np.flatnonzero(cluster.open & (held > 0) & (fixed == 0) & (held <= most))
    if len(idle) or not len(candidates):
        # At least one gate stays, so that new streams find one.
        return replace(placed, drained=idle if len(idle) < np.count_nonzero(cluster.open) else idle[1:])
    gate = int(candidates[np.lexsort((candidates, load[candidates] / cluster.capacity[candidates]))[0]])
    bins = np.flatnonzero(cluster.open & (np.arange(gates) != gate))
    items = np.flatnonzero(placed.home == gate)
    items = items[np.lexsort((items, -placed.size[items]))]
    free = (mark * cluster.capacity - load)[bins]
    chosen, count = best_fit(placed.size[items], free, cluster.new_capacity)
    if count > len(bins):
        return placed
    home = placed.home.copy()
    home[items] = bins[chosen]
    return replace(placed, home=home, why={gate: "emptied"}, drained=np.array([gate], np.int64))
