"""Columns and keys as a user names them: taken from a schema or made by expressions, names checked."""

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from penstock.errors import BadName, WrongType
from penstock.expressions import types
from penstock.expressions.inference import type_of
from penstock.expressions.parsing import Tree, parse_scalar, render
from penstock.expressions.scalar import Expression, column, is_void, scalar
from penstock.expressions.schema import RESERVED_PREFIX, Column, Schema

__all__ = [
    "Named",
    "check_key",
    "check_names",
    "group_keys",
    "named_expressions",
    "schema_of_columns",
    "shown_keys",
]

Named = tuple[tuple[str, Expression], ...]
"""Expressions under the names that their values get."""


def named_expressions(names: Iterable[str], expressions: Mapping[str, str], schema: Schema) -> Named:
    """Columns taken by name, then expressions under new names; no name twice."""
    taken = tuple((schema.column(name).name, column(name, schema)) for name in names)
    made = tuple((name, scalar(text, schema)) for name, text in expressions.items())
    check_names(name for name, _ in taken + made)
    return taken + made


def group_keys(names: Iterable[str], expressions: Mapping[str, str], schema: Schema) -> Named:
    """The keys of a group_by; each is one plain value.

    >>> group_keys(["phone"], {}, Schema.parse("phone string"))[0][1].sql
    '`phone`'
    """
    keys = named_expressions(names, expressions, schema)
    if not keys:
        raise BadName("group_by() needs at least one key; for one group of all tuples leave group_by() out")
    for name, expression in keys:
        if is_void(expression):
            raise WrongType(
                f"key {name!r} is {expression.sql}, which has no type; write cast({expression.sql} as int)"
            )
        check_key(expression, schema)
        if expression.type and not types.is_atomic(expression.type):
            raise WrongType(
                f"key {name!r} is {expression.type}; a key has to be one plain value, take a field of it"
            )
    return keys


def check_key(key: Expression, schema: Schema) -> None:
    """Raise WrongType for a key that divides whole numbers: Spark gives a fraction for each of them."""
    for node in _parts(parse_scalar(key.sql)):
        if isinstance(node, exp.Div) and all(
            types.is_integer(type_of(each, schema) or "") for each in (node.this, node.expression)
        ):
            whole = f"{render(node.this)} div {render(node.expression)}"
            raise WrongType(
                f"the key {key.sql} has a fraction in Spark, and so a group for each number; write {whole} "
                f"for the whole quotient, or cast({render(node.this)} as double) / {render(node.expression)}"
            )


def _parts(tree: Tree) -> Iterator[Tree]:
    """The node, and those that it adds, subtracts, multiplies or divides."""
    plain = tree.unnest()
    yield plain
    if isinstance(plain, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        yield from _parts(plain.this)
        yield from _parts(plain.expression)


def check_names(names: Iterable[str]) -> None:
    """Raise BadName for a name that is reserved, empty or there twice."""
    seen: set[str] = set()
    for name in names:
        lowered = name.lower()
        if not name or lowered.startswith(RESERVED_PREFIX):
            raise BadName(f"name {name!r}: empty and {RESERVED_PREFIX!r} names are reserved; choose another")
        if lowered in seen:
            raise BadName(f"two columns would have the name {name!r}; rename one of them")
        seen.add(lowered)


def schema_of_columns(columns: Named) -> Schema:
    """The schema that named expressions make."""
    return Schema(tuple(Column(name, each.type, each.nullable) for name, each in columns))


def shown_keys(keys: Named) -> str:
    """The group_by of a query, as it is shown to people; empty without keys."""
    return f".group_by({', '.join(name for name, _ in keys)})" if keys else ""
