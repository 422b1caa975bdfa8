"""One pool of nodes under a load that is known second by second, as a fluid, under a scaling policy.

For long series and many nodes, where single tuples would take too long: work is in node seconds, a node
does one a second, and what is not done waits, first come first served.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.control.scaling import Load, OperatorLoad, PoolLoad, Scale, Scaler
from penstock_lab.errors import BadSimulation

__all__ = ["PoolCosts", "PoolCourse", "least_node_seconds", "simulate_pool"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOL = "nodes"


@dataclass(frozen=True)
class PoolCosts:
    """Seconds of a tick, a start and a change; nodes at first; what a tuple costs a node in seconds."""

    tick: int = 5
    startup: int = 10
    pause: int = 1
    units: int = 4
    cpu: float = 0.001


@dataclass(frozen=True)
class PoolCourse:
    """For each second the work that came and how long it waited; nodes, starting ones too, in each tick."""

    work: Floats
    waits: Floats
    units: Ints
    node_seconds: float
    changes: int
    decisions: tuple[Scale, ...] = field(repr=False, default=())

    def within(self, bound: float) -> float:
        """The share of the work that waited no longer than a bound."""
        return float(self.work[self.waits <= bound].sum() / max(self.work.sum(), 1e-300))


def simulate_pool(work: Floats, policy: Scaler, costs: PoolCosts) -> PoolCourse:
    """Runs the load, and asks the policy after every tick."""
    if costs.tick < 1 or not len(work):
        raise BadSimulation(f"ticks of {costs.tick} s over {len(work)} seconds; give at least one of each")
    units, paused = costs.units, 0.0
    starting: list[tuple[int, int]] = []
    queue = used = came = 0.0
    served, nodes, decisions = np.zeros(len(work)), [], []
    node_seconds, changes = 0.0, 0
    for second, arriving in enumerate(work.tolist()):
        ready = sum(count for then, count in starting if then <= second)
        if ready:
            starting = [each for each in starting if each[0] > second]
            units, paused = units + ready, second + costs.pause
        can = 0.0 if second < paused else float(units)
        done = min(queue + arriving, can)
        queue += arriving - done
        served[second] = done
        used, came = used + done, came + arriving
        present = units + sum(count for _, count in starting)
        node_seconds += present
        if (second + 1) % costs.tick:
            continue
        nodes.append(present)
        at = float(second + 1)
        # Round robin over even nodes: all are as busy.
        use = (min(used / (units * costs.tick), 1.0),) * units
        operator = OperatorLoad(POOL, POOL, came / costs.cpu, used / costs.cpu, queue / costs.cpu, costs.cpu)
        pool = PoolLoad(
            POOL, units, use, present - units, startup=float(costs.startup), pause=float(costs.pause)
        )
        policy.observe(Load(at, float(costs.tick), (operator,), (pool,), queue / units))
        used = came = 0.0
        for scale in policy.decide(at):
            decisions.append(scale)
            if scale.held:
                continue
            changes += 1
            if scale.units > present:
                starting.append((second + 1 + costs.startup, scale.units - present))
            else:
                starting = []
                if scale.units < units:
                    units, paused = scale.units, second + 1 + costs.pause
    waits = _waits(work, served, queue, units)
    return PoolCourse(work, waits, np.array(nodes), node_seconds, changes, tuple(decisions))


def _waits(work: Floats, served: Floats, left: float, units: int) -> Floats:
    """How long the last work of each second waits; what is left at the end goes on at the last pace."""
    came, done = np.cumsum(work), np.append(0.0, np.cumsum(served))
    times = np.arange(len(done), dtype=np.float64)
    if left > 0:
        done, times = np.append(done, done[-1] + left), np.append(times, times[-1] + left / units)
    # The first instant at which so much is done: strictly rising points only.
    rising = np.append(True, np.diff(done) > 0)
    ends = np.interp(came - 1e-9 * np.maximum(came, 1), done[rising], times[rising])
    return np.asarray(np.maximum(ends - np.arange(1, len(work) + 1), 0.0), np.float64)


def least_node_seconds(work: Floats, bound: float, tick: int) -> float:
    """What a cluster needs that knows the future, starts nodes at once, and serves everything just in time.

    In each tick the fewest whole nodes with which all that came `bound` seconds ago is done. No policy can
    take less but for the rounding of the last ticks.

    >>> least_node_seconds(np.full(100, 2.5), 5.0, 5)
    250.0
    """
    came = np.append(0.0, np.cumsum(work))
    seconds = np.arange(len(came))
    due = np.interp(np.maximum(seconds - bound, 0.0), seconds, came)
    due[-1] = came[-1] if bound < 1 else due[-1]
    done = total = 0.0
    for begin in range(0, len(work), tick):
        end = min(begin + tick, len(work))
        spans = np.arange(1, end - begin + 1)
        nodes = max(math.ceil(round(float(((due[begin + 1 : end + 1] - done) / spans).max()), 9)), 0)
        done = min(done + nodes * (end - begin), float(came[end]))
        total += nodes * (end - begin)
    # What is left at the end has to be done too.
    return total + float(came[-1] - done)
