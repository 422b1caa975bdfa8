"""A scaling policy in a run on Spark: epochs become ticks, and executors are the units of one pool.

All stages and map sides of an epoch take turns on the same executors, so they are one operator: its work is
the time of all tasks. Epochs are irregular; a tick ends with the first epoch that is committed after its
length. What waits at the end of a tick is what the sources had left, and what came while the last epoch ran.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.control.observation import Nodes, Observation
from penstock.control.scale import Scale
from penstock.control.scaling.load import Load, OperatorLoad, PoolLoad
from penstock.control.scaling.registry import scaler
from penstock.control.scaling.scaler import ScalingLimits
from penstock.errors import BadScaling

__all__ = ["POOL", "RunScaling", "TickSoFar"]

POOL = "executors"


@dataclass(frozen=True)
class TickSoFar:
    """What the epochs of a tick add up to; instants in seconds since 1970.

    `rows` were taken in `span` seconds, from the first row's epoch to the last one's; `busy` are the task
    seconds of each executor.
    """

    began: float
    taken: float
    left: int
    rows: int = 0
    span: float = 0.0
    busy: tuple[float, ...] = ()
    gone: float = 0.0
    latency: float | None = None

    def add(self, seen: Observation, nodes: Nodes) -> "TickSoFar":
        """With one more epoch."""
        latencies = [each for each in (self.latency, seen.latency) if each is not None]
        # Executors come and go at the end of the list.
        width = max(len(self.busy), len(nodes.busy))
        padded = [each + (0.0,) * (width - len(each)) for each in (self.busy, nodes.busy)]
        return replace(
            self,
            taken=seen.arrived,
            left=seen.left,
            rows=self.rows + seen.rows + seen.left - self.left,
            span=self.span + max(seen.arrived - self.taken, 0.0),
            busy=tuple(one + two for one, two in zip(*padded, strict=True)),
            gone=self.gone + nodes.gone,
            latency=max(latencies, default=None),
        )


@dataclass
class RunScaling:
    """The policy `name` for a run: `tick` is the least length of a tick in seconds.

    `pause` is what a change of the number of executors costs in seconds, which is little on Spark: state lies
    in the checkpoint.
    """

    name: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: float = 5.0
    pause: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.tick < math.inf:
            raise BadScaling(f"tick={self.tick}; give a number of seconds above 0")
        given: dict[str, Any] = {
            name: tuple(map(tuple, value)) if name == "excluded_hours" else value
            for name, value in self.limits.items()
        }
        self.scaler = scaler(self.name, ScalingLimits(**given), **self.settings)
        self._so_far: TickSoFar | None = None
        self._fresh = False

    def observe(self, seen: Observation) -> None:
        """Take in an epoch; the policy itself sees ticks."""
        nodes = seen.nodes
        if nodes is None:
            return
        if self._so_far is None:
            # The first epoch began before anybody looked: its rows had any time to come.
            self._so_far = TickSoFar(seen.committed, seen.arrived, seen.left)
            return
        so_far = self._so_far.add(seen, nodes)
        self._so_far = so_far
        if seen.committed - so_far.began < self.tick:
            return
        self.scaler.observe(self._load(so_far, nodes, seen))
        self._fresh = True
        self._so_far = TickSoFar(seen.committed, seen.arrived, seen.left)

    def decide(self, now: float) -> list[Scale]:
        """What the policy wants at the end of a tick."""
        if not self._fresh:
            return []
        self._fresh = False
        return self.scaler.decide(now)

    def to_json(self) -> dict[str, Any]:
        """All that it remembers."""
        so_far = None if self._so_far is None else asdict(self._so_far)
        return {"scaler": self.scaler.to_json(), "so_far": so_far, "fresh": self._fresh}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave; another policy begins anew."""
        if value["scaler"]["name"] != self.name:
            return
        self.scaler.resume(value["scaler"])
        given = value["so_far"]
        self._so_far = None if given is None else TickSoFar(**{**given, "busy": tuple(given["busy"])})
        self._fresh = value["fresh"]

    def _load(self, tick: TickSoFar, nodes: Nodes, seen: Observation) -> Load:
        seconds = seen.committed - tick.began
        rate = max(tick.rows, 0) / tick.span if tick.span else 0.0
        work = (sum(tick.busy) + tick.gone) / nodes.cores
        taken = max(tick.rows, 0)
        return Load(
            at=seen.committed,
            seconds=seconds,
            operators=(
                OperatorLoad(
                    name="run",
                    pool=POOL,
                    received=rate * seconds,
                    processed=float(taken),
                    pending=seen.left + rate * max(seen.committed - seen.arrived, 0.0),
                    cpu=work / taken if taken else math.nan,
                ),
            ),
            pools=(
                PoolLoad(
                    name=POOL,
                    units=nodes.executors,
                    use=tuple(min(each / nodes.cores / seconds, 1.0) for each in tick.busy),
                    starting=nodes.starting,
                    startup=math.nan if nodes.startup is None else nodes.startup,
                    pause=self.pause,
                ),
            ),
            latency=math.nan if tick.latency is None else tick.latency,
        )
