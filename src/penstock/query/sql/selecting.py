"""The select list of the query language: names of items, plain columns, and the aggregates of windows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from sqlglot import exp

from penstock.aggregates import ArrowAggregate
from penstock.aggregates.aggregate import Aggregate
from penstock.aggregates.sql_calls import UserAggregate, aggregate_of, is_aggregate
from penstock.errors import BadExpression, BadName, BadWindow
from penstock.expressions.parsing import Tree, call_name, dotted, parse_scalar, render
from penstock.expressions.schema import RESERVED_PREFIX
from penstock.operators import WINDOW_END, WINDOW_START
from penstock.query.relation import Derived, Relation
from penstock.query.sql.grouping import Grouping, is_grouping_call, sets_of
from penstock.query.sql.joining import JoinClause, equal_reads
from penstock.query.sql.scope import MERGED, Found, Names, Scope, found_in, mark, note
from penstock.query.sql.windows import WindowClause, is_certain_bound

__all__ = ["aggregated", "described", "expanded", "plain_select", "starred"]

_Item = tuple[str, Tree]
_BOUNDS: Final = (WINDOW_START, WINDOW_END)
# No column can have such a name, so a marked alias is never mistaken for one.
_MARK: Final = f"{RESERVED_PREFIX}item_"


def plain_select(scope: Scope, items: list[Tree]) -> Relation:
    """The relation with the items of a select list that has no aggregates.

    Pinned columns (the time of a join, the bounds of windows) come first in every select, so
    naming one of them changes nothing.
    """
    if [*map(_is_all, items)] == [True] and not scope.hidden:
        return scope.relation
    pinned = {each.lower() for each in scope.relation.pinned}
    found = [item for each in items for item in expanded(each, scope)]
    named = [(name, tree) for name, tree in found if not (name.lower() in pinned and _is(tree, name))]
    _check_item_names(named, taken=pinned)
    if not named:
        return scope.relation.select(*scope.relation.pinned)
    given = [name for name in scope.relation.schema.names if name not in scope.relation.pinned]
    if [name if _is(tree, name) else None for name, tree in named] == given:
        return scope.relation
    return scope.relation.select(**{name: render(tree) for name, tree in named})


def _check_item_names(items: Iterable[_Item], taken: Iterable[str]) -> None:
    """Raise BadName if two columns of the result would have one name."""
    seen = {each.lower() for each in taken}
    for name, _ in items:
        if name.lower() in seen:
            raise BadName(f"two result columns would have the name {name!r}; rename one with AS")
        seen.add(name.lower())


def _item_name(item: Tree, definitions: Mapping[str, UserAggregate]) -> str:
    """The name of an item: from AS, from its column, or from the aggregate and its argument."""
    if item.alias:
        return str(item.alias)
    if isinstance(item, exp.Column):
        return str(item.name)
    if is_aggregate(item, definitions):
        return described(item)
    raise BadName(f"{render(item)} needs a name; write {render(item)} AS name")


def described(item: Tree, taken: Iterable[str] = ()) -> str:
    """A name for an expression: its function and the columns that it reads; none of those that are taken.

    >>> described(parse_scalar("sum(price * 2)")), described(parse_scalar("price / 2"), ["value_price"])
    ('sum_price', 'value_price_2')
    """
    call = item.this if isinstance(item, (exp.Filter, exp.WithinGroup)) else item
    read = dict.fromkeys(each.name for each in item.find_all(exp.Column))
    wanted = "_".join([call_name(call) or "value", *read])
    known = {each.lower() for each in taken}
    places = (wanted if place == 1 else f"{wanted}_{place}" for place in count(1))
    return next(each for each in places if each.lower() not in known)


def starred(item: Tree, names: Names, joins: Sequence[JoinClause]) -> Iterable[Tree]:
    """The columns that ``t.*`` selects, and ``*`` of tables that are joined; any other item as it is.

    Of two columns that an inner join says are equal and that have one name, ``*`` shows the first. Another
    column whose name is taken gets that of its table behind it.
    """
    qualified = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    if isinstance(item, exp.Column) and qualified:
        table = item.parts[0].name
        tables = [each for each in names.tables if each.is_called(table)]
        if not tables:
            known = ", ".join(each.name for each in names.tables)
            raise BadName(f"no table {table!r} for {render(item)}; the tables are {known}")
    elif not _is_all(item) or not joins:
        return [item]
    else:
        tables = list(names.tables)
    same = set() if qualified else equal_reads(joins)
    found: dict[str, Tree] = {}
    for each in tables:
        for name in each.relation.schema.names:
            read = (each.number, name.lower())
            if read in same:
                continue
            if not qualified and name.lower() in names.merged:
                read = (MERGED, name.lower())
            shown = f"{name}_{each.name}" if name.lower() in found else name
            node = note(exp.column(name, table=each.name, quoted=True), Found(read, qualified=True))
            found[shown.lower()] = node if shown == name else exp.alias_(node, shown, quoted=True)
    return found.values()


def expanded(item: Tree, scope: Scope) -> list[_Item]:
    """The columns of the result that an item of a select list without aggregates stands for."""
    if isinstance(item, exp.Star):
        if not _is_all(item):
            raise BadExpression(
                f"{render(item)}: * takes all columns; name the ones you want{mark(item, scope.written)}"
            )
        return [(name, dotted(name)) for name in scope.visible]
    return [(_item_name(item, {}), scope.over(item.unalias()))]


def _is_all(item: Tree) -> bool:
    return isinstance(item, exp.Star) and not any(item.args.values())


def _is(tree: Tree, name: str) -> bool:
    return isinstance(tree, exp.Column) and not tree.table and tree.name.lower() == name.lower()


def aggregated(
    scope: Scope,
    statement: exp.Select,
    window: WindowClause | None,
    definitions: Mapping[str, UserAggregate],
    after: Iterable[Tree] = (),
) -> Derived:
    """The results of a SELECT with windows over the tables in its scope; without, groups that are updated.

    ``after`` are conditions on the bounds of windows.
    """
    bounds = frozenset(() if window is None else _BOUNDS)
    written = tuple(each.unalias() for each in statement.expressions)
    reader = _WindowReader(scope, definitions, bounds, written)
    items = reader.items(statement.expressions)
    if statement.args.get("distinct"):
        _check_plain(items, definitions)
        statement.set("group", exp.Group(expressions=[tree.copy() for _, tree in items]))
    keys, grouping = reader.keys(statement, items)
    results = _Results(keys, definitions, bounds, tuple(name for name, _ in items), grouping)
    results.name_aggregates(items)
    columns = {name: results.expression(name, tree) for name, tree in items}
    having = statement.args.get("having")
    conditions = [results.condition(reader.over(having.this, columns), columns)] if having else []
    conditions += [results.before(reader.over(each)) for each in after]
    relation, texts = scope.relation, {name: render(tree) for name, tree in keys.items()}
    if grouping is not None:
        relation = relation.explode(outer=False, **{grouping.column: grouping.array()})
        texts = grouping.keyed(texts)
    made = window.over(relation, texts) if window else _updated(relation, texts)
    return _with_tail(made.agg(**results.aggregates), conditions, columns)


def _updated(relation: Relation, keys: Mapping[str, str]) -> Any:
    """Groups without a window, whose results are updated."""
    grouped: Any = relation.group_by(**keys) if keys else relation
    return grouped


def _check_plain(items: list[_Item], definitions: Mapping[str, UserAggregate]) -> None:
    for _, tree in items:
        if any(is_aggregate(each, definitions) for each in tree.walk()):
            raise BadExpression(
                f"SELECT DISTINCT with {render(tree)}: results of aggregates are distinct by their keys; "
                "leave DISTINCT out"
            )


@dataclass(frozen=True)
class _WindowReader:
    """Reads the parts of the statement over the columns of the joined tables.

    ``written`` is the whole select list, which numbers in GROUP BY count; ``items`` leave out the bounds of
    windows.
    """

    scope: Scope
    definitions: Mapping[str, UserAggregate]
    bounds: frozenset[str]
    written: tuple[Tree, ...]

    def items(self, trees: list[Tree]) -> list[_Item]:
        for each in trees:
            if each.is_star:
                raise BadExpression("SELECT * is not supported with a window; name the keys and aggregates")
        named = [(_item_name(each, self.definitions), each.unalias()) for each in trees]
        kept = [(name, tree) for name, tree in named if not (name.lower() in self.bounds and _is(tree, name))]
        _check_item_names(kept, taken=self.bounds)
        return [(name, self.over(tree)) for name, tree in kept]

    def over(self, tree: Tree, aliases: Iterable[str] = ()) -> Tree:
        """The tree over the scope; outside aggregates the window's bounds stay and aliases are marked."""
        known = {name.lower() for name in aliases}

        def resolved(node: Tree) -> Tree:
            if is_aggregate(node, self.definitions):
                return self.scope.over(node)
            if _is_plain_column(node) and node.name.lower() in known:
                return exp.column(_MARK + node.name.lower(), quoted=True)
            if _is_plain_column(node) and node.name.lower() in self.bounds:
                return node
            return self.scope.over(node) if isinstance(node, exp.Column) else node

        return tree.transform(resolved)

    def keys(self, statement: exp.Select, items: list[_Item]) -> tuple[dict[str, Tree], Grouping | None]:
        """The keys by name, and the sets of them if there are several."""
        group = statement.args.get("group")
        sets = sets_of(group)
        if sets is None:
            return self._keys(group.expressions if group else [], items), None
        keys = self._keys([each for held in sets for each in held], items)
        trees = {render(node): self._key(node, items) for held in sets for node in held}
        names = {
            text: next(name for name, key in keys.items() if _same(key, tree)) for text, tree in trees.items()
        }
        found = tuple(frozenset(names[render(node)] for node in held) for held in sets)
        for place, each in enumerate(found):
            if each in found[:place]:
                written, shown = render(statement.args["group"]).strip(), ", ".join(map(render, sets[place]))
                raise BadExpression(f"{written} has the set ({shown}) twice; give each set once")
        column = "_grouping"
        while column in {each.lower() for each in (*keys, *self.scope.relation.schema.names)}:
            column = f"_{column}"
        return keys, Grouping(column, tuple(keys), found)

    def _keys(self, nodes: Iterable[Tree], items: list[_Item]) -> dict[str, Tree]:
        keys: dict[str, Tree] = {}
        for node in nodes:
            tree = self._key(node, items)
            if any(_same(each, tree) for each in keys.values()):
                continue
            if isinstance(node, exp.Literal) and self._is_bound(self._written(node)):
                continue
            if any(is_aggregate(each, self.definitions) for each in tree.walk()):
                raise BadExpression(f"GROUP BY {render(node)}: a key cannot be an aggregate")
            named = [name for name, each in items if _same(each, tree)]
            taken = (*keys, *(name for name, _ in items))
            own = tree.name if isinstance(tree, exp.Column) else described(tree, taken)
            name = named[0] if named else own
            if name in keys and not _same(keys[name], tree):
                raise BadName(f"two keys would have the name {name!r}; select them and rename one with AS")
            keys[name] = tree
        return keys

    def _written(self, number: exp.Literal) -> Tree:
        """The item of the select list that a number in GROUP BY counts."""
        place = int(number.name) if number.name.isdigit() else 0
        if not 1 <= place <= len(self.written):
            raise BadExpression(f"GROUP BY {number.name}: the select list has {len(self.written)} items")
        return self.written[place - 1]

    def _is_bound(self, item: Tree) -> bool:
        """Whether an item is a bound of the windows by its own name, not that of a column it has become."""
        return _is_plain_column(item) and item.name.lower() in self.bounds

    def _key(self, node: Tree, items: list[_Item]) -> Tree:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self.over(self._written(node))
        # As in Spark, a column of the tables takes precedence over an alias of the same name.
        if _is_plain_column(node) and found_in(node) is None:
            for name, tree in items:
                if name.lower() == node.name.lower():
                    return tree
        return self.scope.over(node)


