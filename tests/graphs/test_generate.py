"""The generator draws what it says: every kind of operator, and the same graph for the same seed."""

from collections import Counter

from graphs.accepted import judge
from graphs.build import relations
from graphs.generate import generate, sketched
from graphs.graph import Branch, Counted, Joined, Select, Sessioned, Sliding, Where, Windowed
from penstock.functions import Uncertified, translated


def kinds(graph):
    for node in graph.nodes:
        operator = node.operator
        if isinstance(operator, Joined):
            bound = "last" if operator.last else "within" if operator.keys else "cross"
            yield f"{bound} {operator.how}"
            yield f"{len(operator.keys)} keys"
            yield from ["condition"] if operator.condition else []
            yield from ["self-join"] if len(set(node.inputs)) == 1 else []
        elif isinstance(operator, Windowed):
            yield from ["several"] if len(operator.shapes) > 1 else []
            for each in operator.shapes:
                sliding = isinstance(each, Sliding)
                yield "growing" if not sliding else "tumbling" if each.size == each.slide else "sliding"
            yield from ["drop"] if operator.late == "drop" else []
            yield from ["corrected"] if operator.lateness else []
            yield from [] if operator.early is None else ["early"]
            yield from [function for _, function, _ in operator.aggregates]
        yield type(operator).__name__
    yield f"{len(graph.outputs)} outputs"
    yield f"{sum(node.stateful for node in graph.nodes)} stages"
    yield f"{graph.channels} channels"
    yield from ["late"] if judge(graph).late else []


def expressions(operator):
    """Every expression over one tuple that is more than a column."""
    match operator:
        case Where():
            return [operator.condition]
        case Branch():
            return operator.conditions
        case Select():
            return [sql for _, sql in operator.made]
        case Windowed() | Sessioned() | Counted():
            return [sql for _, sql in operator.keys] + [sql for _, _, sql in operator.aggregates if sql]
    return []


def places(graph):
    """Where expressions stand, and whether a channel can evaluate them."""
    for node in graph.nodes:
        for sql in expressions(node.operator):
            given = graph.nodes[node.inputs[0]]
            if sql in given.names:
                continue
            try:
                translated(sql, {each.name: each.type for each in given.columns})
                engine = "certified"
            except Uncertified:
                engine = "Spark"
            behind = any(graph.nodes[each].stateful for each in graph.origins(node.inputs[0]))
            yield f"{type(node.operator).__name__} {engine} {'behind' if behind else 'before'} a stage"


def test_a_seed_gives_the_same_graph(spark):
    assert generate(7) == generate(7)
    assert sketched(7) == sketched(7)


def test_relations_have_the_columns_that_the_graph_says():
    assert all(relations(sketched(seed)) for seed in range(60))


def test_all_kinds_are_drawn():
    seen = Counter(kind for seed in range(160) for kind in set(kinds(sketched(seed))))
    joins = [f"{bound} {how}" for bound in ("last", "within") for how in ("inner", "left", "right", "full")]
    wanted = [*joins, "cross inner", "1 keys", "2 keys", "condition", "self-join", "tumbling", "sliding"]
    wanted += ["count", "sum", "min", "max", "avg", "Where", "Select", "Mapped", "Branch", "Union", "late"]
    wanted += ["1 outputs", "2 outputs", "1 stages", "3 stages", "1 channels", "7 channels"]
    wanted += ["Sessioned", "Counted", "several", "growing", "drop", "corrected", "early"]
    assert not [kind for kind in wanted if seen[kind] < 2]


def test_expressions_of_both_engines_are_drawn_in_every_place():
    seen = Counter(place for seed in range(600) for place in set(places(sketched(seed))))
    wanted = [
        f"{operator} {engine} {side} a stage"
        for operator in ("Where", "Branch", "Select", "Windowed")
        for engine in ("certified", "Spark")
        for side in ("before", "behind")
    ]
    assert not [place for place in wanted if seen[place] < 4], seen
