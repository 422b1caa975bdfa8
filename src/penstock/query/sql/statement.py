"""Statements of the query language become relations: SELECT, UNION ALL, WITH, sub-queries in FROM."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from penstock.aggregates.sql_calls import UserAggregate, is_aggregate
from penstock.errors import BadExpression, BadJoin, BadName, BadWindow
from penstock.expressions.parsing import Tree, marked, render
from penstock.query.relation import Relation
from penstock.query.sql.clauses import BOUNDS, EXAMPLE, BoundClause, Clauses
from penstock.query.sql.joining import JoinClause, joined
from penstock.query.sql.scope import FromTable, Scope, mark, reads
from penstock.query.sql.selecting import aggregated, plain_select, starred

__all__ = ["Statement"]

_CLAUSES: Final = frozenset({"expressions", "from_", "joins", "where", "group", "having", "with_"})
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

    def relation(self, tree: Tree) -> Relation:
        """The relation of a SELECT, or of several with UNION ALL."""
        if isinstance(tree, exp.Subquery) and not _has_more(tree, "this"):
            return self.relation(tree.this)
        if isinstance(tree, exp.SetOperation):
            return self._union(tree)
        if isinstance(tree, exp.Select):
            return self._select(tree)
        raise BadExpression(f"this is not a single SELECT or a UNION ALL of them; {_SUPPORTED}")

    def scope(self, tree: exp.Select) -> tuple[Scope, Clauses]:
        """The tables of a SELECT, joined and filtered by WHERE, and the clauses cut out of it."""
        _hoist_joins(tree)
        _check(tree)
        inner, clauses = self._with_tables(tree), next(self.clauses)
        self._check_from(clauses)
        tables = [tree.args["from_"].this, *(each.this for each in tree.args.get("joins") or ())]
        sources = tuple(inner._source(each) for each in tables)  # noqa: SLF001 -- another of this class
        if len(sources) > 1:
            _check_tables(sources)
        tree.set("expressions", [each for item in tree.expressions for each in starred(item, sources)])
        parts = [*tree.expressions, *(tree.args[each] for each in _PARTS if tree.args.get(each))]
        read = reads(parts, sources, but=sources[0].relation.time)
        scope = joined(sources, self._joins(tree, clauses), read, self.written)
        where = tree.args.get("where")
        if where is None:
            return scope, clauses
        return replace(scope, relation=scope.relation.where(render(scope.over(where.this)))), clauses

    def _select(self, tree: exp.Select) -> Relation:
        scope, clauses = self.scope(tree)
        if clauses.window is not None:
            return aggregated(scope, tree, clauses.window, self.definitions)
        nodes = [node for item in tree.expressions for node in item.walk()]
        found = [each for each in nodes if is_aggregate(each, self.definitions)]
        found += [tree.args[each] for each in ("group", "having") if tree.args.get(each)]
        if found:
            shown = render(found[0]).strip()
            raise BadWindow(f"{shown} has no window; write one after the stream's name: {EXAMPLE}")
        return plain_select(scope, tree.expressions)

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
            return FromTable((table.alias,) if table.alias else (), self.relation(table.this))
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise BadExpression(f"FROM must name one stream, or a SELECT in parentheses; {_SUPPORTED}")
        _check_alias(table)
        relation = self.relations.get(table.name.lower())
        if relation is None:
            known = ", ".join(self.relations) or "none; pass them after the text"
            raise BadName(f"no stream {table.name!r}; the streams are {known}{mark(table, self.written)}")
        return FromTable((table.alias, table.name) if table.alias else (table.name,), relation)

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
    if group and (_has_more(group, "expressions") or any(map(_is_grouping, group.expressions))):
        raise BadExpression(f"{render(group).strip()}: GROUP BY takes keys only; {_SUPPORTED}")
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


def _is_grouping(node: Tree) -> bool:
    return isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))
