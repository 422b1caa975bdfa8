"""Random query graphs with their tuples, each made from one whole number."""

import dataclasses
from random import Random

from graphs import draw_stages, draw_steps, tuples
from graphs.accepted import judge
from graphs.batch import largest
from graphs.draft import Draft
from graphs.graph import Column, Graph, Node, Source

MOST_ROWS = 1500
"""No stateful relation is larger, so that a run on Spark stays short."""

KINDS = {
    draw_steps.where: 2,
    draw_steps.select: 2,
    draw_steps.map_: 2,
    draw_steps.split: 2,
    draw_steps.union: 3,
    draw_stages.window: 5,
    draw_stages.session: 2,
    draw_stages.counts: 2,
    draw_stages.join: 6,
    draw_stages.last: 7,
    draw_stages.cross: 2,
}


def generate(seed: int, operators: int = 6, epochs: int = 5) -> Graph:
    """The graph of a seed with up to so many of both; drawn again while its relations are too large."""
    rng = Random(seed)
    while True:
        found = _drawn(Draft(rng), operators, epochs)
        if largest(found, judge(found).accepted) <= MOST_ROWS:
            return found


def sketched(seed: int, operators: int = 6, epochs: int = 5) -> Graph:
    """The first graph that is drawn from a seed, of whatever size; this takes no engine."""
    return _drawn(Draft(Random(seed)), operators, epochs)


def _drawn(draft: Draft, operators: int, epochs: int) -> Graph:
    rng = draft.rng
    _add_sources(draft)
    start = len(draft.nodes)
    end = start + max(rng.randint(1, operators) for _ in range(2))
    while len(draft.nodes) < end:
        draw = rng.choices(list(KINDS), list(KINDS.values()))[0]
        draft.nodes += draw(draft, end - len(draft.nodes))
    outputs = [place for place in draft.unread() if place >= start]
    outputs += rng.sample(range(start, end), rng.random() < 0.15)
    return _pruned(rng, draft.nodes, list(dict.fromkeys(outputs)), _epochs(draft, epochs))


def _add_sources(draft: Draft) -> None:
    rng = draft.rng
    alike = rng.random() < 0.4
    columns: list[str] = []
    for place in range(rng.choices([1, 2, 3], [2, 5, 3])[0]):
        if not (alike and columns):
            columns = ["k", "n", *sorted(rng.sample(["i", "g", "d", "m", "s"], rng.randint(1, 3)))]
        time = "moment" if place == 1 and not alike and rng.random() < 0.3 else "time"
        found = (Column(time, "timestamp"), *(Column(each, tuples.VALUES[each][0]) for each in columns))
        delay = rng.choice([0, 1, 2, 4, 12]) * draft.clock.unit
        draft.nodes.append(Node(Source(f"s{place}", delay), (), found, time))


def _epochs(draft: Draft, most: int) -> dict[str, list[list[dict]]]:
    rng = draft.rng
    sources = [node for node in draft.nodes if isinstance(node.operator, Source)]
    count = max(rng.randint(1, most), rng.randint(1, most))
    drawn = tuples.slots(rng, draft.clock, [rng.choice([4, 12, 25, 40]) for _ in sources])
    return {
        node.operator.name: tuples.epochs(
            rng, tuples.rows(rng, draft.clock, node.time, node.columns, slots), count
        )
        for node, slots in zip(sources, drawn, strict=True)
    }


def _pruned(rng: Random, nodes: list[Node], outputs: list[int], epochs: dict[str, list[list[dict]]]) -> Graph:
    """Without the streams that nothing reads; channels and strategy drawn."""
    needed: set[int] = set()

    def visit(place: int) -> None:
        needed.add(place)
        for each in nodes[place].inputs:
            visit(each)

    for each in outputs:
        visit(each)
    new = {old: place for place, old in enumerate(sorted(needed))}
    kept = tuple(
        dataclasses.replace(nodes[old], inputs=tuple(new[each] for each in nodes[old].inputs)) for old in new
    )
    read = {node.operator.name for node in kept if isinstance(node.operator, Source)}
    return Graph(
        kept,
        tuple(new[each] for each in outputs),
        {name: given for name, given in epochs.items() if name in read},
        rng.randint(1, 7),
        rng.choice(["subquery", "subquery", "operator", "query"]),
    )
