"""A parallel plan on a cluster: which channels run where and who is connected to whom."""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from penstock_lab.errors import BadSimulation
from penstock_lab.simulate.splits import Amounts
from penstock_lab.simulate.stage import SOURCE, Stage

__all__ = ["Plan", "processors"]


def processors(nodes: int, instances: int, cores: int) -> Amounts:
    """The speed of every instance: a core of its own, or an even share where there are more than cores.

    An instance never uses two cores, as the engine of [002] §IV.E has one busy thread at a time.

    >>> processors(nodes=1, instances=2, cores=4).tolist(), processors(1, 3, 2).round(2).tolist()
    ([1.0, 1.0], [0.67, 0.67, 0.67])
    """
    return np.full(nodes * instances, min(1.0, cores / instances))


@dataclass(frozen=True)
class Plan:
    """Stages in the order of their inputs on processors of these speeds.

    `sources` senders feed each stage that reads the source, and each channel without a successor sends to
    `sinks` receivers; what those do costs this cluster nothing.
    """

    stages: tuple[Stage, ...]
    speeds: Amounts
    sources: int = 1
    sinks: int = 1

    def __post_init__(self) -> None:
        seen = {SOURCE}
        for stage in self.stages:
            unknown = [name for name in stage.inputs if name not in seen]
            if unknown or not stage.inputs or stage.name in seen:
                raise BadSimulation(
                    f"stage {stage.name!r} reads {stage.inputs} after {sorted(seen)}; "
                    "give stages names of their own, each after the stages that it reads"
                )
            seen.add(stage.name)
            if max(stage.hosts) >= len(self.speeds):
                raise BadSimulation(
                    f"stage {stage.name!r} is on processor {max(stage.hosts)} of {len(self.speeds)}; "
                    "give places within the cluster"
                )

    def readers(self, name: str) -> list[Stage]:
        """The stages that a stage feeds."""
        return [stage for stage in self.stages if name in stage.inputs]

    @cached_property
    def flow(self) -> dict[str, float]:
        """How many tuples reach each stage for one tuple of the source, before copies."""
        arriving: dict[str, float] = {}
        leaving = {SOURCE: 1.0}
        for stage in self.stages:
            arriving[stage.name] = sum(leaving[name] for name in stage.inputs)
            leaving[stage.name] = arriving[stage.name] * stage.selectivity
        return arriving

    @cached_property
    def connections(self) -> Amounts:
        """How many ends of connections each processor holds, of all its channels."""
        ends = np.zeros(len(self.speeds))
        for stage in self.stages:
            ends[list(stage.hosts)] += self._ends(stage)
        return ends

    @cached_property
    def chatter(self) -> Amounts:
        """The part of each processor that its connections keep busy, tuples or not; it may exceed 1."""
        busy = np.zeros(len(self.speeds))
        for stage in self.stages:
            busy[list(stage.hosts)] += self._ends(stage) * stage.links.connection
        return busy

    def handling(self, stage: Stage) -> float:
        """Seconds a copy of a tuple in this stage takes for being received, routed and sent on."""
        readers = self.readers(stage.name)
        links = stage.links
        copies = sum(reader.split.copies for reader in readers) if readers else 1.0
        return links.receive + self.leaving(stage) * (links.route + links.send * copies)

    def leaving(self, stage: Stage) -> float:
        """Tuples that leave a stage for each copy that it takes in."""
        return stage.selectivity / stage.split.copies

    def ideal(self) -> float:
        """Source tuples a second if load were even and connections free: an upper bound.

        A tuple costs a fixed part, and a part that grows with the rate where windows are of time.
        """
        fixed = growing = 0.0
        for stage in self.stages:
            flow, copies = self.flow[stage.name], stage.split.copies
            fixed += flow * copies * (stage.work + self.handling(stage))
            if stage.window is not None:
                met = stage.compare * copies * copies / stage.split.channels
                fixed += flow * met * stage.window.rows
                growing += flow * met * stage.window.seconds * flow / 2
        capacity = float(self.speeds.sum())
        if fixed + growing <= 0:
            raise BadSimulation("no stage costs anything; give at least one stage work, links or a window")
        return 2 * capacity / (fixed + sqrt(fixed * fixed + 4 * growing * capacity))

    def _ends(self, stage: Stage) -> int:
        channels = {each.name: each.split.channels for each in self.stages}
        incoming = sum(self.sources if name == SOURCE else channels[name] for name in stage.inputs)
        readers = self.readers(stage.name)
        return incoming + (sum(reader.split.channels for reader in readers) if readers else self.sinks)
