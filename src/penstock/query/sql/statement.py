"""Statements of the query language become relations: SELECT, UNION ALL, WITH, sub-queries in FROM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from penstock.aggregates.sql_calls import UserAggregate, is_aggregate
from penstock.errors import BadExpression, BadJoin, BadName, BadWindow
from penstock.expressions.parsing import Tree, call_name, marked, place_of, render
from penstock.operators.joins.node import PAIR_TIME
from penstock.query.relation import Relation
from penstock.query.sql.assigning import assigned
from penstock.query.sql.clauses import BOUNDS, EXAMPLE, BoundClause, Clauses
from penstock.query.sql.joining import JoinClause, joined
from penstock.query.sql.ranking import first_rows, is_row_number, keys_shown, ranked_select, take_limit
from penstock.query.sql.reach import by_window
from penstock.query.sql.scope import FromTable, Names, Scope, found_in, mark, reads
from penstock.query.sql.selecting import aggregated, plain_select, starred
from penstock.query.sql.windows import (
    WINDOW_BOUNDS,
    Inner,
    TableFunction,
    WindowClause,
    conjuncts,
    is_bound,
    is_certain_bound,
    named_bounds,
    refuse_unbound,
    window_call,
    window_name,
)

__all__ = ["Reading", "Statement"]

_CLAUSES: Final = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "with_", "distinct"}
)
_SUPPORTED: Final = (
    "supported is [WITH …] SELECT … FROM stream [RANGE … SLIDE …] [JOIN … ON … WITHIN …] WHERE … GROUP BY … "
    "HAVING … [UNION ALL …]"
)
_SPELLED: Final = {"order": "ORDER BY", "laterals": "LATERAL VIEW", "windows": "WINDOW"}
_PARTS: Final = ("where", "group", "having")
_QUERIES: Final = "a sub-query of EXISTS or IN is SELECT … FROM table WHERE …; put anything else into WITH"


@dataclass(frozen=True)
class Statement:
    """A statement during parsing: the relations that it may name, and the clauses cut out of its SELECTs.

    ``windows`` has those of the SELECTs that were read so far, by what they gave. SELECTs are read in the
    order of the text, since that is the order of ``clauses``.
    """

    written: str
    relations: Mapping[str, Relation]
    definitions: Mapping[str, UserAggregate]
    clauses: Iterator[Clauses]
    functions: Mapping[int, TableFunction] = field(default_factory=dict)
    windows: dict[Relation, WindowClause] = field(default_factory=dict)

    def relation(self, tree: Tree) -> Relation:
        """The relation of a SELECT, or of several with UNION ALL."""
        if isinstance(tree, exp.Subquery) and not _has_more(tree, "this"):
            return self.relation(tree.this)
        if isinstance(tree, exp.SetOperation):
            return self._union(tree)
        if isinstance(tree, exp.Select):
            return self._select(tree)
        raise BadExpression(f"this is not a single SELECT or a UNION ALL of them; {_SUPPORTED}")

    def read(self, tree: exp.Select) -> "Reading":
        """The tables of a SELECT, joined and filtered by WHERE, and its windows."""
        _hoist_joins(tree)
        _check(tree)
        inner, clauses = self._with_tables(tree), next(self.clauses)
        self._check_from(clauses)
        tables = [tree.args["from_"].this, *(each.this for each in tree.args.get("joins") or ())]
        ranked = ranked_select(tables[0]) if len(tables) == 1 else None
        if ranked is not None:
            sources: tuple[FromTable, ...] = (inner._ranked(tree, ranked),)  # noqa: SLF001 -- another of this class
        else:
            found = [inner._source(each) for each in tables]  # noqa: SLF001 -- another of this class
            sources = tuple(replace(each, number=place) for place, each in enumerate(found))
        if len(sources) > 1:
            _check_tables(sources)
        names, joins = self._joins(tree, clauses, sources)
        queries = [
            inner._query(each, clauses.query_bounds.get(place), names, len(sources) + place)  # noqa: SLF001 -- another of this class
            for place, each in enumerate(_taken_queries(tree))
        ]
        items = [each for item in tree.expressions for each in starred(item, names, [*joins, *queries])]
        tree.set("expressions", items)
        self._name_bounds(tree, clauses, sources)
        after = self._after(tree, names)
        self._resolve(tree, names)
        _check_chosen(tree, names, queries)
        timed = _windowed_table(tree, names)
        parts = [*tree.expressions, *(tree.args[each] for each in _PARTS if tree.args.get(each))]
        read = reads([*parts, *after, *(each.on for each in queries if each.on is not None)])
        scope = joined(Scope.of(sources[0], self.written), [*_by_time(joins, timed), *queries], read)
        if timed is not None:
            scope = _with_time(tree, scope, joins)
        where = tree.args.get("where")
        if where is not None:
            scope = replace(scope, relation=scope.relation.where(render(scope.over(where.this))))
        window, function = self._window(tree, clauses, scope)
        if function is None:
            for each in after:
                scope = replace(scope, relation=scope.relation.where(render(scope.over(each))))
        return Reading(scope, window, function, after if function else ())

    def _after(self, tree: exp.Select, names: Names) -> tuple[Tree, ...]:
        """The conditions on the bounds of windows that table functions make, of tables and of WHERE."""
        given = [one for each in names.tables for one in each.after]
        for each in names.tables:
            Names((each,), self.written).resolve(each.after, WINDOW_BOUNDS)
        own = _taken_after(tree, names.tables)
        names.resolve(own, {PAIR_TIME, *WINDOW_BOUNDS})
        return (*given, *own)

    def _resolve(self, tree: exp.Select, names: Names) -> None:
        """Find out what every name of the SELECT means.

        In GROUP BY a column comes before an alias of the select list, in HAVING it is the other way round,
        except inside aggregates, as Spark has it. The event time of pairs and the bounds of windows are names
        that no table needs to have.
        """
        made = {PAIR_TIME, *WINDOW_BOUNDS}
        # Windows may go by an event time that a select has left out.
        times = {each.relation.time.lower() for each in names.tables}
        aliases = {str(each.alias).lower() for each in tree.expressions if each.alias}
        names.resolve(tree.expressions, made)
        for part in ("where", "group"):
            if tree.args.get(part):
                names.resolve([tree.args[part]], made | aliases | times if part == "group" else made)
        having = tree.args.get("having")
        if having is not None:
            nodes = [each for each in having.find_all(exp.Column) if not self._is_aliased(each, aliases)]
            names.resolve(nodes, made)

    def _is_aliased(self, node: exp.Column, aliases: set[str]) -> bool:
        if node.table or node.name.lower() not in aliases:
            return False
        above: Tree | None = node.parent
        while above is not None and not is_aggregate(above, self.definitions):
            above = above.parent
        return above is None

    def _name_bounds(self, tree: exp.Select, clauses: Clauses, sources: tuple[FromTable, ...]) -> None:
        """Write the bounds of windows one way, if the statement has windows."""
        group = tree.args.get("group")
        calls = [window_name(each) for each in (group.expressions if group else ())]
        alone = len(sources) == 1
        bounded = [
            each
            for each in sources
            if each.function or (alone and set(WINDOW_BOUNDS) <= set(each.relation.pinned))
        ]
        if not bounded and not any(calls) and clauses.window is None:
            return
        names = [each.name for each in bounded if each.name]
        own = {name.lower() for each in sources for name in each.relation.schema.names} - set(WINDOW_BOUNDS)
        named = [_named(each, own) for each in tree.expressions]
        tree.set("expressions", [named_bounds(each, names, own) for each in named])
        for part in _PARTS:
            if tree.args.get(part):
                tree.set(part, named_bounds(tree.args[part], names, own))

    def _window(
        self, tree: exp.Select, clauses: Clauses, scope: Scope
    ) -> tuple[WindowClause | None, TableFunction | None]:
        """The windows of a SELECT, which are taken out of its GROUP BY, and the table function of them."""
        group = tree.args.get("group")
        keys = list(group.expressions) if group else []
        first = scope.tables[0].relation
        inner = Inner.of(first, self.windows.get(first))
        calls = [window_call(each, scope.relation, self.written, inner) for each in keys]
        found = [each for each in calls if each is not None]
        function = next((each.function for each in scope.tables if each.function), None)
        if set(WINDOW_BOUNDS) <= set(scope.relation.pinned):
            # A join by window has given its bounds to the rows already.
            function = None
        elif function is not None and len(scope.tables) > 1:
            raise BadJoin(
                f"{function.name.upper()}() beside a JOIN; join two table functions by window_start and "
                "window_end, or put the aggregation into a sub-query"
            )
        if clauses.window is not None:
            found.append(
                WindowClause("window", clauses.window.size, clauses.window.slide, clauses.window.offset)
            )
        if function is not None:
            found.append(function.clause)
        elif not found and any(map(is_bound, keys)) and set(WINDOW_BOUNDS) <= set(scope.relation.pinned):
            found.append(WindowClause("same"))
        if len(found) > 1:
            raise BadWindow(
                "this SELECT has a second window; give it one, and put the other into a sub-query"
            )
        if not found:
            return None, None
        _check_bounds([_meant(each, tree) for each in keys] if any(calls) else (), scope)
        if group is not None:
            left = [key for key, call in zip(keys, calls, strict=True) if call is None and not is_bound(key)]
            if function is not None and not any(map(is_bound, keys)):
                raise refuse_unbound(function)
            group.set("expressions", left)
        return found[0], function

    def _select(self, tree: exp.Select) -> Relation:
        reading = self.read(tree)
        nodes = [node for item in tree.expressions for node in item.walk()]
        calls = [each for each in nodes if is_aggregate(each, self.definitions)]
        clauses = [tree.args[each] for each in ("group", "having") if tree.args.get(each)]
        distinct = tree.args.get("distinct")
        if reading.function is not None:
            if not calls and not clauses and not distinct:
                return plain_select(
                    assigned(reading.scope, reading.function, reading.after), tree.expressions
                )
            group = tree.args.get("group")
            reading.check_sessions(tree.expressions if distinct else group.expressions if group else [])
        if reading.window is None:
            if distinct:
                raise BadWindow(
                    "SELECT DISTINCT has no window, so it would have to keep every row forever; write one "
                    f"after the stream's name: {EXAMPLE}, or drop duplicates with deduplicate()"
                )
            if not calls and not clauses:
                return plain_select(reading.scope, tree.expressions)
        found = aggregated(reading.scope, tree, reading.window, self.definitions, reading.after)
        if reading.window is not None:
            self.windows[found] = reading.window
        return found

    def _ranked(self, tree: exp.Select, ranked: exp.Subquery) -> FromTable:
        """The table of the first rows of windows, which a WHERE on their number asks for."""
        _check_alias(ranked)
        select = ranked.this
        number = next(each for each in select.expressions if is_row_number(each))
        most = take_limit(tree, number, ranked.alias)
        select.set("expressions", [each for each in select.expressions if each is not number])
        reading = self.read(select)
        parts = number.unalias().args.get("partition_by") or ()
        names = [each.name for each in reading.scope.tables if each.name]
        if len(reading.scope.tables) == 1:
            # A name of several tables is a column of the joined rows.
            number.set("this", named_bounds(number.this, names))
            Names(reading.scope.tables, self.written).resolve([number.this], {PAIR_TIME, *WINDOW_BOUNDS})
        reading.check_sessions([named_bounds(each.copy(), names) for each in parts])
        found = first_rows(reading.scope, select.expressions, number, most, reading.window)
        keys = keys_shown(reading.scope, select.expressions, number)
        for each in reading.after:
            if not reads([each]) <= keys.places.keys():
                raise BadWindow(
                    f"WHERE {render(each)} is about windows, which are known when rows are numbered, and "
                    "reads columns that are not in PARTITION BY; write conditions on them and on bounds apart"
                )
            found = found.where(render(keys.over(each)))
        return FromTable(ranked.alias, found)

    def _union(self, tree: exp.SetOperation) -> Relation:
        if not isinstance(tree, exp.Union) or _has_more(tree, "this", "expression", "distinct", "with_"):
            raise BadExpression(f"{render(tree)}: UNION ALL is the only set operation; {_SUPPORTED}")
        if tree.args.get("distinct"):
            raise BadExpression(
                "UNION drops duplicates, so it would have to keep every row forever, and a stream cannot "
                "answer it; write UNION ALL"
            )
        inner = self._with_tables(tree)
        first, other = inner.relation(tree.this), inner.relation(tree.expression)
        ours, theirs = first.schema.names, other.schema.names
        if [each.lower() for each in ours] != [each.lower() for each in theirs]:
            raise BadExpression(
                f"UNION ALL of ({', '.join(ours)}) and ({', '.join(theirs)}); give both the same columns in "
                "the same order, with AS where the names differ"
            )
        # A chain of unions means one union of all, which Relation.union() makes too.
        head, *rest = first.inputs if isinstance(tree.this, exp.Union) else (first,)
        return head.union(*rest, other)

    def _with_tables(self, tree: Tree) -> "Statement":
        clause = tree.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise BadExpression("WITH RECURSIVE is not supported; a table of WITH may use those before it")
        found = self
        for each in clause.expressions:
            _check_alias(each)
            made = {each.alias.lower(): found.relation(each.this)}
            found = replace(found, relations={**found.relations, **made})
        return found

    def _source(self, table: Tree) -> FromTable:
        if isinstance(table, exp.Subquery) and isinstance(table.this, exp.Query):
            _check_alias(table)
            passed = self._passed(table)
            if passed is not None:
                return passed
            return FromTable(table.alias, self.relation(table.this))
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise BadExpression(f"FROM must name one stream, or a SELECT in parentheses; {_SUPPORTED}")
        _check_alias(table)
        relation = self.relations.get(table.name.lower())
        if relation is None:
            known = ", ".join(self.relations) or "none; pass them after the text"
            raise BadName(f"no stream {table.name!r}; the streams are {known}{mark(table, self.written)}")
        function = self.functions.get(place_of(table.this) or -1)
        if function is not None:
            function.check(relation, table.name)
        return FromTable(table.alias or table.name, relation, function)

    def _passed(self, table: exp.Subquery) -> FromTable | None:
        """A sub-query that only passes the rows of a table function on, as if its function stood here."""
        select = table.this
        inner = select.args["from_"].this if select.args.get("from_") else None
        plain = [*map(type, select.expressions)] == [exp.Star] and not _has_more(
            select, "expressions", "from_", "where"
        )
        if not plain or not isinstance(inner, exp.Table) or self.functions.get(place_of(inner) or -1) is None:
            return None
        reading = self.read(select)
        (source,) = reading.scope.tables
        relation = plain_select(reading.scope, select.expressions)
        return FromTable(
            table.alias, relation, source.function, tuple(map(reading.scope.over, reading.after))
        )

    def _query(self, query: Tree, bound: BoundClause | None, names: Names, number: int) -> JoinClause:
        """A sub-query in WHERE as the join that says which rows have a row of it, or have none."""
        anti = isinstance(query, exp.Not)
        node = query.this.unnest() if anti else query
        select = node.this if isinstance(node, exp.Exists) else node.args["query"].this
        next(self.clauses)
        if not isinstance(select, exp.Select) or _has_more(select, "expressions", "from_", "where"):
            raise BadExpression(f"{render(node)}: {_QUERIES}")
        right = replace(self._source(select.args["from_"].this), number=number)
        if not right.name:
            raise BadName(f"{render(node)}: the sub-query's table needs a name; write (SELECT …) AS name")
        where = select.args.get("where")
        windowed = by_window(names.tables, right, where.this if where else None) if bound is None else None
        bound, rest = windowed or (bound, where.this if where else None)
        inside = Names((right,), self.written, outer=names)
        conditions = list(conjuncts(rest)) if rest is not None else []
        inside.resolve(conditions)
        own = [each for each in conditions if all(table == number for table, _ in reads([each]))]
        links = [each for each in conditions if all(each is not other for other in own)]
        if isinstance(node, exp.In):
            item = _in_item(node, select)
            names.resolve([node.this])
            inside.resolve([item])
            links.append(_in_condition(node.this, item, anti=anti))
        if own:
            over = render(Scope.of(right, self.written).over(exp.and_(*own)))
            right = replace(right, relation=right.relation.where(over))
        unbound = (
            f"{render(node)} has no bound in time; write {BOUNDS} after it, or compare the event times "
            f"or the bounds of windows of {names.tables[0].name} and {right.name} in its WHERE"
        )
        on = exp.and_(*links) if links else None
        return JoinClause(right, "anti" if anti else "semi", on, (), bound, unbound)

    def _joins(
        self, tree: exp.Select, clauses: Clauses, sources: tuple[FromTable, ...]
    ) -> tuple[Names, list[JoinClause]]:
        """The joins of a SELECT, and what its other parts see; ON sees the tables up to its own."""
        seen, found = Names(sources[:1], self.written), []
        for place, join in enumerate(tree.args.get("joins") or ()):
            made = self._join(join, clauses.bounds.get(place), seen, sources[place + 1])
            found.append(made)
            if made.one_sided:
                continue
            shared = {name.lower(): _sharing(name, seen, made.right) for name in made.using}
            seen = replace(seen, tables=(*seen.tables, made.right), merged={**seen.merged, **shared})
        return seen, found

    def _join(self, join: exp.Join, bound: BoundClause | None, left: Names, right: FromTable) -> JoinClause:
        kind, side = join.args.get("kind") or "", join.args.get("side") or ""
        one_sided = kind in {"SEMI", "ANTI"} and side in {"", "LEFT"}
        odd = kind not in {"", "INNER", "CROSS"} and not (kind == "OUTER" and side) and not one_sided
        if odd or _has_more(join, "this", "kind", "side", "on", "using"):
            raise BadJoin(
                f"{render(join).strip()}: supported are [INNER] JOIN, CROSS JOIN, LEFT, RIGHT and FULL "
                f"[OUTER] JOIN, and [LEFT] SEMI and ANTI JOIN{mark(join, self.written)}"
            )
        on = join.args.get("on")
        windowed = by_window(left.tables, right, on) if bound is None else None
        bound, on = windowed or (bound, on)
        if on is not None:
            replace(left, tables=(*left.tables, right)).resolve([on])
        using = tuple(each.name for each in join.args.get("using") or ())
        how = kind.lower() if one_sided else side.lower() or "inner"
        unbound = (
            f"JOIN {join.this.alias_or_name} has no bound; write {BOUNDS} after its condition"
            f"{mark(join.this, self.written)}"
        )
        return JoinClause(right, how, on, using, bound, unbound)

    def _check_from(self, clauses: Clauses) -> None:
        if clauses.comma is not None:
            raise BadExpression(
                "a comma between tables does not bound the join in time; write a JOIN b ON … WITHIN …"
                f"\n{marked(self.written, clauses.comma)}"
            )
        if clauses.window is not None and clauses.window_after != clauses.joins:
            raise BadExpression(
                "the window comes before a JOIN; write it after the last one, … JOIN … ON … WITHIN … "
                "[RANGE …], or put the table with its window into a sub-query"
            )


@dataclass(frozen=True)
class Reading:
    """A SELECT as far as it is read: its tables, its windows, and conditions on the bounds of these."""

    scope: Scope
    window: WindowClause | None
    function: TableFunction | None
    after: tuple[Tree, ...]

    def check_sessions(self, nodes: Sequence[Tree]) -> None:
        """Raise BadWindow unless the keys of sessions are those by which they are grouped."""
        if self.window is None or self.window.kind != "session" or self.function is None:
            return
        plain = [each.unalias() for each in nodes if not is_bound(each.unalias())]
        keys = {each.name.lower() if isinstance(each, exp.Column) else render(each) for each in plain}
        wanted = {each.lower() for each in self.function.partition}
        if keys != wanted:
            shown = ", ".join(sorted(keys)) or "no key"
            raise BadWindow(
                f"SESSION has PARTITION BY {', '.join(self.function.partition) or 'nothing'} and rows are "
                f"grouped by {shown}; sessions are those of a key, so give both the same keys"
            )


def _named(item: Tree, columns: set[str]) -> Tree:
    """An item that has a name, if it is the time of a window or the window itself."""
    if item.alias or (isinstance(item, exp.Column) and item.parts[0].name.lower() in columns):
        return item
    name = call_name(item) or (item.name.lower() if isinstance(item, exp.Column) else "")
    if name in {"window", "window_time"} or name.endswith("_rowtime"):
        return exp.alias_(item.copy(), name)
    return item


def _taken_after(tree: exp.Select, sources: tuple[FromTable, ...]) -> list[Tree]:
    """The conditions of WHERE on the bounds of windows that a table function makes, taken out of it."""
    where = tree.args.get("where")
    if where is None or not any(each.function for each in sources):
        return []
    known = {name.lower() for source in sources for name in source.relation.schema.names}
    before: list[Tree] = []
    found: list[Tree] = []
    for each in conjuncts(where.this):
        names = {node.name.lower() for node in each.find_all(exp.Column) if not node.table}
        (found if names & set(WINDOW_BOUNDS) - known else before).append(each)
    tree.set("where", exp.Where(this=exp.and_(*before)) if before else None)
    return found


def _check_chosen(tree: exp.Select, names: Names, queries: Sequence[JoinClause]) -> None:
    """Raise BadWindow if WHERE leaves out rows of sessions: the function has formed these of all rows."""
    sessions = next((each.function for each in names.tables if each.function), None)
    if sessions is None or sessions.clause.kind != "session":
        return
    where = tree.args.get("where")
    keys = {each.lower() for each in sessions.partition}
    other = sorted({column for _, column in reads([where])} - keys) if where is not None else []
    if other or queries:
        what = f"{', '.join(other)}" if other else "a sub-query"
        raise BadWindow(
            f"WHERE chooses rows by {what}, and SESSION() has formed the sessions of all rows before; to "
            "form them of the chosen rows, put the condition into WITH and give that to SESSION(), or write "
            "GROUP BY session_window(…)"
        )


def _windowed_table(tree: exp.Select, names: Names) -> FromTable | None:
    """The joined table by whose event time windows in GROUP BY go."""
    group = tree.args.get("group")
    calls = [each for each in (group.expressions if group else ()) if window_name(each)]
    found = [found_in(each.expressions[0]) for each in calls if each.expressions]
    if len(names.tables) == 1 or not found or found[0] is None:
        return None
    number, column = found[0].read
    table = next((each for each in names.tables if each.number == number), None)
    if table is None or found[0].fields or table.relation.time.lower() != column:
        times = ", ".join(f"{each.name}.{each.relation.time}" for each in names.tables)
        raise BadWindow(
            f"{render(calls[0])}: windows go by event time; after a join by {PAIR_TIME}, or by the event "
            f"time of one of the tables: {times}"
        )
    return table


def _by_time(joins: Sequence[JoinClause], table: FromTable | None) -> list[JoinClause]:
    """The joins, such that pairs carry the time of a table."""
    if table is None:
        return list(joins)
    found, held = [], table.number == 0
    for each in joins:
        own = each.right.number == table.number
        time = None if each.one_sided or not (held or own) else "right" if own else "left"
        found.append(replace(each, time=time))
        held = held or own
    return found


def _with_time(tree: exp.Select, scope: Scope, joins: Sequence[JoinClause]) -> Scope:
    """Windows of GROUP BY over the time of pairs, which is that of one table; rows without it are in none."""
    for call in tree.args["group"].expressions:
        if window_name(call):
            time = scope.over(call.expressions[0])
            call.set("expressions", [exp.column(scope.relation.time, quoted=True), *call.expressions[1:]])
    if any(each.how in {"left", "right", "full"} for each in joins):
        return replace(scope, relation=scope.relation.where(f"{render(time)} IS NOT NULL"))
    return scope


def _sharing(name: str, left: Names, right: FromTable) -> frozenset[int]:
    """The tables of which a key of USING stands for a column."""
    before = left.merged.get(name.lower(), frozenset())
    owners = {each.number for each in left.tables if name in each.relation.schema}
    return before | owners | {right.number}


def _queries(where: Tree) -> list[Tree]:
    """The conditions of WHERE that ask whether a sub-query has a row."""
    return [each for each in conjuncts(where.this) if _is_query(each.unnest())]


def _is_query(node: Tree) -> bool:
    if isinstance(node, exp.Not):
        return _is_query(node.this.unnest())
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _is_inside(node: Tree, found: Sequence[Tree | None]) -> bool:
    inside = {id(each) for query in found if query is not None for each in query.walk()}
    return id(node) in inside or (isinstance(node, exp.Subquery) and id(node.this) in inside)


def _taken_queries(tree: exp.Select) -> list[Tree]:
    """The same, taken out of WHERE, in the order of the text."""
    where = tree.args.get("where")
    if where is None:
        return []
    found = _queries(where)
    rest = [each for each in conjuncts(where.this) if all(each is not query for query in found)]
    tree.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return [each.unnest() for each in found]


def _in_item(node: exp.In, select: exp.Select) -> Tree:
    if len(select.expressions) != 1 or select.expressions[0].is_star:
        raise BadExpression(f"{render(node)}: IN takes a sub-query with one column")
    found: Tree = select.expressions[0].unalias()
    return found


def _in_condition(value: Tree, item: Tree, *, anti: bool) -> Tree:
    """That a value is one of a sub-query; for NOT IN also if one of both is null, as SQL has it."""
    equal = exp.EQ(this=value, expression=item)
    return exp.Anonymous(this="coalesce", expressions=[equal, exp.true()]) if anti else equal


def _hoist_joins(tree: exp.Select) -> None:
    # If a statement begins with FROM, the parser attaches the joins to the first table.
    first = tree.args["from_"].this if tree.args.get("from_") else None
    if isinstance(first, (exp.Table, exp.Subquery)) and first.args.get("joins"):
        tree.set("joins", [*first.args["joins"], *(tree.args.get("joins") or ())])
        first.set("joins", None)


def _check(tree: exp.Select) -> None:
    for name, value in tree.args.items():
        if value and name not in _CLAUSES:
            clause = _SPELLED.get(name, name.strip("_").upper())
            raise BadExpression(f"{clause} is not supported; {_SUPPORTED}")
    group = tree.args.get("group")
    if group and _has_more(group, "expressions", "rollup", "cube"):
        raise BadExpression(
            f"{render(group).strip()}: GROUP BY takes keys, windows, GROUPING SETS, CUBE and ROLLUP; "
            f"{_SUPPORTED}"
        )
    if tree.args.get("from_") is None:
        raise BadExpression(f"{render(tree)}: FROM must name one stream; {_SUPPORTED}")
    joins = tree.args.get("joins") or ()
    optional = (*(tree.args.get(each) for each in _PARTS), *(each.args.get("on") for each in joins))
    for part in (*tree.expressions, *filter(None, optional)):
        matched = [each.find(exp.Query) for each in _queries(part)] if isinstance(part, exp.Where) else []
        inner = next((each for each in part.find_all(exp.Query) if not _is_inside(each, matched)), None)
        if inner is not None:
            raise BadExpression(
                f"{render(inner)}: a sub-query is allowed only in FROM or WITH, and in WHERE after EXISTS "
                "and IN; join with it instead"
            )


def _check_tables(sources: tuple[FromTable, ...]) -> None:
    seen: set[str] = set()
    for each in sources:
        if not each.name:
            raise BadName("a sub-query that is joined needs a name; write (SELECT …) AS name")
        if each.name.lower() in seen:
            raise BadName(f"two tables have the name {each.name!r}; rename one with AS")
        seen.add(each.name.lower())


def _meant(key: Tree, tree: exp.Select) -> Tree:
    """The item of the select list that a key of GROUP BY names or counts; any other key as it is."""
    node, items = key.unnest(), tree.expressions
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(items):
        node = items[int(node.name) - 1].unalias()
    elif isinstance(node, exp.Column) and found_in(node) is None:
        named = [each.unalias() for each in items if each.alias.lower() == node.name.lower()]
        node = named[0] if named else node
    return node.unnest()


def _check_bounds(keys: Sequence[Tree], scope: Scope) -> None:
    """Refuse a key that is a bound of earlier windows: those of the statement have the same names."""
    for key in keys:
        own = isinstance(key, exp.Column) and is_bound(key) and not is_certain_bound(key)
        if own and key.name in scope.relation.schema:
            raise BadName(
                f"GROUP BY {key.name} is a column of its table, and the windows of GROUP BY give the result "
                f"a column of the same name; rename it in a sub-query, such as {key.name} AS inner_{key.name}"
            )


def _check_alias(table: Tree) -> None:
    alias = table.args.get("alias")
    if _has_more(table, "this", "alias") or (alias is not None and alias.args.get("columns")):
        raise BadExpression(
            f"{render(table)}: a table of FROM or WITH has a name and an alias only; {_SUPPORTED}"
        )


def _has_more(node: Tree, *parts: str) -> bool:
    return any(value for name, value in node.args.items() if name not in parts)
