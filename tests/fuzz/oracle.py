"""What a program gives over whole tables, evaluated by DuckDB relation by relation.

Written apart from Penstock. Every relation is a table with its columns and `_t`, its event time in
microseconds.
"""

import atexit
import functools
import threading

import duckdb
import pyarrow as pa

from fuzz.operators import MEANINGS
from fuzz.program import (
    MARK,
    Aggregate,
    Block,
    Bound,
    Expr,
    Item,
    Join,
    Ranked,
    Relation,
    Sub,
    Table,
    Union,
    Verb,
    Window,
)
from penstock.expressions.types import arrow_type

MACROS = """
CREATE MACRO floor_div(a, b) AS ((a - ((a % b) + b) % b) // b);
CREATE MACRO error(m) AS CAST(m AS INTEGER);
CREATE MACRO bounds(a, b) AS {'s': a, 'e': b};
CREATE MACRO hops(t, size, slide, off) AS
    list_transform(
        range(floor_div(t - off - size, slide) + 1, floor_div(t - off, slide) + 1),
        lambda i: bounds(i * slide + off, i * slide + off + size));
CREATE MACRO steps(t, size, step, off) AS
    list_transform(
        range(floor_div(t - off - floor_div(t - off, size) * size, step) + 1, size // step + 1),
        lambda i: bounds(floor_div(t - off, size) * size + off,
                         floor_div(t - off, size) * size + off + i * step));
CREATE MACRO mode_of(l) AS
    (list_sort(list_transform(list_distinct(l),
        lambda v: {'n': -len(list_filter(l, lambda w: w = v)), 'v': v}))[1].v);
"""
BOUNDS = ("window_start", "window_end")


@functools.cache
def _connection(thread: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1}).execute(MACROS)


