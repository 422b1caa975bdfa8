"""Relations as a graph that the batch oracle evaluates: a query can be compared with its rewriting."""

from dataclasses import replace

from graphs.accepted import judge
from graphs.batch import late_for_sessions
from graphs.build import relations
from graphs.graph import (
    Branch,
    Column,
    Counted,
    Graph,
    Growing,
    Joined,
    Mapped,
    Node,
    Select,
    Sessioned,
    Sliding,
    Source,
    Union,
    Where,
    Windowed,
    sides,
)
from penstock import query as ps
from penstock.compile import optimise
from penstock.operators import ChannelledMap, CountWindows, Sessions
from penstock.operators.windows import Window

SUFFIXES = ("__l", "__r")


def reverted(query):
    """The graph of a query; names are plain, expressions as Penstock has them."""
    nodes, places = [], {}
    for relation in query.relations:
        inputs = tuple(places[each] for each in relation.inputs)
        made = _source(relation) if isinstance(relation, ps.Stream) else _operator(relation.operator)
        nodes.append(_node(made, inputs, relation))
        if isinstance(made, Joined):
            nodes[-1] = _node(made, inputs, relation, extra=_extra(nodes, inputs, made))
            nodes.append(_node(_renamed(nodes, inputs, made, relation), (len(nodes) - 1,), relation))
        places[relation] = len(nodes) - 1
    return Graph(tuple(nodes), tuple(places[each] for each in query.outputs), {}, 1)


def judged_late(graph):
    """How many tuples a run counts as late for sessions alone: behind conditions that moved below them."""
    rewritten = optimise(ps.outputs(*relations(graph))).query
    return late_for_sessions(replace(reverted(rewritten), epochs=graph.epochs), judge(graph).accepted)


def _node(operator, inputs, relation, extra=()):
    columns = tuple(Column(each.name, each.type) for each in relation.schema.columns)
    return Node(operator, inputs, columns + extra, relation.time, relation.pinned)


def _source(stream):
    return Source(stream.name, stream.delay)


def _operator(operator):
    return OPERATORS[type(operator)](operator)


def _groups(operator):
    aggregates = tuple(
        (each.name, each.definition.name, each.arguments[0].sql if each.arguments else None)
        for each in operator.aggregates
    )
    return tuple((name, each.sql) for name, each in operator.keys), aggregates


def _windowed(operator):
    keys, aggregates = _groups(operator)
    shapes = tuple(
        Sliding(each.size, each.slide, each.offset)
        if isinstance(each, Window)
        else Growing(each.size, each.step, each.offset)
        for each in operator.windows
    )
    return Windowed(keys, shapes, aggregates, operator.late, operator.lateness, operator.early)


def _sessioned(operator):
    keys, aggregates = _groups(operator)
    return Sessioned(keys, operator.gap, aggregates, operator.late)


def _counted(operator):
    keys, aggregates = _groups(operator)
    return Counted(keys, operator.window.size, operator.window.slide, aggregates)


def _joined(operator):
    keys = tuple((key.left, key.right) for key in operator.keys)
    condition = operator.condition.sql if operator.condition else None
    size = operator.window.size if operator.window else None
    bound = (operator.within, operator.last)
    return Joined(keys, *bound, operator.how, condition, SUFFIXES, size, operator.keep, operator.times)


def _extra(nodes, inputs, made):
    return tuple(Column(name, "") for names in sides(nodes, *inputs, made) for _, name in names)


def _renamed(nodes, inputs, made, relation):
    """The columns that the join gives, from those that the oracle makes under names of its own."""
    given = [dict(names) for names in sides(nodes, *inputs, made)]
    join = relation.operator
    named = [(name, given[0][stored]) for stored, name in join.left]
    named += [(name, given[1][stored]) for stored, name in join.right]
    return Select((), tuple(named))


OPERATORS = {
    ps.Where: lambda each: Where(each.expression.sql),
    ps.Branch: lambda each: Branch(tuple(one.sql for one in each.conditions), each.place),
    ps.Select: lambda each: Select((), tuple((name, one.sql) for name, one in each.columns)),
    ps.Map: lambda each: Mapped(each.function),
    ChannelledMap: lambda each: Mapped(each.step.function),
    ps.Union: lambda _each: Union(),
    ps.Aggregation: _windowed,
    Sessions: _sessioned,
    CountWindows: _counted,
    ps.Join: _joined,
}