@dataclass
class _Results:
    """The columns that the windows give, found while the statement's expressions are rewritten over them."""

    keys: dict[str, Tree]
    definitions: Mapping[str, UserAggregate]
    bounds: frozenset[str]
    items: tuple[str, ...]
    grouping: Grouping | None = None
    aggregates: dict[str, Aggregate | ArrowAggregate] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def name_aggregates(self, items: list[_Item]) -> None:
        """Give every aggregate that is a whole item the name of the item, for its other uses too."""
        for name, tree in items:
            if is_aggregate(tree, self.definitions) and not is_grouping_call(tree):
                self.aggregates[name] = aggregate_of(tree, self.definitions)
                self._names.setdefault(render(tree), name)

    def expression(self, name: str, tree: Tree) -> str:
        """One item of the select list, rewritten over the results."""
        if name in self.aggregates:
            return render(exp.column(name, quoted=True))
        return render(tree.transform(self._over_results))

    def condition(self, having: Tree, columns: Mapping[str, str]) -> str:
        """The HAVING clause over the results; it may use the names of the select list."""
        aliases = {_MARK + name.lower(): (name, text) for name, text in columns.items()}

        def over_aliases(node: Tree) -> Tree:
            if not _is_plain_column(node) or node.name not in aliases:
                return self._over_results(node)
            name, text = aliases[node.name]
            if name in self.keys or name in self.aggregates:
                return exp.column(name, quoted=True)
            return exp.paren(parse_scalar(text))

        return render(having.transform(over_aliases))

    def before(self, condition: Tree) -> str:
        """A condition of WHERE on the bounds of windows, over the results; what else it reads are keys."""
        read = [each for each in condition.find_all(exp.Column) if each.name.lower() not in self.bounds]
        where = f"WHERE {render(condition)} is about windows, which are known when rows are grouped"
        if any(is_aggregate(each, self.definitions) for each in condition.walk()):
            raise BadExpression(f"{where}; put a condition on aggregates into HAVING")
        if read and self.grouping is not None:
            raise BadWindow(
                f"{where}, and {render(read[0])} is not a key of each set; write conditions on columns and "
                "on bounds apart"
            )
        try:
            return self.condition(condition, {})
        except BadExpression as missing:
            raise BadWindow(f"{where}: {missing}") from missing

    def _over_results(self, node: Tree) -> Tree:
        for name, key in self.keys.items():
            if _same(node, key):
                return exp.column(name, quoted=True)
        if is_grouping_call(node):
            return self._grouping_call(node)
        if is_aggregate(node, self.definitions):
            return exp.column(self._hidden(node), quoted=True)
        if isinstance(node, exp.Column) and node.name.lower() not in self.bounds:
            raise BadExpression(
                f"{render(node)} is neither in GROUP BY nor inside an aggregate; put it into one of them"
            )
        return node

    def _grouping_call(self, call: Tree) -> Tree:
        found = [[name for name, key in self.keys.items() if _same(each, key)] for each in call.expressions]
        if self.grouping is None or [] in found:
            raise BadExpression(
                f"{render(call)} asks for keys of GROUPING SETS, CUBE or ROLLUP; the keys are "
                f"{', '.join(self.keys) if self.grouping else 'not in one of them'}"
            )
        return self.grouping.call(call, [names[0] for names in found])

    def _hidden(self, call: Tree) -> str:
        spelling = render(call)
        if spelling not in self._names:
            taken = (*self.keys, *self.items, *self.aggregates)
            self._names[spelling] = described(call, taken)
            self.aggregates[self._names[spelling]] = aggregate_of(call, self.definitions)
        return self._names[spelling]


def _with_tail(results: Derived, conditions: Iterable[str], columns: dict[str, str]) -> Derived:
    given = [name for name in results.schema.names if name not in results.pinned]
    for each in conditions:
        results = results.where(each)
    plain = [name for name, text in columns.items() if text == render(exp.column(name, quoted=True))]
    return results if plain == list(columns) == given else results.select(**columns)


def _is_plain_column(node: Tree) -> bool:
    return isinstance(node, exp.Column) and not node.table


def _same(left: Tree, right: Tree) -> bool:
    return _folded(left) == _folded(right)


def _folded(tree: Tree) -> str:
    """The tree as text: names have no case, and what parentheses say is in the tree.

    A bound of windows is no column of a table, even if the table has one of this name.
    """
    held = exp.paren(tree)
    for node in list(held.this.walk()):
        if is_certain_bound(node):
            node.this.set("this", f"{node.name} of the window")
        if isinstance(node, (exp.Identifier, exp.Anonymous)):
            node.set("this", node.name.lower())
        if isinstance(node, exp.Identifier):
            node.set("quoted", True)
        if isinstance(node, exp.Paren):
            node.replace(node.this)
    return repr(held.this)
