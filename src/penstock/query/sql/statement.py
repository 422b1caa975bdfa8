"""Statements of the query language become relations: SELECT, UNION ALL, WITH, sub-queries in FROM."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from penstock.aggregates.sql_calls import UserAggregate, is_aggregate
from penstock.errors import BadExpression, BadJoin, BadName, BadWindow
from penstock.expressions.parsing import Tree, call_name, marked, place_of, render
from penstock.query.relation import Grouped, Relation
from penstock.query.sql.assigning import assigned
from penstock.query.sql.clauses import BOUNDS, EXAMPLE, BoundClause, Clauses
from penstock.query.sql.joining import JoinClause, joined
from penstock.query.sql.ranking import first_rows, is_row_number, ranked_select, take_limit
from penstock.query.sql.scope import FromTable, Scope, mark, reads
from penstock.query.sql.selecting import aggregated, plain_select, starred
from penstock.query.sql.windows import (
    WINDOW_BOUNDS,
    TableFunction,
    WindowClause,
    conjuncts,
    is_bound,
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


@dataclass(frozen=True)
class Statement:
    """A statement during parsing: the relations that it may name, and the clauses cut out of its SELECTs.

    SELECTs are read in the order of the text, since that is the order of ``clauses``.
    """

    written: str
    relations: Mapping[str, Relation]
    definitions: Mapping[str, UserAggregate]
    clauses: Iterator[Clauses]
    functions: Mapping[int, TableFunction] = field(default_factory=dict)

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
            sources = tuple(inner._source(each) for each in tables)  # noqa: SLF001 -- another of this class
        if len(sources) > 1:
            _check_tables(sources)
        tree.set("expressions", [each for item in tree.expressions for each in starred(item, sources)])
        self._name_bounds(tree, clauses, sources)
        after = _after(tree, sources)
        parts = [*tree.expressions, *(tree.args[each] for each in _PARTS if tree.args.get(each))]
        read = reads(parts, sources, but=sources[0].relation.time)
        scope = joined(sources, self._joins(tree, clauses), read, self.written)
        where = tree.args.get("where")
        if where is not None:
            scope = replace(scope, relation=scope.relation.where(render(scope.over(where.this))))
        return Reading(scope, *self._window(tree, clauses, scope), after)

    def _name_bounds(self, tree: exp.Select, clauses: Clauses, sources: tuple[FromTable, ...]) -> None:
        """Write the bounds of windows one way, if the statement has windows."""
        group = tree.args.get("group")
        calls = [window_name(each) for each in (group.expressions if group else ())]
        bounded = [
            each for each in sources if each.function or set(WINDOW_BOUNDS) <= set(each.relation.pinned)
        ]
        if not bounded and not any(calls) and clauses.window is None:
            return
        names = [name for each in bounded for name in each.names]
        named = [_named(each) for each in tree.expressions]
        tree.set("expressions", [named_bounds(each, names) for each in named])
        for part in _PARTS:
            if tree.args.get(part):
                tree.set(part, named_bounds(tree.args[part], names))

    def _window(
        self, tree: exp.Select, clauses: Clauses, scope: Scope
    ) -> tuple[WindowClause | None, TableFunction | None]:
        """The windows of a SELECT, which are taken out of its GROUP BY, and the table function they are of."""
        group = tree.args.get("group")
        keys = list(group.expressions) if group else []
        calls = [window_call(each, scope.relation, self.written) for each in keys]
        found = [each for each in calls if each is not None]
        function = next((each.function for each in scope.sources if each.function), None)
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
            reading.check_sessions(tree)
        if reading.window is None:
            if distinct:
                raise BadWindow(
                    "SELECT DISTINCT has no window, so it would have to keep every row forever; write one "
                    f"after the stream's name: {EXAMPLE}, or drop duplicates with deduplicate()"
                )
            if not calls and not clauses:
                return plain_select(reading.scope, tree.expressions)
            if not tree.args.get("group") or not hasattr(Grouped, "agg"):
                shown = render([*calls, *clauses][0]).strip()
                raise BadWindow(f"{shown} has no window; write one after the stream's name: {EXAMPLE}")
        return aggregated(reading.scope, tree, reading.window, self.definitions, reading.after)

    def _ranked(self, tree: exp.Select, ranked: exp.Subquery) -> FromTable:
        """The table of the first rows of windows, which a WHERE on their number asks for."""
        _check_alias(ranked)
        select = ranked.this
        number = next(each for each in select.expressions if is_row_number(each))
        most = take_limit(tree, number, ranked.alias)
        select.set("expressions", [each for each in select.expressions if each is not number])
        reading = self.read(select)
        found = first_rows(reading.scope, select.expressions, number, most, reading.window)
        for each in reading.after:
            found = found.where(render(each))
        return FromTable((ranked.alias,) if ranked.alias else (), found)

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
            return FromTable((table.alias,) if table.alias else (), self.relation(table.this))
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise BadExpression(f"FROM must name one stream, or a SELECT in parentheses; {_SUPPORTED}")
        _check_alias(table)
        relation = self.relations.get(table.name.lower())
        if relation is None:
            known = ", ".join(self.relations) or "none; pass them after the text"
            raise BadName(f"no stream {table.name!r}; the streams are {known}{mark(table, self.written)}")
        names = (table.alias, table.name) if table.alias else (table.name,)
        function = self.functions.get(place_of(table.this) or -1)
        if function is not None:
            function.check(relation, table.name)
        return FromTable(names, relation, function)

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
        (source,) = reading.scope.sources
        names = (table.alias,) if table.alias else ()
        return FromTable(names, reading.scope.relation, source.function, tuple(reading.after))

    def _joins(self, tree: exp.Select, clauses: Clauses) -> list[JoinClause]:
        joins = tree.args.get("joins") or ()
        return [self._join(each, clauses.bounds.get(number)) for number, each in enumerate(joins)]

    def _join(self, join: exp.Join, bound: BoundClause | None) -> JoinClause:
        kind, side = join.args.get("kind") or "", join.args.get("side") or ""
        odd = kind not in {"", "INNER", "CROSS"} and not (kind == "OUTER" and side)
        if odd or _has_more(join, "this", "kind", "side", "on", "using"):
            raise BadJoin(
                f"{render(join).strip()}: supported are [INNER] JOIN, CROSS JOIN, and LEFT, RIGHT and FULL "
                f"[OUTER] JOIN{mark(join, self.written)}"
            )
        if bound is None:
            raise BadJoin(
                f"JOIN {join.this.alias_or_name} has no bound; write {BOUNDS} after its condition"
                f"{mark(join.this, self.written)}"
            )
        using = tuple(each.name for each in join.args.get("using") or ())
        return JoinClause(side.lower() or "inner", join.args.get("on"), using, bound)

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

    def check_sessions(self, tree: exp.Select) -> None:
        """Raise BadWindow unless the keys of sessions are those of GROUP BY."""
        if self.window is None or self.window.kind != "session" or self.function is None:
            return
        group = tree.args.get("group")
        keys = {each.name.lower() for each in group.find_all(exp.Column)} if group else set()
        wanted = {each.lower() for each in self.function.partition}
        if keys != wanted:
            shown = ", ".join(sorted(keys)) or "no key"
            raise BadWindow(
                f"SESSION has PARTITION BY {', '.join(self.function.partition) or 'nothing'} and GROUP BY has "
                f"{shown}; sessions are those of a key, so give both the same keys"
            )


def _named(item: Tree) -> Tree:
    """An item that has a name, if it is the time of a window or the window itself."""
    if item.alias:
        return item
    name = call_name(item) or (item.name.lower() if isinstance(item, exp.Column) else "")
    if name in {"window", "window_time"} or name.endswith("_rowtime"):
        return exp.alias_(item.copy(), name)
    return item


def _after(tree: exp.Select, sources: tuple[FromTable, ...]) -> tuple[Tree, ...]:
    """The conditions of WHERE on the bounds of windows that a table function makes, taken out of it."""
    found = [each for source in sources for each in source.after]
    where = tree.args.get("where")
    if where is None or not any(each.function for each in sources):
        return tuple(found)
    known = {name.lower() for source in sources for name in source.relation.schema.names}
    before: list[Tree] = []
    for each in conjuncts(where.this):
        names = {node.name.lower() for node in each.find_all(exp.Column) if not node.table}
        (found if names & set(WINDOW_BOUNDS) - known else before).append(each)
    tree.set("where", exp.Where(this=exp.and_(*before)) if before else None)
    return tuple(found)


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
            f"{render(group).strip()}: GROUP BY takes keys, windows, GROUPING SETS, CUBE and ROLLUP; {_SUPPORTED}"
        )
    if tree.args.get("from_") is None:
        raise BadExpression(f"{render(tree)}: FROM must name one stream; {_SUPPORTED}")
    joins = tree.args.get("joins") or ()
    optional = (*(tree.args.get(each) for each in _PARTS), *(each.args.get("on") for each in joins))
    for part in (*tree.expressions, *filter(None, optional)):
        inner = part.find(exp.Query)
        if inner is not None:
            raise BadExpression(
                f"{render(inner)}: a sub-query is allowed only in FROM or WITH; join with it instead"
            )


def _check_tables(sources: tuple[FromTable, ...]) -> None:
    seen: set[str] = set()
    for each in sources:
        if not each.name:
            raise BadName("a sub-query that is joined needs a name; write (SELECT …) AS name")
        if each.name.lower() in seen:
            raise BadName(f"two tables have the name {each.name!r}; rename one with AS")
        seen.add(each.name.lower())


def _check_alias(table: Tree) -> None:
    alias = table.args.get("alias")
    if _has_more(table, "this", "alias") or (alias is not None and alias.args.get("columns")):
        raise BadExpression(
            f"{render(table)}: a table of FROM or WITH has a name and an alias only; {_SUPPORTED}"
        )


def _has_more(node: Tree, *parts: str) -> bool:
    return any(value for name, value in node.args.items() if name not in parts)