# An open connection at the end of the process is reported as a leak.
atexit.register(_connection.cache_clear)


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this thread."""
    return _connection(threading.get_ident())


def evaluate(relation: Relation, zone: str = "UTC", oracle: "Oracle | None" = None) -> pa.Table:
    """The rows of a relation in a time zone; a thread keeps the last ones: they are drawn, then judged.

    An `oracle` that is given knows what it has evaluated before, in the same zone.
    """
    thread = threading.get_ident()
    kept = _last.get(thread)
    if kept is None or kept[0] is not relation or kept[1] != zone:
        connection().execute(f"SET TimeZone = '{zone}'")
        kept = _last[thread] = relation, zone, (oracle or Oracle()).table(relation).drop_columns(["_t"])
    return kept[2]


_last: dict[int, tuple[Relation, str, pa.Table]] = {}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def marks(text: str) -> str:
    return MARK.sub(lambda each: f"{each[1]}.{quoted(each[2])}", text)


def schema_of(relation: Relation) -> pa.Schema:
    return pa.schema({each.name: arrow_type(each.type) for each in relation.columns})


class Oracle:
    """Relations over tables, each evaluated once."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Relation, pa.Table]] = {}

    def table(self, relation: Relation) -> pa.Table:
        key = id(relation)
        if key not in self._names:
            # The relation is kept so that its id is not given to another one.
            self._names[key] = (relation, self._evaluated(relation))
        return self._names[key][1]

    def _evaluated(self, relation: Relation) -> pa.Table:
        match relation:
            case Table():
                return self._source(relation)
            case Block():
                return self._block(relation)
            case Union():
                parts = [self.table(each) for each in relation.parts]
                names = [*(each.name for each in relation.columns), "_t"]
                return pa.concat_tables(each.rename_columns(names) for each in parts)
            case Ranked():
                return self._ranked(relation)
            case Verb():
                inputs = [self.table(each) for each in relation.inputs]
                try:
                    return MEANINGS[relation.kind](relation, *inputs)
                except OverflowError as error:
                    # Python has no date after the year 9999.
                    raise OracleFailed(str(error)) from error
        raise TypeError(relation)

    def _source(self, table: Table) -> pa.Table:
        place = table.names.index(table.time)
        rows = [each for each in table.rows if each[place] is not None]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
        arrays = [
            pa.array(values, arrow_type(each.type))
            for values, each in zip(columns, table.columns, strict=True)
        ]
        found = pa.Table.from_arrays(arrays, names=list(table.names))
        return found.append_column("_t", found[table.time].cast(pa.int64()))

    def run(self, sql: str, schema: pa.Schema | None, **tables: pa.Table) -> pa.Table:
        found = self.raw(sql, tables)
        if schema is None:
            return found
        return found.cast(schema.append(pa.field("_t", pa.int64())), safe=False)

    def raw(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        duck = connection()
        for name, table in tables.items():
            duck.register(name, table)
        try:
            return duck.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise OracleFailed(f"{error}\n{sql}") from error
        finally:
            for name in tables:
                duck.unregister(name)

    def _items(self, block: Block) -> dict[str, pa.Table]:
        found = {f"_{each.id}": self.table(each.relation) for each in block.items}
        return found | {f"_{each.item.id}": self.table(each.item.relation) for each in block.subs}

    def _block(self, block: Block) -> pa.Table:
        tables = self._items(block)
        flow, time = self._from(block)
        where = [marks(each.duck) for each in block.where] + [self._sub(each, time) for each in block.subs]
        if where:
            flow += " WHERE " + " AND ".join(f"({each})" for each in where)
        schema = schema_of(block)
        if block.group is None:
            columns = [f"{marks(each.duck)} AS {quoted(name)}" for name, each in block.select]
            return self.run(f"SELECT {', '.join(columns)}, {time} AS _t FROM {flow}", schema, **tables)
        sql = grouped(block, flow, time)
        return self.run(sql, schema, **tables)

    def _from(self, block: Block) -> tuple[str, str]:
        """FROM with its joins, and the event time of what it gives."""
        flow, time = source(block.first), f"{block.first.id}._t"
        by_window = any(each.bound.kind == "window" for each in (*block.joins, *block.subs))
        if block.first.window and by_window:
            # Rows of windows that no other window meets keep their own time, also within a group.
            time = f"{block.first.id}._w"
        for each in block.joins:
            if each.bound.kind == "last":
                flow = self._last(each, block.first, flow)
            else:
                on = " AND ".join(f"({text})" for text in self._on(each, time)) or "TRUE"
                words = {"semi": "SEMI", "anti": "ANTI"}.get(each.how, each.how.upper())
                flow = f"{flow} {words} JOIN {source(each.item)} ON {on}"
            time = pair_time(each, time)
        return flow, time

    def _on(self, join: Join | Sub, time: str) -> list[str]:
        found = [same(one, other) for one, other in join.keys]
        found += [marks(each.duck) for each in join.conditions]
        return [*found, *bound_of(join.bound, time, join.item)]

    def _last(self, join: Join, first: Item, flow: str) -> str:
        """Each row with the last ones of the other side before it; at equal times left goes before right.

        Semi and anti joins before it have left some of the first table's rows, which ``flow`` gives.
        """
        left, right = first.id, join.item.id
        ours, theirs = numbered(flow, left), numbered(source(join.item), right)
        on = " AND ".join(same(one, other) for one, other in join.keys) or "TRUE"
        most = join.bound.ahead
        pairs = f"""
            SELECT {left}._i AS _a, {right}._i AS _b FROM {ours} JOIN {theirs}
            ON {on} AND {right}._t < {left}._t
            QUALIFY row_number() OVER (PARTITION BY {left}._i ORDER BY {right}._t DESC) <= {most}
            UNION ALL
            SELECT {left}._i, {right}._i FROM {ours} JOIN {theirs}
            ON {on} AND {left}._t <= {right}._t
            QUALIFY row_number() OVER (PARTITION BY {right}._i ORDER BY {left}._t DESC) <= {most}"""
        conditions = "".join(f" AND ({marks(each.duck)})" for each in join.conditions)
        return (
            f"{ours} {join.how.upper()} JOIN {theirs} "
            f"ON EXISTS (SELECT 1 FROM ({pairs}) WHERE _a = {left}._i AND _b = {right}._i){conditions}"
        )

    def _sub(self, sub: Sub, time: str) -> str:
        inner = [marks(each.duck) for each in (*sub.conditions, *sub.inner)]
        inner += bound_of(sub.bound, time, sub.item)
        keys = list(sub.keys)
        if sub.kind.endswith("in"):
            (one, other), *keys = keys
            inner += [same(*each) for each in keys]
            condition = f" WHERE {' AND '.join(f'({each})' for each in inner)}" if inner else ""
            word = "NOT IN" if sub.kind == "not in" else "IN"
            return f"{marks(one.duck)} {word} (SELECT {marks(other.duck)} FROM {source(sub.item)}{condition})"
        inner += [same(*each) for each in keys]
        condition = f" WHERE {' AND '.join(f'({each})' for each in inner)}" if inner else ""
        return f"{sub.kind.upper()} (SELECT 1 FROM {source(sub.item)}{condition})"

    def _ranked(self, ranked: Ranked) -> pa.Table:
        item = ranked.item
        names = [each.name for each in ranked.columns[:-1]]
        partition = ", ".join(map(quoted, (*BOUNDS, *ranked.partition)))
        # Nulls are the least values, as in Spark.
        order = ", ".join(
            f"{quoted(name)} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}"
            for name, down in ranked.order
        )
        function = "rank()" if ranked.ties else "row_number()"
        chosen = ", ".join(map(quoted, names))
        rank = quoted(ranked.rank)
        left_out = "".join(f" AND {rank} <> {each}" for each in ranked.but)
        sql = f"""
            SELECT {chosen},
                   CAST({function} OVER (PARTITION BY {partition} ORDER BY {order}) AS INTEGER) AS {rank},
                   epoch_us(window_start) AS _t
            FROM {source(item)} QUALIFY {rank} <= {ranked.most}{left_out}"""
        return self.run(sql, schema_of(ranked), **{f"_{item.id}": self.table(item.relation)})


class OracleFailed(Exception):  # noqa: N818 -- it is an answer, not a fault of the product
    """DuckDB did not take what this module wrote, or raised for a row."""


def same(one: Expr, other: Expr) -> str:
    return f"{marks(one.duck)} = {marks(other.duck)}"


def windows_of(window: Window, time: str) -> str:
    """The windows of a time as a list."""
    if window.kind == "cumulate":
        return f"steps({time}, {window.size}, {window.slide}, {window.offset})"
    return f"hops({time}, {window.size}, {window.slide or window.size}, {window.offset})"


def source(item: Item) -> str:
    """An item in FROM under its id; of a table function each row once for each window, `_w` is its start."""
    if item.window is None:
        return f"_{item.id} AS {item.id}"
    if item.window.kind == "session":
        keys = ", ".join(map(quoted, item.partition))
        inner = sessions(f"_{item.id}", keys, item.window.size)
        return (
            f"(SELECT * EXCLUDE (_s, _e, _fresh, _n), make_timestamptz(_s) AS window_start, "
            f"make_timestamptz(_e) AS window_end, _e AS _w FROM ({inner})) AS {item.id}"
        )
    return (
        "(SELECT * EXCLUDE _b, make_timestamptz(_b.s) AS window_start, make_timestamptz(_b.e) AS window_end, "
        f"_b.s AS _w FROM (SELECT *, unnest({windows_of(item.window, '_t')}) AS _b FROM _{item.id})) "
        f"AS {item.id}"
    )


def numbered(flow: str, name: str) -> str:
    """Rows of distinct times with the same numbers wherever this is written."""
    return f"(SELECT {name}.*, row_number() OVER (ORDER BY {name}._t) AS _i FROM {flow}) AS {name}"


def sessions(table: str, keys: str, gap: int) -> str:
    """Rows with the bounds of their sessions: a row exactly one gap after the last one belongs to it."""
    by = f"PARTITION BY {keys}" if keys else ""
    comma = f", {keys}" if keys else ""
    return f"""
        SELECT *, min(_t) OVER (PARTITION BY _n{comma}) AS _s,
               max(_t) OVER (PARTITION BY _n{comma}) + {gap} AS _e
        FROM (SELECT *, sum(_fresh) OVER ({by} ORDER BY _t RANGE UNBOUNDED PRECEDING) AS _n
              FROM (SELECT *,
                           CASE WHEN _t - lag(_t) OVER ({by} ORDER BY _t) <= {gap} THEN 0 ELSE 1 END AS _fresh
                    FROM {table}))"""


def bound_of(bound: Bound, time: str, item: Item) -> list[str]:
    if bound.kind in {"none", "last"}:
        return []
    if bound.kind == "window":
        return [f"{bound.by}.{each} = {item.id}.{each}" for each in BOUNDS]
    left = f"{bound.by}._t" if bound.by else time
    return [f"{item.id}._t - {left} BETWEEN -{bound.back} AND {bound.ahead}"]


def pair_time(join: Join, time: str) -> str:
    other = f"{join.item.id}._t"
    if join.how in {"semi", "anti"}:
        return time
    if join.bound.kind == "window":
        return f"coalesce({time}, {join.item.id}._w)"
    return f"{'least' if join.bound.kind in {'within', 'interval'} else 'greatest'}({time}, {other})"


def grouped(block: Block, flow: str, time: str) -> str:
    """Rows flat, in their windows, then in groups, one SELECT for each set of keys."""
    group = block.group
    if group.by is not None:
        time = f"{group.by}._t"
    bounds = [each for each in block.items if each.window]
    flat = [f"{time} AS _t"]
    if group.window is None and bounds:
        raise OracleFailed("a table function without its windows in GROUP BY")
    flat += [f"{zero(marks(each.duck), each.type)} AS k{place}" for place, (_, each) in enumerate(group.keys)]
    for place, (_, each) in enumerate(group.aggregates):
        arguments = [marks(one.duck) for one in each.arguments] or ["1"]
        if each.where is not None:
            arguments = [f"CASE WHEN {marks(each.where.duck)} THEN {one} END" for one in arguments]
        flat += [f"{one} AS a{place}_{at}" for at, one in enumerate(arguments)]
    if bounds:
        flat += [
            f"epoch_us({bounds[0].id}.{each}) AS {name}"
            for each, name in zip(BOUNDS, ("_s", "_e"), strict=True)
        ]
    rows = f"SELECT {', '.join(flat)} FROM {flow}"
    if group.window is not None:
        # A row without a time is in no window.
        rows = f"SELECT * FROM ({rows}) WHERE _t IS NOT NULL"
    every = tuple(range(len(group.keys)))
    assigned = bool(bounds)
    sets = group.sets if group.sets is not None else (every,)
    parts = [_set(block, rows, chosen, assigned=assigned) for chosen in sets]
    if group.rolled:
        ends = range(len(every), -1, -1)
        parts += [_set(block, rows, every[:end], assigned=assigned, rolled=True) for end in ends]
    return " UNION ALL ".join(parts)


def _set(block: Block, rows: str, chosen: tuple[int, ...], *, assigned: bool, rolled: bool = False) -> str:
    group = block.group
    window = group.window
    keys = [f"k{place}" for place in chosen]
    named = {}
    if window is not None:
        if not assigned and window.kind == "session":
            # Sessions are those of the keys of this set.
            rows = sessions(f"({rows})", ", ".join(keys), window.size)
        elif not assigned:
            # A row in no window is in no group, rolled up or not.
            placed = f"SELECT *, unnest({windows_of(window, '_t')}) AS _b FROM ({rows})"
            rows = f"SELECT * EXCLUDE _b, _b.s AS _s, _b.e AS _e FROM ({placed})"
        keys += [] if rolled else ["_s", "_e"]
        ends = ("NULL::TIMESTAMPTZ",) * 2 if rolled else ("make_timestamptz(_s)", "make_timestamptz(_e)")
        named |= dict(zip(BOUNDS, ends, strict=True))
    for place, (name, each) in enumerate(group.keys):
        named[name] = f"k{place}" if place in chosen else f"CAST(NULL AS {duck_type(each.type)})"
        named[f"grouping({name})"] = "0" if place in chosen else "1"
    number = sum(
        1 << (len(group.keys) - 1 - place) for place in range(len(group.keys)) if place not in chosen
    )
    named["grouping_id"] = str(number)
    for place, (name, each) in enumerate(group.aggregates):
        named[name] = aggregated(each, place)

    def over(text: str) -> str:
        return MARK.sub(lambda each: f"({named[each[2]]})", text)

    columns = [f"{over(each.duck)} AS {quoted(name)}" for name, each in block.select]
    time = "0" if window is None or rolled else "_e" if window.kind == "session" else "_s"
    # A group of no key is there if it has a row.
    having = " AND ".join(["count(*) > 0", *(f"({over(each.duck)})" for each in group.having)])
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*columns, f'{time} AS _t'])} FROM ({rows}){by} HAVING {having}"


def aggregated(each: Aggregate, place: int) -> str:
    if each.name == "count(*)":
        return f"count(a{place}_0)"
    template = each.duck
    if each.distinct:
        template = template.replace("({0} ORDER BY {t}, {0})", "(DISTINCT {0} ORDER BY {0})")
        if "DISTINCT" not in template:
            template = template.replace("({0}", "(DISTINCT {0}", 1)
    return template.format(*(f"a{place}_{at}" for at in range(max(1, len(each.arguments)))), t="_t")


def zero(text: str, kind: str) -> str:
    """A key with one zero and one NaN."""
    if kind in {"float", "double"}:
        return f"CASE WHEN {text} = 0 THEN 0 ELSE {text} END"
    return text


def duck_type(kind: str) -> str:
    names = {"string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP"}
    if kind.startswith("array<"):
        return f"{duck_type(kind[6:-1])}[]"
    if kind == "struct<a:int,b:string>":
        return "STRUCT(a INTEGER, b VARCHAR)"
    if kind.startswith("struct<"):
        return "STRUCT(d DOUBLE, e BIGINT[])"
    return names.get(kind, kind.upper())
