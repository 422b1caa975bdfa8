"""The query of [002] Fig. 8 and its three parallel plans: by subquery, by operator, and whole.

The drawing is lost; what the text says of it holds here: eight operators, three of them stateful, and an
operator-cluster of 16, 12, 8, 8, 8, 4, 2 and 2 processors ([002] §IV.C, footnote), for which the
selectivities are chosen. Those are whole dual-core nodes, so subclusters are whole nodes here as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.routing import allot
from penstock_lab.algorithms import UniformHash
from penstock_lab.simulate import SOURCE, Dealt, Keyed, Links, Plan, Split, Stage, key_hashes
from penstock_lab.simulate.records import CALLERS

__all__ = ["FIGURE_8", "Operator", "operator_plan", "query_plan", "subqueries", "subquery_plan"]

_CORES = 2
_KEYS = key_hashes(CALLERS)


@dataclass(frozen=True)
class Operator:
    """One box of the query: tuples out for a tuple in, and whether it keeps state."""

    kind: str
    selectivity: float
    stateful: bool = False


FIGURE_8 = (
    Operator("join", 3 / 4, stateful=True),
    Operator("filter", 2 / 3),
    Operator("map", 1.0),
    Operator("map", 1.0),
    Operator("filter", 1 / 2),
    Operator("aggregate", 1 / 2, stateful=True),
    Operator("map", 1.0),
    Operator("aggregate", 1 / 2, stateful=True),
)

_Work = Mapping[str, float]


def subqueries(query: Sequence[Operator]) -> list[list[Operator]]:
    """A stateful operator with the stateless ones after it; stateless ones at the start by themselves.

    >>> [len(each) for each in subqueries(FIGURE_8)]
    [5, 2, 1]
    """
    cuts: list[list[Operator]] = []
    for operator in query:
        if operator.stateful or not cuts:
            cuts.append([])
        cuts[-1].append(operator)
    return cuts


def subquery_plan(processors: int, work: _Work, links: Links) -> Plan:
    """Each subquery on nodes of its own, in proportion to its load."""
    return _clusters(subqueries(FIGURE_8), processors, work, links)


def operator_plan(processors: int, work: _Work, links: Links) -> Plan:
    """Each operator on nodes of its own, in proportion to its load."""
    return _clusters([[operator] for operator in FIGURE_8], processors, work, links)


def query_plan(processors: int, work: _Work, links: Links) -> Plan:
    """All subqueries on all processors."""
    cuts = subqueries(FIGURE_8)
    return _plan(cuts, [tuple(range(processors))] * len(cuts), processors, work, links)


def _clusters(cuts: list[list[Operator]], processors: int, work: _Work, links: Links) -> Plan:
    # The load of a subquery does not depend on the number of its channels, so any placement tells it.
    anywhere = _plan(cuts, [(0,)] * len(cuts), 1, work, links)
    loads = [anywhere.flow[each.name] * (each.work + anywhere.handling(each)) for each in anywhere.stages]
    sizes = [_CORES * nodes for nodes in allot(processors // _CORES, loads)]
    ends = np.cumsum(sizes).tolist()
    hosts = [tuple(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    return _plan(cuts, hosts, processors, work, links)


def _plan(
    cuts: list[list[Operator]], hosts: list[tuple[int, ...]], processors: int, work: _Work, links: Links
) -> Plan:
    stages: list[Stage] = []
    for number, (operators, places) in enumerate(zip(cuts, hosts, strict=True)):
        stages.append(
            Stage(
                name=f"{number}: {operators[0].kind}",
                work=_work(operators, work),
                split=_split(operators[0], len(places)),
                hosts=places,
                inputs=(stages[-1].name if stages else SOURCE,),
                selectivity=float(np.prod([each.selectivity for each in operators])),
                links=links,
            )
        )
    return Plan(tuple(stages), np.ones(processors), sources=max(processors // 2, 1))


def _work(operators: list[Operator], work: _Work) -> float:
    """Seconds for a tuple that enters, over all operators it reaches.

    A filter at the end of several operators is a part of the load balancer ([002] §III.F).
    """
    folded = len(operators) > 1 and operators[-1].kind == "filter"
    seconds, reaching = 0.0, 1.0
    for operator in operators[:-1] if folded else operators:
        seconds += reaching * work[operator.kind]
        reaching *= operator.selectivity
    return seconds


def _split(operator: Operator, channels: int) -> Split:
    return Keyed(UniformHash(channels), _KEYS) if operator.stateful else Dealt(channels)
