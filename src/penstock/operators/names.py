"""Columns and keys as a user names them: taken from a schema or made by expressions, names checked."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.errors import BadName, WrongType
from penstock.expressions import types
from penstock.expressions.inference import is_nested, type_of
from penstock.expressions.parsing import Tree, render, shared_scalar
from penstock.expressions.scalar import Expression, column, is_void, scalar
from penstock.expressions.schema import RESERVED_PREFIX, Column, Schema, quoted

if TYPE_CHECKING:
    from penstock.operators.kernel import Describe

__all__ = [
    "Named",
    "arrow_types",
    "check_key",
    "check_names",
    "check_quotients",
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
        check_quotients(expression, schema)
        if is_nested(shared_scalar(expression.sql), schema):
            raise _not_plain(name, expression.type or expression.sql)
    return keys


def check_key(name: str, type_: str) -> None:
    """Raise WrongType for a key of which only Spark knows the type, if it is not one plain value."""
    if not types.is_atomic(type_):
        raise _not_plain(name, type_)


def _not_plain(name: str, shown: str) -> WrongType:
    return WrongType(f"key {name!r} is {shown}; a key has to be one plain value, take a field of it")


def arrow_types(keys: Named, names: Iterable[str], describe: "Describe") -> list[Any]:
    """The Arrow types of keys, then of columns, by what Spark says."""
    told = [type_ for type_, _ in describe([*(key.sql for _, key in keys), *map(quoted, names)])]
    for (name, _), type_ in zip(keys, told, strict=False):
        check_key(name, type_)
    return [types.arrow_type(each) for each in told]


def check_quotients(key: Expression, schema: Schema) -> None:
    """Raise WrongType for a key that divides whole numbers: Spark gives a fraction for each of them."""
    for node in _parts(shared_scalar(key.sql)):
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
