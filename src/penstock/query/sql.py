"""The query language: SQL in which the window stands after the stream's name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression, BadName
from penstock.query.aggregate_call import Aggregate
from penstock.query.aggregation import WINDOW_END, WINDOW_START
from penstock.query.parsing import Tree, call_name, parse_scalar, parse_statement, render
from penstock.query.range_clause import cut_range_clause
from penstock.query.relation import Derived, Relation
from penstock.query.schema import Schema
from penstock.query.sql_calls import Definition, aggregate_of, check_definitions, is_aggregate
from penstock.query.stream import Stream
from penstock.query.user_aggregates import ArrowAggregate

__all__ = ["sql"]

_CLAUSES: Final = frozenset({"expressions", "from_", "where", "group", "having"})
_SUPPORTED: Final = "supported is SELECT … FROM stream [RANGE … SLIDE …] WHERE … GROUP BY … HAVING …"
_SPELLED: Final = {"order": "ORDER BY", "joins": "JOIN", "laterals": "LATERAL VIEW", "windows": "WINDOW"}
_BOUNDS: Final = (WINDOW_START, WINDOW_END)


def sql(text: str, *streams: Stream, **definitions: Definition) -> Derived:
    """The query that a statement states over one of the streams.

    ``[RANGE size SLIDE slide OFFSET offset]`` is the window; without SLIDE windows do not overlap.
    window_start and window_end always come first in the results. ``definitions`` gives names to
    user-defined aggregates. Approximate, with the errors that their methods state, are
    count(DISTINCT x) and approx_count_distinct(x), quantile(x, q) and top_k(x, k).

    >>> from penstock.query.stream import stream
    >>> reports = stream("reports", "time timestamp, vehicle string, speed double", time="time")
    >>> sql("SELECT vehicle, avg(speed) AS mean FROM reports [RANGE 5 MINUTES] GROUP BY vehicle", reports)
    reports.group_by(vehicle).window(5 minutes slide 5 minutes).agg(mean=avg(`speed`))
    """
    check_definitions(definitions)
    rest, clause = cut_range_clause(text)
    statement = _select(rest, text)
    relation = _relation(statement, streams)
    named = {name.lower(): each for name, each in definitions.items()}
    items = _items(statement, named)
    keys = _keys(statement, items, relation.schema, named)
    results = _Results(keys, named)
    results.name_aggregates(items)
    columns = {name: results.expression(name, tree) for name, tree in items}
    having = statement.args.get("having")
    condition = results.condition(having.this, columns) if having else None
    windowed = relation.window(clause.size, clause.slide, clause.offset)
    if keys:
        windowed = windowed.group_by(**{name: render(tree) for name, tree in keys.items()})
    query = windowed.agg(**results.aggregates)
    return _with_tail(query, condition, columns)


@dataclass
class _Results:
    """The columns that the windows give, found while the statement's expressions are rewritten over them."""

    keys: dict[str, Tree]
    definitions: Mapping[str, Definition]
    aggregates: dict[str, Aggregate | ArrowAggregate] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def name_aggregates(self, items: list[tuple[str, Tree]]) -> None:
        """Give every aggregate that is an item by itself the item's name, for all other uses of it too."""
        for name, tree in items:
            if is_aggregate(tree, self.definitions):
                self.aggregates[name] = aggregate_of(tree, self.definitions)
                self._names.setdefault(render(tree), name)

    def expression(self, name: str, tree: Tree) -> str:
        """One item of the select list, rewritten over the results."""
        if name in self.aggregates:
            return render(exp.column(name, quoted=True))
        return render(tree.copy().transform(self._over_results))

    def condition(self, having: Tree, columns: Mapping[str, str]) -> str:
        """The HAVING clause over the results; it may use the names of the select list."""
        aliases = {name.lower(): (name, text) for name, text in columns.items()}

        def over_aliases(node: Tree) -> Tree:
            if not _is_plain_column(node) or node.name.lower() not in aliases:
                return self._over_results(node)
            name, text = aliases[node.name.lower()]
            if name in self.keys or name in self.aggregates:
                return exp.column(name, quoted=True)
            return exp.paren(parse_scalar(text))

        return render(having.transform(over_aliases))

    def _over_results(self, node: Tree) -> Tree:
        for name, key in self.keys.items():
            if _same(node, key):
                return exp.column(name, quoted=True)
        if is_aggregate(node, self.definitions):
            return exp.column(self._hidden(node), quoted=True)
        if isinstance(node, exp.Column) and node.name.lower() not in _BOUNDS:
            raise BadExpression(
                f"{render(node)} is neither in GROUP BY nor inside an aggregate; put it into one of them"
            )
        return node

    def _hidden(self, call: Tree) -> str:
        spelling = render(call)
        if spelling not in self._names:
            self._names[spelling] = f"_agg{1 + sum(name.startswith('_agg') for name in self.aggregates)}"
            self.aggregates[self._names[spelling]] = aggregate_of(call, self.definitions)
        return self._names[spelling]


def _select(text: str, written: str) -> exp.Select:
    statement = parse_statement(text, written)
    if not isinstance(statement, exp.Select):
        raise BadExpression(f"this is no single SELECT; {_SUPPORTED}")
    for name, value in statement.args.items():
        if value and name not in _CLAUSES:
            clause = _SPELLED.get(name, name.strip("_").upper())
            raise BadExpression(f"{clause} is not supported; {_SUPPORTED}")
    group = statement.args.get("group")
    if group and (_has_more(group, "expressions") or any(map(_is_grouping, group.expressions))):
        raise BadExpression(f"{render(group).strip()}: GROUP BY takes keys only; {_SUPPORTED}")
    return statement


