"""The batch oracle: a graph over whole tables, relation by relation, in DuckDB.

Written apart from Penstock on purpose. Each relation is a table with its event time in `_t`, a bigint of
microseconds; columns of timestamps are held in the same way.
"""

import functools

import duckdb
import pyarrow as pa

from graphs.graph import Branch, Graph, Joined, Mapped, Node, Select, Source, Union, Where, Windowed, sides
from penstock.expressions.types import arrow_type

MACROS = """
CREATE MACRO floor_div(a, b) AS ((a - ((a % b) + b) % b) // b);
CREATE MACRO ceil_div(a, b) AS (-floor_div(-a, b));
"""


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all graphs, since opening one costs as much as evaluating a graph."""
    return duckdb.connect(config={"threads": 1}).execute(MACROS)


def evaluate(graph: Graph, accepted: dict[str, list[dict]], *, every: bool = False) -> list[list[tuple]]:
    """The rows of every output, or of every node, in no particular order."""
    connection = _connection().begin()
    try:
        for place, node in enumerate(graph.nodes):
            if isinstance(node.operator, Source):
                connection.register("given", _table(node, accepted[node.operator.name]))
                connection.execute(f"CREATE TABLE n{place} AS SELECT {node.time} AS _t, * FROM given")
                connection.unregister("given")
            else:
                connection.execute(f"CREATE TABLE n{place} AS {statement(graph, place)}")
        return [
            connection.sql(f"SELECT {', '.join(graph.nodes[place].names)} FROM n{place}").fetchall()
            for place in (range(len(graph.nodes)) if every else graph.outputs)
        ]
    finally:
        connection.rollback()


def _table(node: Node, rows: list[dict]) -> pa.Table:
    kinds = {
        each.name: pa.int64() if each.type == "timestamp" else arrow_type(each.type) for each in node.columns
    }
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def statement(graph: Graph, place: int) -> str:
    """The SELECT of one relation over the tables of its inputs."""
    return STATEMENTS[type(graph.nodes[place].operator)](graph, graph.nodes[place])


def _where(_graph: Graph, node: Node) -> str:
    return f"SELECT * FROM n{node.inputs[0]} WHERE {node.operator.condition}"


def _branch(_graph: Graph, node: Node) -> str:
    conditions = node.operator.conditions
    cases = " ".join(f"WHEN {each} THEN {i}" for i, each in enumerate(conditions))
    chosen = f"CASE {cases} ELSE {len(conditions)} END = {node.operator.place}"
    return f"SELECT * FROM n{node.inputs[0]} WHERE {chosen}"


def _projection(_graph: Graph, node: Node) -> str:
    operator = node.operator
    made = operator.function.sql if isinstance(operator, Mapped) else dict(operator.made)
    columns = [f"{made.get(name, name)} AS {name}" for name in node.names]
    return f"SELECT _t, {', '.join(columns)} FROM n{node.inputs[0]}"


def _union(_graph: Graph, node: Node) -> str:
    return " UNION ALL BY NAME ".join(f"SELECT * FROM n{each}" for each in node.inputs)


AGGREGATES = {
    "count": "count({})",
    "sum": "sum({})",
    "min": "min({})",
    "max": "max({})",
    "avg": "CAST(sum({0}) AS DOUBLE) / count({0})",
}


def _windows(_graph: Graph, node: Node) -> str:
    """Every tuple is copied into each of its windows."""
    operator, table = node.operator, f"n{node.inputs[0]}"
    first = f"ceil_div(_t - {operator.offset} - {operator.size} + 1, {operator.slide})"
    last = f"floor_div(_t - {operator.offset}, {operator.slide})"
    start = f"unnest(generate_series({first}, {last})) * {operator.slide} + {operator.offset}"
    keys = [f"{sql} AS _k{i}" for i, (_, sql) in enumerate(operator.keys)]
    named = [f"_k{i} AS {name}" for i, (name, _) in enumerate(operator.keys)]
    aggregates = [
        f"{AGGREGATES[function].format(column or '*')} AS {name}"
        for name, function, column in operator.aggregates
    ]
    # Keys are made apart from the copies, for a key may have the name of a column.
    copies = f"SELECT *, {', '.join([f'{start} AS _start', *keys])} FROM {table}"
    chosen = ["_start AS _t", "_start AS window_start", f"_start + {operator.size} AS window_end"]
    groups = ["_start", *(f"_k{i}" for i in range(len(keys)))]
    return f"SELECT {', '.join([*chosen, *named, *aggregates])} FROM ({copies}) GROUP BY {', '.join(groups)}"


def _join(graph: Graph, node: Node) -> str:
    """Pairs, then what has no partner; null is not equal to null, and a null condition is not true."""
    operator = node.operator
    left, right = node.inputs
    one, other = sides(graph.nodes, left, right, operator)
    columns = [f"timed._t AS {node.time}"]
    columns += [f"coalesce(l.{ours}, r.{theirs}) AS {ours}" for ours, theirs in operator.keys]
    columns += [f"l.{stored} AS {name}" for stored, name in one]
    columns += [f"r.{stored} AS {name}" for stored, name in other]
    found = ["SELECT a, b FROM pairs"]
    if operator.how in {"left", "full"}:
        found.append("SELECT _id, NULL FROM l WHERE _id NOT IN (SELECT a FROM pairs)")
    if operator.how in {"right", "full"}:
        found.append("SELECT NULL, _id FROM r WHERE _id NOT IN (SELECT b FROM pairs)")
    time = "least" if operator.last is None else "greatest"
    return f"""
    WITH l AS MATERIALIZED (SELECT *, row_number() OVER () AS _id FROM n{left}),
         r AS MATERIALIZED (SELECT *, row_number() OVER () AS _id FROM n{right}),
         pairs AS MATERIALIZED ({_within(operator) if operator.last is None else _last(operator)}),
         found AS ({" UNION ALL ".join(found)}),
         timed AS (SELECT a, b, {time}(l._t, r._t) AS _t
                   FROM found LEFT JOIN l ON l._id = a LEFT JOIN r ON r._id = b)
    SELECT timed._t, {", ".join(columns)}
    FROM timed LEFT JOIN l ON l._id = a LEFT JOIN r ON r._id = b"""


def _keys_and(operator: Joined, *conditions: str) -> str:
    return " AND ".join([*(f"l.{one} = r.{other}" for one, other in operator.keys), *conditions])


def _within(operator: Joined) -> str:
    near = f"abs(l._t - r._t) <= {operator.within}"
    on = _keys_and(operator, near, f"({operator.condition or 'true'})")
    return f"SELECT l._id AS a, r._id AS b FROM l JOIN r ON {on}"


def _last(operator: Joined) -> str:
    """Each row with the last rows of the other side before it; at equal times left goes before right."""
    preceding = f"""
    SELECT l._id AS a, r._id AS b FROM l JOIN r ON {_keys_and(operator, "r._t < l._t")}
    QUALIFY row_number() OVER (PARTITION BY l._id ORDER BY r._t DESC) <= {operator.last}
    UNION ALL
    SELECT l._id AS a, r._id AS b FROM l JOIN r ON {_keys_and(operator, "l._t <= r._t")}
    QUALIFY row_number() OVER (PARTITION BY r._id ORDER BY l._t DESC) <= {operator.last}"""
    condition = operator.condition or "true"
    return f"SELECT a, b FROM ({preceding}) JOIN l ON l._id = a JOIN r ON r._id = b WHERE {condition}"


STATEMENTS = {
    Where: _where,
    Branch: _branch,
    Select: _projection,
    Mapped: _projection,
    Union: _union,
    Windowed: _windows,
    Joined: _join,
}
