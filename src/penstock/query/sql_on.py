"""The condition of a JOIN: equalities between its two sides are keys, all else is over the pair."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import UnknownColumn
from penstock.expressions.pairs import LEFT, RIGHT
from penstock.expressions.parsing import Tree, dotted
from penstock.expressions.scalar import is_unit
from penstock.query.sql_scope import Scope, Source, find, one

__all__ = ["OnClause", "read_on", "using_column"]


@dataclass(frozen=True)
class OnClause:
    """Pairs of expressions, the left one over the left side and the right one over the right; the rest."""

    keys: tuple[tuple[Tree, Tree], ...]
    condition: Tree | None


def read_on(left: Scope, right: Source, on: Tree | None, using: tuple[str, ...]) -> OnClause:
    """Part an ON or USING clause; a left column is a key once, further equalities with it are conditions."""
    keys = [_using(name, left, right) for name in using]
    rest: list[Tree] = []
    for each in _conjuncts(on):
        sided = each.copy().transform(lambda node: _sided(node, left, right))
        pair = _pair(sided)
        if pair and not (isinstance(pair[0], exp.Column) and any(pair[0] == key for key, _ in keys)):
            keys.append(pair)
        else:
            rest.append(sided)
    return OnClause(tuple(keys), exp.and_(*rest) if rest else None)


def using_column(name: str, left: Scope) -> str:
    """The column of the left side that USING names."""
    node = exp.column(name)
    return left.column(find(node, left.sources), node)


def _using(name: str, left: Scope, right: Source) -> tuple[Tree, Tree]:
    if name not in right.relation.schema:
        raise UnknownColumn.among(name, right.relation.schema.names)
    return dotted(using_column(name, left)), dotted(right.relation.schema.column(name).name)


def _conjuncts(tree: Tree | None) -> Iterator[Tree]:
    # INNER JOIN without a condition parses as ON TRUE.
    if tree is None or (isinstance(tree, exp.Boolean) and tree.this):
        return
    if isinstance(tree, exp.Paren) and isinstance(tree.unnest(), (exp.And, exp.EQ)):
        yield from _conjuncts(tree.unnest())
    elif isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    else:
        yield tree


def _sided(node: Tree, left: Scope, right: Source) -> Tree:
    if not isinstance(node, exp.Column) or is_unit(node):
        return node
    sources = (*left.sources, right)
    found = find(node, sources)
    of_right = len(left.sources) in found.owners
    if not found.qualified and not of_right and found.column.lower() in left.whole:
        return dotted(LEFT, left.whole[found.column.lower()], *found.fields)
    owner, column = one(found, node, sources, left.written)
    if owner == len(left.sources):
        return dotted(RIGHT, right.relation.schema.column(column).name, *found.fields)
    return dotted(LEFT, left.places[owner, column], *found.fields)


def _pair(tree: Tree) -> tuple[Tree, Tree] | None:
    if not isinstance(tree, exp.EQ):
        return None
    sides = (_sides(tree.this), _sides(tree.expression))
    if sides == ({LEFT}, {RIGHT}):
        return _bare(tree.this), _bare(tree.expression)
    if sides == ({RIGHT}, {LEFT}):
        return _bare(tree.expression), _bare(tree.this)
    return None


def _sides(tree: Tree) -> set[str]:
    return {each.parts[0].name for each in tree.find_all(exp.Column) if not is_unit(each)}


def _bare(tree: Tree) -> Tree:
    def without_side(node: Tree) -> Tree:
        if not isinstance(node, exp.Column) or is_unit(node):
            return node
        return dotted(*(each.name for each in node.parts[1:]))

    return tree.unnest().copy().transform(without_side)
