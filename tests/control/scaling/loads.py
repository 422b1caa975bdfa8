"""Loads of small graphs for tests of scaling policies, and a queue that answers to what they decide."""

import math
from collections.abc import Sequence

from penstock.control.scaling import Edge, Load, OperatorLoad, PoolLoad, Scaler

TICK = 10.0


def load(
    at: float,
    received: float,
    *,
    units: int = 1,
    pending: float = 0.0,
    use: Sequence[float] | None = None,
    cpu: float = 0.02,
    latency: float = math.nan,
    **pool: object,
) -> Load:
    """One operator in one pool; `received` is in tuples a second."""
    busy = min(received * cpu / units, 1.0)
    return Load(
        at,
        TICK,
        (OperatorLoad("work", "work", received * TICK, received * TICK, pending, cpu),),
        (PoolLoad("work", units, tuple(use) if use is not None else (busy,) * units, **pool),),  # type: ignore[arg-type]
        latency,
    )


def chain(at: float, received: float, units: Sequence[int], *, shared: bool = False) -> Load:
    """Three operators in a row, 10 ms each; the second passes on half; a pool for each or for all."""
    operators, rate = [], received
    for place, selectivity in enumerate((1.0, 1.0, 0.5)):
        rate *= selectivity
        parents = (Edge(place - 1, selectivity),) if place else ()
        name = f"o{place}"
        pool = "cores" if shared else name
        operators.append(OperatorLoad(name, pool, rate * TICK, rate * TICK, 0.0, 0.01, parents))
    names = ["cores"] if shared else [each.name for each in operators]
    pools = tuple(PoolLoad(name, count, (0.5,) * count) for name, count in zip(names, units, strict=True))
    return Load(at, TICK, tuple(operators), pools)


class Loop:
    """A pool of units on a queue: what a policy decides is ready a tick later."""

    def __init__(self, policy: Scaler, *, units: int = 1, cpu: float = 0.02) -> None:
        self.policy, self.units, self.cpu = policy, units, cpu
        self.starting, self.pending, self.at = 0, 0.0, 0.0
        self.course: list[int] = []
        self.waits: list[float] = []

    def run(self, rates: Sequence[float]) -> "Loop":
        """A tick for each rate in tuples a second."""
        for rate in rates:
            self.at += TICK
            self.units, self.starting = self.units + self.starting, 0
            can = self.units * TICK / self.cpu
            done = min(self.pending + rate * TICK, can)
            self.pending += rate * TICK - done
            use = (done / can,) * self.units
            self.policy.observe(
                Load(
                    self.at,
                    TICK,
                    (OperatorLoad("work", "work", rate * TICK, done, self.pending, self.cpu),),
                    (PoolLoad("work", self.units, use, startup=TICK, pause=0.0),),
                )
            )
            for scale in self.policy.decide(self.at):
                if not scale.held:
                    self.starting = max(scale.units - self.units, 0)
                    self.units = min(self.units, scale.units)
            self.course.append(self.units + self.starting)
            self.waits.append(self.pending * self.cpu / self.units)
        return self
