"""The levels of an epoch: all stages of a level share one exchange, and come after those that feed them.

The tasks that fill the exchange of a level are those that read, and the channels of the level before it. A
step that only Spark can evaluate lies between two exchanges, since it reads files of the stage that feeds it.
"""

from collections.abc import Collection

from penstock.query import Stream
from penstock.runtime.dataflow.tasks import FORM, HOME, LevelPart
from penstock.runtime.graph import Graph
from penstock.runtime.records import EpochPlan

__all__ = ["level_of_stages", "levels_of"]


def level_of_stages(graph: Graph, plan: EpochPlan, staying: Collection[int]) -> dict[int, int]:
    """The level of each stage; one that stays in the tasks that feed it has their level, -1 if these read.

    The channels of a stage that needs two hops are one level behind those that form partials for them.
    """
    levels: dict[int, int] = {}
    for runner in graph.stages:
        number = runner.number
        if runner.stage.host is not None:
            levels[number] = levels[runner.stage.host]
            continue
        fed = [-1]
        for feed in (each for port in runner.ports for each in port):
            if not isinstance(feed.origin, Stream):
                through_spark = _through_spark(graph, feed.origin, number)
                fed.append(levels[feed.origin] + (1 if through_spark else 0))
        stays = number in staying
        levels[number] = max(fed) + (0 if stays else plan.stages[number].hops)
    return levels


def levels_of(graph: Graph, plan: EpochPlan, staying: Collection[int]) -> tuple[tuple[LevelPart, ...], ...]:
    """The parts of each level, one after another."""
    levels = level_of_stages(graph, plan, staying)
    parts: dict[int, list[tuple[int, int]]] = {}
    for runner in graph.stages:
        number = runner.number
        if runner.hosted or number in staying:
            continue
        parts.setdefault(levels[number], []).append((number, HOME))
        if plan.stages[number].hops == 2:
            parts.setdefault(levels[number] - 1, []).append((number, FORM))
    last = max(parts, default=-1)
    for way in graph.spark_ways:
        if way.stage is None and isinstance(way.origin, int):
            last = max(last, levels[way.origin] + 1)
    found = []
    for level in range(last + 1):
        first, own = 0, []
        for number, hop in parts.get(level, ()):
            channels = plan.stages[number].channels
            own.append(LevelPart(number, hop, first, channels))
            first += channels
        found.append(tuple(own))
    return tuple(found)


def _through_spark(graph: Graph, origin: int, stage: int) -> bool:
    return any(each.origin == origin and each.stage == stage for each in graph.spark_ways)
