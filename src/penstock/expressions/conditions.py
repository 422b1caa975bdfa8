"""Takes conditions apart and carries them over: conjuncts, replaced names, and whether they may raise.

A condition may be evaluated on more tuples than before only if it raises for none of them and gives the same
in Spark and in DuckDB. Comparisons of known types meet this; casts, divisions and most functions may not.
"""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from penstock.expressions import types
from penstock.expressions.inference import type_of
from penstock.expressions.mismatches import COMPARISONS, operands_of
from penstock.expressions.parsing import Tree, call_name, parse_scalar, shared_scalar
from penstock.expressions.scalar import Expression, of_tree
from penstock.expressions.schema import Schema

__all__ = ["conjunction", "conjuncts", "is_total", "parts_of", "substituted"]

_PLAIN: Final = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.Is,
)
# Expressions that need no parentheses inside another expression.
_CLOSED: Final = (exp.Column, exp.Literal, exp.Cast, exp.Anonymous, exp.Paren)
_NULL_TESTS: Final = frozenset({"isnotnull", "isnull"})
_FIRST_VALID: Final = frozenset({"coalesce", "ifnull", "nvl"})
_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")


def conjuncts(condition: str, schema: Schema) -> tuple[Expression, ...]:
    """The conditions that must all be true, in the order of the text.

    >>> calls = Schema.parse("phone string, seconds int")
    >>> [str(each) for each in conjuncts("seconds > 3 and phone <> ''", calls)]
    ['`seconds` > 3', "`phone` <> ''"]
    """
    return tuple(of_tree(each, schema) for each in parts_of(shared_scalar(condition)))


def conjunction(conditions: tuple[Expression, ...], schema: Schema) -> Expression:
    """One condition for several, evaluated in their order."""
    closed = [f"({each.sql})" for each in conditions] if len(conditions) > 1 else [conditions[0].sql]
    return of_tree(shared_scalar(" AND ".join(closed)), schema)


def substituted(condition: Expression, meanings: Mapping[str, str], schema: Schema) -> Expression | None:
    """The condition with names replaced by SQL over another schema; None if a name has no meaning there.

    >>> from penstock.expressions.scalar import predicate
    >>> calls = Schema.parse("start bigint, seconds bigint")
    >>> fast = predicate("finish < 10", Schema.parse("finish bigint"))
    >>> str(substituted(fast, {"finish": "`start` + `seconds`"}, calls))
    '(`start` + `seconds`) < 10'
    """
    if not set(condition.columns) <= meanings.keys():
        return None
    return of_tree(shared_scalar(condition.sql).transform(lambda node: _meant(node, meanings)), schema)


def is_total(condition: Expression, schema: Schema) -> bool:
    """Whether the condition has a value for every tuple, the same in every engine.

    >>> from penstock.expressions.scalar import predicate
    >>> calls = Schema.parse("phone string, seconds int")
    >>> texts = ("seconds > 3", "60 / seconds > 3", "seconds > '3'")
    >>> [is_total(predicate(text, calls), calls) for text in texts]
    [True, False, False]
    """
    return all(_has_value(node, schema) for node in shared_scalar(condition.sql).walk())


def parts_of(tree: Tree) -> list[Tree]:
    """The trees that AND joins, without parentheses around them."""
    if isinstance(tree, exp.And):
        return [*parts_of(tree.this), *parts_of(tree.expression)]
    if isinstance(tree, exp.Paren) and isinstance(tree.this, (exp.And, exp.Paren)):
        return parts_of(tree.this)
    return [tree.this if isinstance(tree, exp.Paren) else tree]


def _meant(node: Tree, meanings: Mapping[str, str]) -> Tree:
    # Only columns are in quotes; a bare name is a unit of time, as in timestampdiff(HOUR, ...).
    if not isinstance(node, exp.Column) or not node.parts[0].args.get("quoted"):
        return node
    name, *fields = [each.name for each in node.parts]
    meant = parse_scalar(meanings[name])
    if not isinstance(meant, _CLOSED):
        meant = exp.paren(meant)
    for field in fields:
        meant = exp.Dot(this=meant, expression=exp.to_identifier(field, quoted=True))
    return meant


def _has_value(node: Tree, schema: Schema) -> bool:
    if isinstance(node, COMPARISONS):
        return _comparable([type_of(each, schema) for each in operands_of(node)])
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Neg)):
        # Integers and decimals overflow with an error, doubles do not.
        return type_of(node, schema) == "double" or _is_negative_number(node)
    if isinstance(node, exp.Cast):
        return _widens(type_of(node.this, schema), type_of(node, schema))
    if call_name(node) in _FIRST_VALID:
        return type_of(node, schema) is not None
    return isinstance(node, (*_PLAIN, exp.DataType)) or call_name(node) in _NULL_TESTS


def _is_negative_number(node: Tree) -> bool:
    return isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)


def _comparable(kinds: list[str | None]) -> bool:
    # A comparison of a string with a number would cast the string, which raises for most strings.
    if None in kinds or len(set(kinds)) == 1:
        return None not in kinds
    # Spark widens a float that meets another type, DuckDB narrows the other.
    return all(kind and kind != "float" and types.is_numeric(kind) for kind in kinds)


def _widens(given: str | None, wanted: str | None) -> bool:
    if given in _WIDTHS and wanted in _WIDTHS:
        return _WIDTHS.index(given) <= _WIDTHS.index(wanted)
    return wanted == "double" and given is not None and types.is_numeric(given)
