"""A scaling policy in a run on Spark: epochs become ticks, and executors are the units of one pool.

The map side of every stream and every stage is an operator; all take turns on the same executors. Epochs are
irregular; a tick ends with the first epoch that is committed after its length. What waits at the end of a
tick is what the sources had left, and what came while the last epoch ran.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.control.observation import Nodes, Observation, OperatorWork, UnitWork
from penstock.control.proposal import Effect, Proposal
from penstock.control.scale import Scale
from penstock.control.scaling.load import Edge, Load, OperatorLoad, PoolLoad
from penstock.control.scaling.registry import scaler
from penstock.control.scaling.scaler import ScalingLimits
from penstock.errors import BadScaling
from penstock.shown import shown_seconds

__all__ = ["POOL", "RunScaling", "TickSoFar"]

POOL = "executors"
_LOST = 0.02  # a unit that loses less of its core than this has it to itself


@dataclass(frozen=True)
class TickSoFar:
    """What the epochs of a tick add up to; instants in seconds since 1970.

    Tuples were taken in `span` seconds, from the last epoch's of the tick before to the last one's. `before`
    is what was left in each source when the tick began. `fixed` are the seconds of the epochs beyond their
    work, shared out evenly.
    """

    began: float
    taken: float
    before: tuple[int, ...]
    operators: tuple[OperatorWork, ...] = ()
    units: tuple[UnitWork, ...] = ()
    span: float = 0.0
    epochs: int = 0
    fixed: float = 0.0
    latency: float | None = None

    def add(self, seen: Observation, nodes: Nodes) -> "TickSoFar":
        """With one more epoch."""
        latencies = [each for each in (self.latency, seen.latency) if each is not None]
        cores = max(nodes.executors * nodes.cores, 1) * _got(seen.units)
        even = sum(each.seconds for each in seen.operators) / cores
        return replace(
            self,
            taken=seen.arrived,
            operators=_added(self.operators, seen.operators),
            units=_units_added(self.units, seen.units),
            span=self.span + max(seen.arrived - self.taken, 0.0),
            epochs=self.epochs + 1,
            fixed=self.fixed + max(seen.committed - seen.arrived - even, 0.0),
            latency=max(latencies, default=None),
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TickSoFar":
        """The sums from their plain values."""
        operators = tuple(map(OperatorWork.from_json, value["operators"]))
        units = tuple(UnitWork(**each) for each in value["units"])
        before = tuple(value["before"])
        return cls(**{**value, "operators": operators, "units": units, "before": before})


def _added(sums: Sequence[OperatorWork], more: Sequence[OperatorWork]) -> tuple[OperatorWork, ...]:
    if not sums:
        return tuple(more)
    return tuple(
        replace(
            two,
            tuples=one.tuples + two.tuples,
            seconds=one.seconds + two.seconds,
            parents=tuple(
                (place, before + count)
                for (place, count), (_, before) in zip(two.parents, one.parents, strict=True)
            ),
        )
        for one, two in zip(sums, more, strict=True)
    )


def _units_added(sums: Sequence[UnitWork], more: Sequence[UnitWork]) -> tuple[UnitWork, ...]:
    found = {each.name: each for each in sums}
    for each in more:
        before = found.get(each.name, UnitWork(each.name, 0.0, 0.0))
        found[each.name] = UnitWork(each.name, before.seconds + each.seconds, before.occupied + each.occupied)
    return tuple(found[name] for name in sorted(found))


def _got(units: Sequence[UnitWork]) -> float:
    """The share of their cores that tasks got."""
    seconds = sum(each.seconds for each in units)
    return max(sum(each.occupied for each in units) / seconds, 0.01) if seconds else 1.0


@dataclass
class RunScaling:
    """The policy `name` for a run: `tick` is the least length of a tick in seconds.

    `pause` is what a change of the number of executors costs in seconds, which is little on Spark: state lies
    in the checkpoint.
    """

    name: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: float = 2.5
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
        self._load: Load | None = None
        self._epochs = 1

    def observe(self, seen: Observation) -> None:
        """Take in an epoch; the policy itself sees ticks."""
        self._load = None
        nodes = seen.nodes
        if nodes is None or not seen.operators:
            return
        left = tuple(each.left for each in seen.operators)
        if self._so_far is None:
            # The first epoch began before anybody looked: its rows had any time to come.
            self._so_far = TickSoFar(seen.committed, seen.arrived, left)
            return
        so_far = self._so_far = self._so_far.add(seen, nodes)
        if seen.committed - so_far.began < self.tick:
            return
        self._load, self._epochs = self._seen(so_far, nodes, seen), so_far.epochs
        self.scaler.observe(self._load)
        self._so_far = TickSoFar(seen.committed, seen.arrived, left)

    def propose(self, now: float) -> list[Proposal[Scale]]:
        """What the policy wants at the end of a tick, with what an epoch is predicted to save."""
        load = self._load
        if load is None:
            return [Proposal((), reason=f"a tick of {shown_seconds(self.tick)} is not over")]
        found = [
            Proposal((each,), self._effect(load, each), each.reason, each.held, urgent=True)
            for each in self.scaler.decide(now)
        ]
        if found:
            return found
        pool = load.pools[0]
        words = f"{pool.present} executors, busy for {pool.mean_busy:.0%} of the time, are as many as wanted"
        return [Proposal((), reason=words)]

    def to_json(self) -> dict[str, Any]:
        """All that it remembers."""
        return {
            "scaler": self.scaler.to_json(),
            "so_far": None if self._so_far is None else asdict(self._so_far),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave; another policy begins anew."""
        if value["scaler"]["name"] != self.name:
            return
        self.scaler.resume(value["scaler"])
        given = value["so_far"]
        self._so_far = None if given is None else TickSoFar.from_json(given)

    def _effect(self, load: Load, scale: Scale) -> Effect:
        """The seconds of an epoch that its work takes now, less those with the other number of units."""
        pool = load.pools[0]
        work = sum(each.processed * each.cpu for each in load.operators if math.isfinite(each.cpu))
        an_epoch = work / self._epochs / pool.got
        saved = an_epoch / max(scale.before, 1) - an_epoch / max(scale.units, 1)
        startup = pool.startup if math.isfinite(pool.startup) and scale.units > scale.before else 0.0
        return Effect(seconds=saved, price=self.pause + startup)

    def _seen(self, tick: TickSoFar, nodes: Nodes, seen: Observation) -> Load:
        seconds = seen.committed - tick.began
        per_tick = seconds / tick.span if tick.span else 0.0
        after = max(seen.committed - seen.arrived, 0.0)
        operators = []
        for place, each in enumerate(tick.operators):
            before = tick.before[place] if place < len(tick.before) else 0
            came = each.tuples if each.parents else max(each.tuples + each.left - before, 0)
            waits = 0.0 if each.parents else each.left + came / tick.span * after if tick.span else each.left
            operators.append(
                OperatorLoad(
                    name=each.name,
                    pool=POOL,
                    received=came * per_tick,
                    processed=float(each.tuples),
                    pending=waits,
                    cpu=each.seconds / nodes.cores / each.tuples if each.tuples else math.nan,
                    parents=tuple(
                        Edge(parent, count / max(tick.operators[parent].tuples, 1))
                        for parent, count in each.parents
                    ),
                    expected=None if each.parents else seen.expected.get(each.name),
                )
            )
        return Load(
            at=seen.committed,
            seconds=seconds,
            operators=tuple(operators),
            pools=(self._pool(tick, nodes, seconds),),
            latency=math.nan if tick.latency is None else tick.latency,
            fixed=tick.fixed / tick.epochs,
        )

    def _pool(self, tick: TickSoFar, nodes: Nodes, seconds: float) -> PoolLoad:
        core = nodes.cores * seconds
        idle = [UnitWork("", 0.0, 0.0)] * max(nodes.executors - len(tick.units), 0)
        units = [*tick.units, *idle]
        use = tuple(min(each.occupied / core, 1.0) for each in units)
        lost = [max(each.seconds - each.occupied, 0.0) / core for each in units]
        return PoolLoad(
            name=POOL,
            units=nodes.executors,
            use=use,
            starting=nodes.starting,
            shared=tuple((min(each, 1.0), 2 if each > _LOST else 1) for each in lost),
            startup=math.nan if nodes.startup is None else nodes.startup,
            pause=self.pause,
        )
