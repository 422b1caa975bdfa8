"""A graph as Penstock's relations, and a run of it."""

import datetime as dt
import tempfile
import zlib
from dataclasses import dataclass

import penstock as ps
from graphs.graph import (
    Branch,
    Counted,
    Graph,
    Grouping,
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
)
from penstock.expressions.types import from_arrow
from penstock.query import Relation

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICRO = dt.timedelta(microseconds=1)
FUNCTIONS = {"count": ps.count, "sum": ps.sum, "min": ps.min, "max": ps.max, "avg": ps.avg}


@dataclass(frozen=True)
class Outcome:
    """The rows of every output, and how many tuples were set aside."""

    rows: list[list[tuple]]
    late: int
    rejected: int


def run(graph: Graph, **options) -> Outcome:
    """Run a graph on Spark until its sources end."""
    outputs = relations(graph)
    sinks = [ps.memory() for _ in outputs]
    with tempfile.TemporaryDirectory() as folder:
        # A run shares its channels out to its stages; the graph says how many each has about.
        stages = sum(node.stateful for node in graph.nodes)
        settings = {"channels": graph.channels * max(1, stages), "strategy": graph.strategy, **options}
        started = ps.outputs(*outputs).start(*sinks, checkpoint=folder, **settings)
        started.wait()
        counts = started.counts
    found = [
        rows_of(sink.table(), graph.nodes[place]) for sink, place in zip(sinks, graph.outputs, strict=True)
    ]
    return Outcome(found, counts.late, counts.rejected)


def rows_of(table, node: Node) -> list[tuple]:
    """The delivered rows, times in microseconds."""
    if not table.num_rows:
        return []
    delivered = {each.name: from_arrow(each.type) for each in table.schema}
    assert list(delivered.items()) == [(each.name, each.type) for each in node.columns]
    rows = [tuple(_plain(value) for value in row.values()) for row in table.to_pylist()]
    return settled(rows, 2 + len(node.operator.keys)) if node.revising else rows


def settled(rows: list[tuple], group: int) -> list[tuple]:
    """What changes leave, as rows that were inserted; so many columns after the change tell groups apart."""
    found: dict[tuple, tuple] = {}
    for change, *row in rows:
        key, values = tuple(row[:group]), tuple(row[group:])
        assert (key in found) == (change == "retract"), (change, row)
        if change == "retract":
            del found[key]
        else:
            found[key] = values
    return [("insert", *key, *values) for key, values in found.items()]


def _plain(value):
    return round((value - EPOCH) / MICRO) if isinstance(value, dt.datetime) else value


def relations(graph: Graph) -> list[Relation]:
    """The delivered relations."""
    made: list[Relation] = []
    for node in graph.nodes:
        inputs = [made[each] for each in node.inputs]
        found = _stream(graph, node) if isinstance(node.operator, Source) else _derived(node, inputs)
        assert found.schema.names == node.names, (found, node)
        declared = zip(found.schema.columns, node.columns, strict=True)
        assert not [pair for pair in declared if pair[0].type not in {None, pair[1].type}], (found, node)
        made.append(found)
    return [made[place] for place in graph.outputs]


def _stream(graph: Graph, node: Node) -> Relation:
    source = node.operator
    batches = [
        [
            {**row, node.time: None if row[node.time] is None else EPOCH + row[node.time] * MICRO}
            for row in epoch
        ]
        for epoch in graph.epochs[source.name]
    ]
    schema = ", ".join(f"{each.name} {each.type}" for each in node.columns)
    return ps.stream(source.name, schema, time=node.time, delay=source.delay * MICRO, source=ps.rows(batches))


def _derived(node: Node, inputs: list[Relation]) -> Relation:
    return METHODS[type(node.operator)](node.operator, *inputs)


def _mapped(operator: Mapped, given: Relation) -> Relation:
    schema = ", ".join(f"{name} {type_}" for name, type_ in operator.function.made)
    # Any of the four ways to run it, the same for the same function; none may make a difference.
    way = zlib.crc32(repr(operator.function).encode()) % 4
    by = {"by": given.schema.names[0]} if way & 1 else {}
    return given.map(operator.function, schema, channels=bool(way & 2), **by)


def _joined(operator: Joined, left: Relation, right: Relation) -> Relation:
    bound = {"last": operator.last}
    if operator.size is not None:
        bound = {"window": ps.window(operator.size * MICRO)}
    elif operator.keep is not None:
        bound = {"keep": tuple(each * MICRO for each in operator.keep)}
    elif operator.within is not None:
        bound = {"within": operator.within * MICRO}
    options = {"how": operator.how, "condition": operator.condition, "suffixes": operator.suffixes, **bound}
    options["time"] = operator.time
    return left.join(right, dict(operator.keys), **options) if operator.keys else left.cross(right, **options)


def _grouped(operator: Grouping, given: Relation) -> Relation:
    grouped = given
    if operator.keys:
        taken = [name for name, sql in operator.keys if name == sql]
        grouped = given.group_by(*taken, **{name: sql for name, sql in operator.keys if name != sql})
    aggregates = {
        name: FUNCTIONS[function](*([column] if column else []))
        for name, function, column in operator.aggregates
    }
    return WINDOWS[type(operator)](operator, grouped).agg(**aggregates)


def _windows(operator: Windowed, grouped):
    rules = {"late": operator.late}
    rules |= {"lateness": operator.lateness * MICRO} if operator.lateness else {}
    rules |= {} if operator.early is None else {"early": operator.early * MICRO}
    made = [_shape(each) for each in operator.shapes]
    return grouped.windows(*made, **rules)


def _shape(shape: Sliding | Growing):
    if isinstance(shape, Growing):
        return ps.cumulate(*(each * MICRO for each in (shape.size, shape.step, shape.offset)))
    return ps.window(*(each * MICRO for each in (shape.size, shape.slide, shape.offset)))


WINDOWS = {
    Windowed: _windows,
    Sessioned: lambda operator, grouped: grouped.session(operator.gap * MICRO, late=operator.late),
    Counted: lambda operator, grouped: grouped.window(operator.size, slide=operator.slide, rows=True),
}

METHODS = {
    Where: lambda operator, given: given.where(operator.condition),
    Branch: lambda operator, given: given.split(*operator.conditions)[operator.place],
    Select: lambda operator, given: given.select(*operator.names, **dict(operator.made)),
    Mapped: _mapped,
    Union: lambda _operator, given, *others: given.union(*others),
    Windowed: _grouped,
    Sessioned: _grouped,
    Counted: _grouped,
    Joined: _joined,
}
