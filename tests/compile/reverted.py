"""Relations as a graph that the batch oracle evaluates: a query can be compared with its rewriting."""

from graphs.graph import (
    Branch,
    Column,
    Graph,
    Joined,
    Mapped,
    Node,
    Select,
    Source,
    Union,
    Where,
    Windowed,
    sides,
)
from penstock import query as ps
from penstock.operators import ChannelledMap

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


def _node(operator, inputs, relation, extra=()):
    columns = tuple(Column(each.name, each.type) for each in relation.schema.columns)
    return Node(operator, inputs, columns + extra, relation.time, relation.pinned)


def _source(stream):
    return Source(stream.name, stream.delay)


def _operator(operator):
    return OPERATORS[type(operator)](operator)


def _windowed(operator):
    (window,) = operator.windows
    aggregates = tuple(
        (each.name, each.definition.name, each.arguments[0].sql if each.arguments else None)
        for each in operator.aggregates
    )
    keys = tuple((name, each.sql) for name, each in operator.keys)
    return Windowed(keys, window.size, window.slide, window.offset, aggregates)


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
    ps.Join: _joined,
}
