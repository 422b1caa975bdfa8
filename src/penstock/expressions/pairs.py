"""Conditions over a pair of tuples: ``l`` is the left one, ``r`` the right one."""

from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.errors import BadExpression, UnknownColumn, WrongType
from penstock.expressions.conditions import parts_of
from penstock.expressions.parsing import Tree, check_quotes, dotted, render, shared_scalar
from penstock.expressions.scalar import is_unit, of_tree
from penstock.expressions.schema import Schema

__all__ = ["LEFT", "RIGHT", "PairCondition", "pair_condition"]

LEFT, RIGHT = "l", "r"


@dataclass(frozen=True, slots=True)
class PairCondition:
    """A condition as Spark SQL over the rows ``l`` and ``r``, and the columns that it reads of each."""

    sql: str
    left: tuple[str, ...]
    right: tuple[str, ...]

    def __str__(self) -> str:
        return self.sql

    def of_side(self, side: str) -> tuple[str, ...]:
        """The parts joined by AND that read one side alone, as SQL over its columns.

        >>> calls = Schema.parse("x double, y double")
        >>> pair_condition("l.x < r.x and l.y > 3 and (r.y > 1 or r.x > 1)", calls, calls).of_side(RIGHT)
        ('`y` > 1 OR `x` > 1',)
        """
        found = []
        for part in parts_of(shared_scalar(self.sql)):
            columns = [each for each in part.find_all(exp.Column) if not is_unit(each)]
            if columns and all(each.parts[0].name == side for each in columns):
                found.append(render(part.transform(_without_side)))
        return tuple(found)


def pair_condition(text: str, left: Schema, right: Schema) -> PairCondition:
    """Read a condition over a pair; a name without ``l.`` or ``r.`` must belong to one side only.

    >>> calls = Schema.parse("start timestamp, x double")
    >>> pair_condition("l.x < r.x and abs(l.x - r.x) > 3", calls, calls)
    PairCondition(sql='`l`.`x` < `r`.`x` AND ABS(`l`.`x` - `r`.`x`) > 3', left=('x',), right=('x',))
    """
    check_quotes(text, (*left.names, *right.names))
    named = shared_scalar(text).transform(lambda node: _sided(node, left, right))
    flat = Schema(
        tuple(replace(each, name=f"{LEFT}_{each.name}") for each in left.columns)
        + tuple(replace(each, name=f"{RIGHT}_{each.name}") for each in right.columns)
    )
    found = of_tree(named.transform(_flattened), flat)
    if found.type not in {None, "boolean"}:
        raise WrongType(f"expected a condition, got {text!r} of type {found.type}; compare it with something")
    read = [name.split("_", 1) for name in found.columns]
    return PairCondition(
        render(named),
        tuple(name for side, name in read if side == LEFT),
        tuple(name for side, name in read if side == RIGHT),
    )


def _sided(node: Tree, left: Schema, right: Schema) -> Tree:
    if not isinstance(node, exp.Column):
        return node
    if is_unit(node):
        return exp.var(node.name.upper())
    parts = [each.name for each in node.parts]
    sides = {LEFT: left, RIGHT: right}
    if parts[0].lower() in sides and len(parts) > 1:
        side, names = parts[0].lower(), parts[1:]
    else:
        holding = [side for side, schema in sides.items() if parts[0] in schema]
        if not holding:
            known = [f"{side}.{name}" for side, schema in sides.items() for name in schema.names]
            raise UnknownColumn.among(".".join(parts), known)
        if len(holding) > 1:
            raise BadExpression(f"{parts[0]!r} is a column of both sides; write l.{parts[0]} or r.{parts[0]}")
        side, names = holding[0], parts
    return dotted(side, sides[side].column(names[0]).name, *names[1:])


def _without_side(node: Tree) -> Tree:
    if not isinstance(node, exp.Column) or is_unit(node):
        return node
    return dotted(*(each.name for each in node.parts[1:]))


def _flattened(node: Tree) -> Tree:
    if not isinstance(node, exp.Column):
        return node
    side, name, *fields = [each.name for each in node.parts]
    return dotted(f"{side}_{name}", *fields)