def _relation(statement: exp.Select, streams: tuple[Stream, ...]) -> Relation:
    source = statement.args.get("from_")
    table = source.this if source else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise BadExpression(f"FROM has to name one stream; {_SUPPORTED}")
    if _has_more(table, "this", "alias"):
        raise BadExpression(f"FROM {render(table)}: a stream has a name and an alias only; {_SUPPORTED}")
    found = [each for each in streams if each.name.lower() == table.name.lower()]
    if not found:
        known = ", ".join(each.name for each in streams) or "none; pass them after the text"
        raise BadName(f"no stream {table.name!r}; the streams are {known}")
    _drop_qualifiers(statement, {table.name.lower(), table.alias_or_name.lower()}, found[0].schema)
    where = statement.args.get("where")
    return found[0].where(render(where.this)) if where else found[0]


def _drop_qualifiers(statement: exp.Select, qualifiers: set[str], schema: Schema) -> None:
    for node in list(statement.find_all(exp.Column)):
        parts = node.parts
        if len(parts) > 1 and parts[0].name.lower() in qualifiers and parts[0].name not in schema:
            keys = ("this", "table", "db", "catalog")
            kept = dict(zip(keys, reversed(parts[1:]), strict=False))
            node.replace(exp.Column(**{key: part.copy() for key, part in kept.items()}))


def _items(statement: exp.Select, definitions: Mapping[str, Definition]) -> list[tuple[str, Tree]]:
    items = [(_name(each, definitions), each.unalias()) for each in statement.expressions]
    items = [(name, tree) for name, tree in items if name.lower() not in _BOUNDS or not _is_bound(tree, name)]
    seen: set[str] = set()
    for name, _ in items:
        if name.lower() in seen or name.lower() in _BOUNDS:
            raise BadName(f"two result columns would have the name {name!r}; rename one with AS")
        seen.add(name.lower())
    return items


def _name(item: Tree, definitions: Mapping[str, Definition]) -> str:
    if isinstance(item, exp.Star):
        raise BadExpression("SELECT * is not supported; name the keys and aggregates")
    if item.alias:
        return str(item.alias)
    if isinstance(item, exp.Column):
        return str(item.name)
    if is_aggregate(item, definitions):
        read = [each.name for each in item.find_all(exp.Column)]
        return "_".join([call_name(item) or "", *dict.fromkeys(read)])
    raise BadName(f"{render(item)} needs a name; write {render(item)} AS name")


def _keys(
    statement: exp.Select,
    items: list[tuple[str, Tree]],
    schema: Schema,
    definitions: Mapping[str, Definition],
) -> dict[str, Tree]:
    keys: dict[str, Tree] = {}
    group = statement.args.get("group")
    for number, node in enumerate(group.expressions if group else [], start=1):
        tree = _key(node, items, schema)
        if any(is_aggregate(each, definitions) for each in tree.walk()):
            raise BadExpression(f"GROUP BY {render(node)}: a key cannot be an aggregate")
        named = [name for name, each in items if _same(each, tree)]
        own = tree.name if isinstance(tree, exp.Column) else f"_key{number}"
        name = named[0] if named else own
        if name in keys and not _same(keys[name], tree):
            raise BadName(f"two keys would have the name {name!r}; select them and rename one with AS")
        keys[name] = tree
    return keys


def _key(node: Tree, items: list[tuple[str, Tree]], schema: Schema) -> Tree:
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name) if node.name.isdigit() else 0
        if not 1 <= place <= len(items):
            raise BadExpression(f"GROUP BY {node.name}: the select list has {len(items)} items")
        return items[place - 1][1]
    # As in Spark, a column of the stream goes before an alias of the same name.
    if _is_plain_column(node) and node.name not in schema:
        for name, tree in items:
            if name.lower() == node.name.lower():
                return tree
    return node


def _with_tail(results: Derived, condition: str | None, columns: dict[str, str]) -> Derived:
    given = [name for name in results.schema.names if name not in _BOUNDS]
    if condition is not None:
        results = results.where(condition)
    plain = [name for name, text in columns.items() if text == render(exp.column(name, quoted=True))]
    return results if plain == list(columns) == given else results.select(**columns)


def _has_more(node: Tree, *parts: str) -> bool:
    return any(value for name, value in node.args.items() if name not in parts)


def _is_grouping(node: Tree) -> bool:
    return isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))


def _is_plain_column(node: Tree) -> bool:
    return isinstance(node, exp.Column) and not node.table


def _is_bound(tree: Tree, name: str) -> bool:
    return _is_plain_column(tree) and tree.name.lower() == name.lower()


def _same(left: Tree, right: Tree) -> bool:
    # Names resolve without regard to case; everything else renders as it was written.
    return type(left) is type(right) and _folded(left) == _folded(right)


def _folded(tree: Tree) -> str:
    def fold(node: Tree) -> Tree:
        return exp.to_identifier(node.name.lower(), quoted=True) if isinstance(node, exp.Identifier) else node

    return render(tree.copy().transform(fold))
