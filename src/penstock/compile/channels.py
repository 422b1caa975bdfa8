"""Channels for stages, in proportion to their cost per tuple and their rate ([002] §III.G)."""

from collections.abc import Mapping

from penstock.compile.stages import Stage, Subqueries
from penstock.errors import BadRouting
from penstock.routing.allotment import allot

__all__ = ["channels_of", "is_single"]


def channels_of(
    subqueries: Subqueries,
    total: int,
    costs: Mapping[int, float] | None = None,
    rates: Mapping[int, float] | None = None,
) -> tuple[int, ...]:
    """The number of channels of each stage, out of `total`.

    `costs` are measured seconds per tuple by the number of the stage, `rates` tuples per second or any
    multiple of it; a stage without a measurement gets the mean of the others. A stage with a host shares the
    host's channels and adds to its load. A stage that cannot be partitioned gets a single channel. With the
    query strategy every stage has all channels.

    >>> from penstock.compile.stages import cut
    >>> from penstock.query import Query, count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> pairs = calls.join(calls, "phone", within="1 hour", suffixes=("", "_2"))
    >>> stages = cut(Query((pairs.group_by("seconds").window("1 hour").agg(n=count()),)))
    >>> channels_of(stages, 8, {0: 3e-6, 1: 1e-6})
    (6, 2)
    """
    stages = subqueries.stages
    if subqueries.strategy == "query":
        if total < 1:
            raise BadRouting(f"{total} channels; give 1 or more")
        return tuple(1 if is_single(stage) else total for stage in stages)
    loads = _loads(stages, costs or {}, rates or {})
    hosts = [stage.number for stage in stages if stage.host is None]
    single = {stage.number for stage in stages if is_single(stage)}
    shared = [number for number in hosts if number not in single]
    weights = [loads[number] for number in shared]
    if total < len(hosts):
        raise BadRouting(
            f"{total} channels for {len(hosts)} stages; give at least {len(hosts)}, or strategy='query'"
        )
    given = dict(zip(shared, allot(total - len(single), weights), strict=True)) if shared else {}
    given |= dict.fromkeys(single, 1)
    for stage in stages:
        if stage.host is not None:
            given[stage.number] = given[stage.host]
    return tuple(given[stage.number] for stage in stages)


def is_single(stage: Stage) -> bool:
    """Whether only one channel can hold its state: one group, or a product that must see every row."""
    return stage.host is None and stage.operator.why_single() is not None


def _loads(
    stages: tuple[Stage, ...], costs: Mapping[int, float], rates: Mapping[int, float]
) -> dict[int, float]:
    """Cost times rate of every stage, including the stages in its channels."""
    loads = dict.fromkeys((stage.number for stage in stages), 0.0)
    hosts: dict[int, int] = {}
    for stage in stages:
        host = stage.number if stage.host is None else hosts[stage.host]
        hosts[stage.number] = host
        loads[host] += costs.get(stage.number, _mean(costs)) * rates.get(stage.number, _mean(rates))
    return loads


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values) if values else 1.0
