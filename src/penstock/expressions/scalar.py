"""Scalar expressions over a schema: checked, macros expanded, written as Spark SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, Final

from sqlglot import exp

from penstock.errors import BadExpression, UnknownColumn, UnknownFunction, WrongType
from penstock.expressions.arguments import check_arguments, check_fields, is_null
from penstock.expressions.functions import (
    GENERATORS,
    TAKES_UNIT,
    UNREPEATABLE,
    WINDOW_ONLY,
    is_aggregate_name,
)
from penstock.expressions.inference import is_nullable, type_of
from penstock.expressions.macros import MACROS, expand
from penstock.expressions.mismatches import check_decimals, check_operands, is_bare_decimal
from penstock.expressions.parsing import Tree, call_name, check_quotes, dotted, render, shared_scalar
from penstock.expressions.schema import Schema, quoted
from penstock.expressions.spark_functions import check_call
from penstock.expressions.types import of_node

__all__ = [
    "Expression",
    "SqlColumn",
    "column",
    "is_unit",
    "is_void",
    "of_tree",
    "predicate",
    "refuse",
    "scalar",
]


_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression as Spark SQL, with what is known of its value.

    ``type`` is None if only Spark can tell; ``nullable`` is False only if that is certain.
    """

    sql: str
    type: str | None
    nullable: bool
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class SqlColumn:
    """A named Spark SQL expression with the Arrow type of its values."""

    name: str
    sql: str
    type: Any

    def bare(self, types: Mapping[str, str]) -> str | None:
        """The column that it is, if it is no more than one of these, cast to the type that it has at most."""
        node = shared_scalar(self.sql)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
            kind = types.get(node.this.name)
            node = node.this if kind is not None and kind == of_node(node.to) else node
        single = isinstance(node, exp.Column) and len(node.parts) == 1
        return node.name if single and node.name in types else None


def scalar(text: str, schema: Schema) -> Expression:
    """Read one scalar expression over the columns of a schema.

    >>> scalar("speed * 3.6", Schema.parse("speed double not null"))
    Expression(sql='`speed` * 3.6', type='double', nullable=True, columns=('speed',))
    """
    tree = shared_scalar(text)
    check_quotes(text, schema.names)
    return of_tree(tree, schema)


def predicate(text: str, schema: Schema) -> Expression:
    """Read one condition over the columns of a schema."""
    found = scalar(text, schema)
    if found.type not in {None, "boolean"}:
        raise WrongType(f"expected a condition, got {text!r} of type {found.type}; compare it with something")
    return found


def column(name: str, schema: Schema) -> Expression:
    """The expression of a single column."""
    found = schema.column(name)
    return Expression(quoted(found.name), found.type, found.nullable, (found.name,))


def of_tree(tree: Tree, schema: Schema) -> Expression:
    """The expression of a parsed tree; the tree does not change."""
    for node in tree.walk():
        refuse(node)
    named = expand(tree).transform(lambda node: _resolved(node, schema), copy=False)
    check_operands(named, schema)
    check_decimals(named, schema)
    check_arguments(named, schema)
    _check_elements(named)
    named = named.transform(_with_precision, copy=False)
    read = dict.fromkeys(_root(each) for each in named.find_all(exp.Column, bfs=False))
    return Expression(render(named), type_of(named, schema), is_nullable(named, schema), tuple(read))


def refuse(node: Tree) -> None:
    """Raise BadExpression for a node that is not allowed in a scalar expression."""
    name = call_name(node) or ""
    if is_aggregate_name(name):
        raise BadExpression(f"{name}() is an aggregate; it belongs in agg(), after window()")
    if name in WINDOW_ONLY or isinstance(node, exp.Window):
        raise BadExpression(f"{render(node)}: SQL window functions are not supported; use window() and agg()")
    if name in GENERATORS:
        raise BadExpression(f"{name}() makes several rows of one; only one value per tuple is supported")
    if name in UNREPEATABLE or (name in {"unix_timestamp", "to_unix_timestamp"} and not node.expressions):
        raise BadExpression(
            f"{name}() would give another result when an epoch is replayed; use a column instead"
        )
    if isinstance(node, exp.Query) or node.args.get("query"):
        raise BadExpression(f"{render(node)}: subqueries are not supported")
    if isinstance(node, exp.Star):
        raise BadExpression("* is not one value; name the columns")
    if isinstance(node, (exp.Placeholder, exp.Parameter)):
        raise BadExpression(f"{render(node)}: parameters are not supported; put the value into the text")
    if isinstance(node, exp.Array):
        raise BadExpression(
            "Spark has no [..] for arrays; write array(..), and element_at() for an element of it"
        )
    if isinstance(node, exp.Tuple) and not isinstance(node.parent, exp.In):
        raise BadExpression(f"{render(node)} is more than one value; write struct(..) for a struct")
    _check_number(node)
    _refuse_unknown(node, name)


def _check_number(node: Tree) -> None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return
    text = node.name.lower()
    digits = sum(map(str.isdigit, text.lstrip("0")))
    if "e" in text and isinf(float(text)):
        raise BadExpression(f"{text} is no double; the largest is about 1.8e308")
    if "e" not in text and digits > _MOST_DIGITS:
        raise BadExpression(f"{text} has {digits} digits; a decimal has {_MOST_DIGITS} at most")


def _refuse_unknown(node: Tree, name: str) -> None:
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        raise UnknownFunction(
            f"{render(node)}: functions of a catalog are not supported; use those of Spark SQL, by their "
            "name alone, or map() for a function of your own"
        )
    if isinstance(node, exp.Anonymous) and name not in MACROS:
        check_call(name, len(node.expressions), frozenset(MACROS))


def _resolved(node: Tree, schema: Schema) -> Tree:
    if not isinstance(node, exp.Column):
        return node
    if is_unit(node):
        return exp.var(node.name.upper())
    parts = [each.name for each in node.parts]
    if parts[0] not in schema and len(parts) > 1:
        raise UnknownColumn.among(".".join(parts), schema.names)
    found = schema.column(parts[0])
    check_fields(found.name, found.type, parts[1:])
    return dotted(found.name, *parts[1:])


def _check_elements(tree: Tree) -> None:
    """Raise WrongType for a value without elements whose type nothing tells."""
    name = call_name(tree.unnest())
    if name in {"array", "map"} and not tree.unnest().expressions:
        wanted = "array<string>" if name == "array" else "map<string, string>"
        raise WrongType(f"{name}() is empty, and nothing tells its type; write cast({name}() as {wanted})")


def is_void(expression: Expression) -> bool:
    """Whether an expression is a null of which nothing tells the type."""
    return expression.type is None and is_null(shared_scalar(expression.sql))


def _with_precision(node: Tree) -> Tree:
    """A cast that says what it means wherever its text is read again."""
    if isinstance(node, exp.Cast) and is_bare_decimal(node):
        node.set("to", exp.DataType.build("decimal(10, 0)"))
    return node


def is_unit(node: exp.Column) -> bool:
    """Whether a name is a unit of time, as in timestampdiff(MINUTE, a, b), not a column."""
    call = node.parent
    if call is None or call_name(call) not in TAKES_UNIT or len(call.expressions) != 3:
        return False
    return call.expressions[0] is node


def _root(node: exp.Column) -> str:
    return str(node.parts[0].name)
