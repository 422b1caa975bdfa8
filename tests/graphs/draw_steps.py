"""Random stateless operators; each function gives the nodes to add, none where nothing fits."""

import dataclasses

from graphs import expressions
from graphs.draft import Draft
from graphs.graph import Branch, Column, Mapped, Node, Select, Union, Where, mapped, selected
from graphs.maps import Measured, Scaled


def where(draft: Draft, _left: int) -> list[Node]:
    place = draft.pick()
    return [_like(draft, place, Where(expressions.condition(draft.rng, draft.nodes[place].columns)))]


def split(draft: Draft, left: int) -> list[Node]:
    place = draft.pick()
    count = draft.rng.randint(1, 2)
    conditions = tuple(expressions.condition(draft.rng, draft.nodes[place].columns) for _ in range(count))
    places = draft.rng.sample(range(count + 1), min(left, draft.rng.randint(1, count + 1)))
    return [_like(draft, place, Branch(conditions, each)) for each in sorted(places)]


def select(draft: Draft, _left: int) -> list[Node]:
    place = draft.pick()
    node = draft.nodes[place]
    names = [name for name in node.names if draft.rng.random() < 0.7]
    found = [
        expressions.expression(draft.rng, node.columns, draft.name()) for _ in range(draft.rng.randint(1, 2))
    ]
    made = tuple((column.name, sql) for sql, column in found)
    operator = Select(tuple(names), made)
    return [selected(draft.nodes, place, operator, {column.name: column for _, column in found})]


def map_(draft: Draft, _left: int) -> list[Node]:
    place = draft.pick()
    exact = [each for each in draft.nodes[place].columns if each.exact and each.plain]
    texts = [each for each in exact if each.type == "string"]
    whole = [each for each in exact if each.type in expressions.WHOLE]
    if texts and draft.rng.random() < 0.4:
        return [
            mapped(
                draft.nodes,
                place,
                Mapped(Measured(draft.rng.choice(texts).name, draft.name(), draft.name())),
            )
        ]
    if not whole:
        return []
    others = [each for each in exact if each.type != "timestamp"]
    taken = tuple((each.name, draft.name(), each.type) for each in others if draft.rng.random() < 0.6)
    return [mapped(draft.nodes, place, Mapped(Scaled(draft.rng.choice(whole).name, draft.name(), taken)))]


def union(draft: Draft, left: int) -> list[Node]:
    one, other = draft.pick(), draft.pick()
    if draft.nodes[one].time != draft.nodes[other].time:
        return []
    if {(each.name, each.type) for each in draft.nodes[one].columns} == {
        (each.name, each.type) for each in draft.nodes[other].columns
    }:
        first = draft.nodes[one]
        columns = tuple(_both(each, draft.nodes[other].column(each.name)) for each in first.columns)
        return [Node(Union(), (one, other), columns, first.time, first.pinned)]
    return _conformed(draft, one, other) if left >= 3 else []


def _conformed(draft: Draft, one: int, other: int) -> list[Node]:
    """Both with the same columns by select(), then united."""
    pinned = tuple(dict.fromkeys((*draft.nodes[one].pinned, *draft.nodes[other].pinned)))
    pairs = []
    for column in draft.nodes[one].columns:
        fitting = [each for each in draft.nodes[other].columns if each.type == column.type]
        if fitting and column.type != "timestamp":
            pairs.append((column, draft.rng.choice(fitting), draft.name()))
    if not pairs or any(name not in draft.nodes[each].names for name in pinned for each in (one, other)):
        return []
    made = []
    for place, side in ((one, 0), (other, 1)):
        operator = Select(pinned, tuple((pair[2], pair[side].name) for pair in pairs))
        types = {pair[2]: dataclasses.replace(_both(*pair[:2]), name=pair[2]) for pair in pairs}
        made.append(selected(draft.nodes, place, operator, types))
    last = len(draft.nodes)
    return [*made, Node(Union(), (last, last + 1), made[0].columns, made[0].time, made[0].pinned)]


def _both(one: Column, other: Column) -> Column:
    return dataclasses.replace(one, exact=one.exact and other.exact, plain=one.plain and other.plain)


def _like(draft: Draft, place: int, operator: Where | Branch) -> Node:
    return dataclasses.replace(draft.nodes[place], operator=operator, inputs=(place,))
