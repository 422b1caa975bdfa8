"""The batch oracle: a graph over whole tables. Spark evaluates expressions, DuckDB windows and joins.

Written apart from Penstock on purpose. Steps without state are one query of Spark from one stateful relation
to the next. What the two engines pass on has the event time in `_t`, a bigint of microseconds, and in `_e`
the epoch in which a tuple of a stream came, null if it comes from elsewhere: it may be late for some windows.
Columns of timestamps are passed as the time is, and are timestamps inside of Spark.
"""

import dataclasses
import functools
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame

from graphs.accepted import frontiers
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
    mean_type,
    sides,
    sum_type,
)
from penstock.expressions.types import arrow_type
from sessions import quick_session

MACROS = """
CREATE MACRO floor_div(a, b) AS ((a - ((a % b) + b) % b) // b);
CREATE MACRO ceil_div(a, b) AS (-floor_div(-a, b));
"""


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all graphs, since opening one costs as much as evaluating a graph."""
    return duckdb.connect(config={"threads": 1}).execute(MACROS)


def evaluate(graph: Graph, accepted: dict[str, list[dict]]) -> list[list[tuple]]:
    """The rows of every output, in no particular order."""
    batch = _batch(graph, accepted)
    found = []
    for place in graph.outputs:
        table = batch.rows(place).table.select(list(graph.nodes[place].names))
        found.append([tuple(row.values()) for row in table.to_pylist()])
    return found


def late_for_sessions(graph: Graph, accepted: dict[str, list[dict]]) -> int:
    """How many tuples came too late for sessions alone, which judge by what is open for a key."""
    batch = _batch(graph, accepted)
    places = [place for place, node in enumerate(graph.nodes) if isinstance(node.operator, Sessioned)]
    return sum(batch.rows(place).late for place in places)


def largest(graph: Graph, accepted: dict[str, list[dict]]) -> int:
    """The size of the largest stream or stateful relation."""
    batch = _batch(graph, accepted)
    return max(
        batch.rows(place).table.num_rows
        for place, node in enumerate(graph.nodes)
        if node.stateful or not node.inputs
    )


@dataclass(frozen=True)
class Rows:
    """Rows between the engines, the types that the columns have in Spark, and how many came too late."""

    table: pa.Table
    types: dict[str, str]
    late: int = 0


class Batch:
    """A graph over its accepted tuples; a relation is evaluated when it is asked for, and once."""

    def __init__(self, graph: Graph, accepted: dict[str, list[dict]]) -> None:
        self.graph, self.accepted, self.context = graph, accepted, quick_session().sparkContext
        self.frontiers = frontiers(graph)
        self._frames: dict[int, DataFrame] = {}
        self._rows: dict[int, Rows] = {}

    def take_over(self, other: "Batch") -> None:
        """Take what another graph over the same tuples has evaluated of nodes that both have."""
        if self.context is not other.context or self.accepted != other.accepted:
            return
        same: dict[int, int] = {}
        for ours, node in enumerate(self.graph.nodes):
            for theirs, candidate in enumerate(other.graph.nodes):
                inputs = tuple(same.get(each, -1) for each in node.inputs)
                if dataclasses.replace(node, inputs=inputs) == candidate:
                    same[ours] = theirs
        for ours, theirs in same.items():
            for taken, given in ((self._frames, other._frames), (self._rows, other._rows)):
                if theirs in given:
                    taken[ours] = given[theirs]

    def frame(self, place: int) -> DataFrame:
        """A relation in Spark."""
        if place not in self._frames:
            node = self.graph.nodes[place]
            if node.stateful or not node.inputs:
                self._frames[place] = _frame(self.rows(place))
            else:
                inputs = [self.frame(each) for each in node.inputs]
                self._frames[place] = STEPS[type(node.operator)](node, *inputs)
        return self._frames[place]

    def made(self, place: int, columns: dict[str, str]) -> Rows:
        """The times of a relation, and columns of expressions over it."""
        node = self.graph.nodes[place]
        if (node.stateful or not node.inputs) and {*columns.values()} <= {*node.names}:
            given = self.rows(place)
            taken = {"_t": "_t", "_e": "_e", **columns}
            types = {name: given.types[each] for name, each in taken.items()}
            return Rows(pa.table({name: given.table[each] for name, each in taken.items()}), types)
        return _collected(
            self.frame(place).selectExpr("_t", "_e", *(f"{sql} AS {name}" for name, sql in columns.items()))
        )

    def rows(self, place: int) -> Rows:
        """A relation between the engines."""
        if place not in self._rows:
            node = self.graph.nodes[place]
            match node.operator:
                case Source():
                    found = _given(node, self.accepted[node.operator.name])
                case Windowed() | Sessioned() | Counted():
                    made = self.made(node.inputs[0], _made(node.operator))
                    found = GROUPED[type(node.operator)](node.operator, made, self.frontiers.get(place, []))
                case Joined():
                    found = _join(self.graph, node, *(self.rows(each) for each in node.inputs))
                case _:
                    found = _collected(self.frame(place))
            wrong = [each for each in node.columns if each.type != found.types.get(each.name, each.type)]
            assert not any(each.type for each in wrong), (wrong, found.types)
            self._rows[place] = found
        return self._rows[place]


_recent: list[Batch] = []


def _batch(graph: Graph, accepted: dict[str, list[dict]]) -> Batch:
    """Graphs come one after the other with much in common; what the last one has is not evaluated again."""
    found = Batch(graph, accepted)
    if _recent:
        found.take_over(_recent.pop())
    _recent.append(found)
    return found


def _arrow(type_: str) -> pa.DataType:
    return pa.int64() if type_ == "timestamp" else arrow_type(type_)


def _given(node: Node, rows: list[dict]) -> Rows:
    types = {**{each.name: each.type for each in node.columns}, "_e": "bigint"}
    table = pa.Table.from_pylist(rows, schema=pa.schema({name: _arrow(kind) for name, kind in types.items()}))
    return Rows(table.append_column("_t", table[node.time]), {**types, "_t": "bigint"})


def _frame(rows: Rows) -> DataFrame:
    texts = [
        f"timestamp_micros({name}) AS {name}" if rows.types[name] == "timestamp" else name
        for name in rows.table.column_names
    ]
    return quick_session().createDataFrame(rows.table).selectExpr(*texts)


def _collected(frame: DataFrame) -> Rows:
    types = {each.name: each.dataType.simpleString() for each in frame.schema}
    texts = [
        f"unix_micros({name}) AS {name}" if kind == "timestamp" else name for name, kind in types.items()
    ]
    # Without a job, unlike toArrow(): Spark evaluates a query over local rows while it plans.
    found = frame.selectExpr(*texts).collect()
    columns = zip(*found, strict=True) if found else [()] * len(types)
    arrays = [pa.array(values, _arrow(kind)) for values, kind in zip(columns, types.values(), strict=True)]
    return Rows(pa.Table.from_arrays(arrays, names=list(types)), types)


def _branch(node: Node, given: DataFrame) -> DataFrame:
    conditions = node.operator.conditions
    cases = " ".join(f"WHEN {each} THEN {i}" for i, each in enumerate(conditions))
    return given.where(f"CASE {cases} ELSE {len(conditions)} END = {node.operator.place}")


def _projection(node: Node, given: DataFrame) -> DataFrame:
    operator = node.operator
    made = operator.function.sql if isinstance(operator, Mapped) else dict(operator.made)
    return given.selectExpr("_t", "_e", *(f"{made.get(name, name)} AS {name}" for name in node.names))


STEPS = {
    Where: lambda node, given: given.where(node.operator.condition),
    Branch: _branch,
    Select: _projection,
    Mapped: _projection,
    # A rewriting may leave an input with columns that nothing behind the union reads.
    Union: lambda _node, given, *others: functools.reduce(
        DataFrame.unionByName, (each.select(given.columns) for each in others), given
    ),
}


def _duck(sql: str, types: dict[str, str], **tables: pa.Table) -> Rows:
    """What DuckDB gives over tables, as columns of these types."""
    connection = _connection()
    for name, table in tables.items():
        connection.register(name, table)
    try:
        found = connection.sql(sql).to_arrow_table()
    finally:
        for name in tables:
            connection.unregister(name)
    return Rows(found.cast(pa.schema({name: _arrow(types[name]) for name in found.column_names})), types)


AGGREGATES = {
    "count": "count({})",
    "sum": "sum({})",
    "min": "min({})",
    "max": "max({})",
    "avg": "CAST(sum({0}) AS DOUBLE) / count({0})",
}


def _made(operator: Grouping) -> dict[str, str]:
    """Keys and arguments under names of their own, for a key may have the name of a column."""
    keys = {f"_k{i}": sql for i, (_, sql) in enumerate(operator.keys)}
    return keys | {f"_a{i}": sql for i, (_, _, sql) in enumerate(operator.aggregates) if sql}


def _windows(operator: Windowed, made: Rows, reached: list[int | None]) -> Rows:
    """Every tuple is copied into each of its windows that was not closed before its epoch."""
    copies = " UNION ALL ".join(f"SELECT *, {_bounds(each)} FROM given" for each in operator.shapes)
    allowed = " ".join(
        f"WHEN {epoch} THEN {time - operator.lateness}"
        for epoch, time in enumerate(reached)
        if time is not None
    )
    if allowed:
        copies = f"SELECT * FROM ({copies}) WHERE coalesce(_end > CASE _e {allowed} END, true)"
    changes = ["'insert' AS change"] if operator.revising else []
    return _grouped(operator, made, copies, ["_start", "_end"], ("_start", "_start", "_end"), changes)


def _bounds(shape: Sliding | Growing) -> str:
    """The windows of a tuple, one row each."""
    if isinstance(shape, Growing):
        start = f"(floor_div(_t - {shape.offset}, {shape.size}) * {shape.size} + {shape.offset})"
        first = f"floor_div(_t - {start}, {shape.step}) + 1"
        series = f"unnest(generate_series({first}, {shape.size // shape.step}))"
        return f"{start} AS _start, {start} + {series} * {shape.step} AS _end"
    first = f"ceil_div(_t - {shape.offset} - {shape.size} + 1, {shape.slide})"
    last = f"floor_div(_t - {shape.offset}, {shape.slide})"
    start = f"unnest(generate_series({first}, {last})) * {shape.slide} + {shape.offset}"
    return f"{start} AS _start, {start} + {shape.size} AS _end"


def _sessions(operator: Sessioned, made: Rows, reached: list[int | None]) -> Rows:
    """Sessions epoch by epoch; what no stream brought is never late, so it may come at once."""
    names = [f"_k{i}" for i in range(len(operator.keys))]
    rows = made.table.select(["_t", "_e", *names]).to_pylist()
    session: list[int | None] = [None] * len(rows)
    bounds: list[tuple[int, int]] = []
    opened: dict[tuple, list[list[int]]] = {}
    late = 0
    for epoch in range(max(1, len(reached))):
        before = reached[epoch] if reached else None
        after = reached[epoch + 1] if epoch + 1 < len(reached) else None
        parts: dict[tuple, list[tuple[list[int], bool]]] = {
            key: [(each, True) for each in held] for key, held in opened.items()
        }
        for place, row in enumerate(rows):
            if (row["_e"] or 0) == epoch:
                parts.setdefault(tuple(row[name] for name in names), []).append(([place], False))
        opened = {}
        for key, given in parts.items():
            for held, known in _merged(given, rows, operator.gap):
                end = max(rows[place]["_t"] for place in held) + operator.gap
                if not known and before is not None and end < before:
                    late += len(held)
                elif epoch + 1 < len(reached) and (after is None or end >= after):
                    opened.setdefault(key, []).append(held)
                else:
                    bounds.append((min(rows[place]["_t"] for place in held), end))
                    for place in held:
                        session[place] = len(bounds) - 1
    table = made.table.append_column("_s", pa.array(session, pa.int64()))
    for name, each in zip(("_start", "_end"), (0, 1), strict=True):
        values = [None if place is None else bounds[place][each] for place in session]
        table = table.append_column(name, pa.array(values, pa.int64()))
    copies = "SELECT * FROM given WHERE _s IS NOT NULL"
    found = _grouped(
        operator, Rows(table, made.types), copies, ["_s", "_start", "_end"], ("_end", "_start", "_end")
    )
    return dataclasses.replace(found, late=late)


def _merged(parts: list[tuple[list[int], bool]], rows: list[dict], gap: int) -> list[tuple[list[int], bool]]:
    """Parts of sessions of a key, put together where they are at most one gap apart."""
    merged: list[tuple[list[int], bool]] = []
    for held, known in sorted(parts, key=lambda each: min(rows[place]["_t"] for place in each[0])):
        first = min(rows[place]["_t"] for place in held)
        if merged and first <= max(rows[place]["_t"] for place in merged[-1][0]) + gap:
            merged[-1] = (merged[-1][0] + held, merged[-1][1] or known)
        else:
            merged.append((held, known))
    return merged


def _counts(operator: Counted, made: Rows, _reached: list[int | None]) -> Rows:
    """Rows of a key numbered by time, then by what the aggregates read; a window after every slide."""
    keys = ", ".join(f"_k{i}" for i in range(len(operator.keys)))
    order = ", ".join(["_t", *(f"{name} NULLS LAST" for name in made.types if name.startswith("_a"))])
    part = f"PARTITION BY {keys}" if keys else ""
    numbered = (
        f"SELECT *, row_number() OVER ({part} ORDER BY {order}) - 1 AS _n, count(*) OVER ({part}) AS _all "
        "FROM given"
    )
    windows = f"generate_series(_n // {operator.slide} + 1, (_n + {operator.size}) // {operator.slide})"
    copies = f"SELECT *, unnest({windows}) * {operator.slide} AS _last FROM ({numbered})"
    copies = f"SELECT * FROM ({copies}) WHERE _last <= _all"
    return _grouped(operator, made, copies, ["_last"], ("max(_t)", "min(_t)", "max(_t)"))


GROUPED = {Windowed: _windows, Sessioned: _sessions, Counted: _counts}


def _grouped(
    operator: Grouping,
    made: Rows,
    copies: str,
    by: list[str],
    times: tuple[str, str, str],
    changes: list[str] | None = None,
) -> Rows:
    """The aggregates of groups; `times` are the time of a result and its bounds."""
    names = ["_t", "window_start", "window_end"]
    types = {"_t": "bigint", "_e": "bigint", "window_start": "timestamp", "window_end": "timestamp"}
    types |= {"change": "string"} if changes else {}
    chosen = [f"{sql} AS {name}" for name, sql in zip(names, times, strict=True)]
    chosen += ["CAST(NULL AS BIGINT) AS _e", *(changes or [])]
    for i, (name, _) in enumerate(operator.keys):
        chosen.append(f"_k{i} AS {name}")
        types[name] = made.types[f"_k{i}"]
    for i, (name, function, sql) in enumerate(operator.aggregates):
        types[name] = _aggregate_type(function, made.types[f"_a{i}"] if sql else "")
        value = AGGREGATES[function].format(f"_a{i}" if sql else "*")
        # Sums are wider in DuckDB.
        kind = types[name].upper()
        chosen.append(f"{value if function in {'min', 'max'} else f'CAST({value} AS {kind})'} AS {name}")
    groups = [*by, *(f"_k{i}" for i in range(len(operator.keys)))]
    return _duck(
        f"SELECT {', '.join(chosen)} FROM ({copies}) GROUP BY {', '.join(groups)}", types, given=made.table
    )


def _aggregate_type(function: str, given: str) -> str:
    if function == "count":
        return "bigint"
    return {"sum": sum_type, "avg": mean_type}.get(function, str)(given)


def _join(graph: Graph, node: Node, left: Rows, right: Rows) -> Rows:
    """Pairs, then what has no partner; null is not equal to null, and a null condition is not true."""
    operator = node.operator
    one, other = (
        each.table.append_column("_id", [list(range(each.table.num_rows))]) for each in (left, right)
    )
    candidates = _near(operator) if operator.last is None else _last(operator)
    pairs = _duck(candidates, {"a": "bigint", "b": "bigint"}, l=one, r=other).table
    if operator.condition is not None:
        pairs = _true(operator.condition, left, right, pairs)
    names = sides(graph.nodes, *node.inputs, operator)
    columns = [f"timed._t AS {node.time}", "CAST(NULL AS BIGINT) AS _e"]
    types = {"_t": "bigint", "_e": "bigint", node.time: "timestamp"}
    if operator.size is not None:
        columns.append(f"timed._t + {operator.size} AS window_end")
        types["window_end"] = "timestamp"
    for ours, theirs in operator.keys:
        columns.append(f"coalesce(l.{ours}, r.{theirs}) AS {ours}")
        wide = "bigint" in {left.types[ours], right.types[theirs]}
        types[ours] = "bigint" if wide else left.types[ours]
    for side, given, taken in zip("lr", (left, right), names, strict=True):
        columns += [f"{side}.{stored} AS {name}" for stored, name in taken]
        types |= {name: given.types[stored] for stored, name in taken}
    found = ["SELECT a, b FROM pairs"] if operator.paired else []
    if operator.how == "semi":
        found.append("SELECT DISTINCT a, CAST(NULL AS BIGINT) AS b FROM pairs")
    if operator.how in {"left", "full"}:
        found.append("SELECT _id, NULL FROM l WHERE _id NOT IN (SELECT a FROM pairs)")
    if operator.how in {"right", "full"}:
        found.append("SELECT NULL, _id FROM r WHERE _id NOT IN (SELECT b FROM pairs)")
    if operator.how == "anti":
        found.append(
            "SELECT _id AS a, CAST(NULL AS BIGINT) AS b FROM l WHERE _id NOT IN (SELECT a FROM pairs)"
        )
    time = {
        "earliest": "least(l._t, r._t)",
        "latest": "greatest(l._t, r._t)",
        "left": "coalesce(l._t, r._t)",
        "right": "coalesce(r._t, l._t)",
    }[operator.times]
    if operator.size is not None:
        time = f"floor_div(coalesce(l._t, r._t), {operator.size}) * {operator.size}"
    sql = f"""
    WITH found AS ({" UNION ALL ".join(found)}),
         timed AS (SELECT a, b, {time} AS _t
                   FROM found LEFT JOIN l ON l._id = a LEFT JOIN r ON r._id = b)
    SELECT timed._t, {", ".join(columns)}
    FROM timed LEFT JOIN l ON l._id = a LEFT JOIN r ON r._id = b"""
    return _duck(sql, types, l=one, r=other, pairs=pairs)


def _true(condition: str, left: Rows, right: Rows, pairs: pa.Table) -> pa.Table:
    """The pairs for which Spark says that a condition over `l` and `r` is true."""
    table, types, structs = pairs, {"a": "bigint", "b": "bigint"}, ["a", "b"]
    for side, given, place in (("l", left, "a"), ("r", right, "b")):
        for name, kind in given.types.items():
            table = table.append_column(f"{side}_{name}", given.table[name].take(pairs[place]))
            types[f"{side}_{name}"] = kind
        structs.append(f"struct({', '.join(f'{side}_{name} AS {name}' for name in given.types)}) AS {side}")
    frame = _frame(Rows(table, types)).selectExpr(*structs)
    return _collected(frame.where(condition).select("a", "b")).table


def _keys_and(operator: Joined, *conditions: str) -> str:
    return " AND ".join([*(f"l.{one} = r.{other}" for one, other in operator.keys), *conditions])


def _near(operator: Joined) -> str:
    ahead, back = operator.apart
    near = f"r._t - l._t BETWEEN -{back} AND {ahead}"
    if operator.size is not None:
        near = f"floor_div(l._t, {operator.size}) = floor_div(r._t, {operator.size})"
    return f"SELECT l._id AS a, r._id AS b FROM l JOIN r ON {_keys_and(operator, near)}"


def _last(operator: Joined) -> str:
    """Each row with the last rows of the other side before it; at equal times left goes before right."""
    return f"""
    SELECT l._id AS a, r._id AS b FROM l JOIN r ON {_keys_and(operator, "r._t < l._t")}
    QUALIFY row_number() OVER (PARTITION BY l._id ORDER BY r._t DESC) <= {operator.last}
    UNION ALL
    SELECT l._id AS a, r._id AS b FROM l JOIN r ON {_keys_and(operator, "l._t <= r._t")}
    QUALIFY row_number() OVER (PARTITION BY r._id ORDER BY l._t DESC) <= {operator.last}"""
