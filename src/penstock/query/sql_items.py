"""The select list of the query language: what each item is called, and what ``*`` stands for."""

from collections.abc import Iterable, Mapping

from sqlglot import exp

from penstock.errors import BadExpression, BadName
from penstock.expressions.parsing import Tree, call_name, dotted, render
from penstock.query.relation import Relation
from penstock.query.sql_calls import Definition, is_aggregate
from penstock.query.sql_scope import Scope, Source, mark

__all__ = ["Item", "check_item_names", "item_name", "plain_select", "starred"]

Item = tuple[str, Tree]


def plain_select(scope: Scope, items: list[Tree]) -> Relation:
    """The relation with the items of a select list that has no aggregates.

    Pinned columns (the time of a join, the bounds of windows) are first in whatever is selected, so
    naming one of them changes nothing.
    """
    if [*map(_is_all, items)] == [True] and not scope.hidden:
        return scope.relation
    pinned = {each.lower() for each in scope.relation.pinned}
    found = [item for each in items for item in _expanded(each, scope)]
    named = [(name, tree) for name, tree in found if not (name.lower() in pinned and _is(tree, name))]
    check_item_names(named, taken=pinned)
    if not named:
        return scope.relation.select(*scope.relation.pinned)
    return scope.relation.select(**{name: render(tree) for name, tree in named})


def check_item_names(items: Iterable[Item], taken: Iterable[str]) -> None:
    """Raise BadName if two columns of the result would have one name."""
    seen = {each.lower() for each in taken}
    for name, _ in items:
        if name.lower() in seen:
            raise BadName(f"two result columns would have the name {name!r}; rename one with AS")
        seen.add(name.lower())


def item_name(item: Tree, definitions: Mapping[str, Definition]) -> str:
    """What an item is called: by AS, as its column, or as the aggregate and what it reads."""
    if item.alias:
        return str(item.alias)
    if isinstance(item, exp.Column):
        return str(item.name)
    if is_aggregate(item, definitions):
        read = [each.name for each in item.find_all(exp.Column)]
        return "_".join([call_name(item) or "", *dict.fromkeys(read)])
    raise BadName(f"{render(item)} needs a name; write {render(item)} AS name")


def starred(item: Tree, sources: Iterable[Source]) -> Iterable[Tree]:
    """The columns of a table that ``t.*`` stands for, the item itself if it is something else.

    The own time of a joined table is left out: the result has that of the pair.
    """
    tables = tuple(sources)
    if not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        return [item]
    table = item.parts[0].name
    for each in tables:
        if table in each:
            names = each.relation.schema.names
            kept = [name for name in names if len(tables) == 1 or name != each.relation.time]
            return [exp.column(name, table=table, quoted=True) for name in kept]
    known = ", ".join(each.name for each in tables)
    raise BadName(f"no table {table!r} for {render(item)}; the tables are {known}")


def _expanded(item: Tree, scope: Scope) -> list[Item]:
    if isinstance(item, exp.Star):
        if not _is_all(item):
            raise BadExpression(
                f"{render(item)}: * takes all columns; name those you want{mark(item, scope.written)}"
            )
        return [(name, dotted(name)) for name in scope.visible]
    return [(item_name(item, {}), scope.over(item.unalias()))]


def _is_all(item: Tree) -> bool:
    return isinstance(item, exp.Star) and not any(item.args.values())


def _is(tree: Tree, name: str) -> bool:
    return isinstance(tree, exp.Column) and not tree.table and tree.name.lower() == name.lower()
