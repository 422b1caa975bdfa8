"""Arguments that Spark's analyzer would refuse, refused when the query is built.

Without this a query would be accepted here and fail when it starts. What depends on types that only Spark
can tell is left to it: `start` then reports it before anything runs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression, UnknownColumn, WrongType
from penstock.expressions.datetimes import check_datetimes
from penstock.expressions.inference import type_of
from penstock.expressions.parsing import Tree, call_name, render
from penstock.expressions.schema import Schema
from penstock.expressions.spark_types import refuses
from penstock.expressions.types import fields_of, is_atomic, is_integer
from penstock.functions.calls import call_of

__all__ = ["check_arguments", "check_fields", "is_null"]

_HOLDERS: Final = frozenset({"array", "map", "named_struct", "struct"})
_ALIKE: Final = frozenset({"coalesce", "greatest", "ifnull", "least", "nvl"})


def check_arguments(tree: Tree, schema: Schema) -> None:
    """Raise for the first call, operator or cast of the tree that Spark refuses whatever the rows are."""
    for node in tree.walk():
        if isinstance(node, (exp.Column, exp.Literal, exp.Identifier, exp.DataType)):
            continue
        for name, arguments in _calls(node):
            _check(node, name, arguments, schema)
        if isinstance(node, exp.Bracket):
            _check_element(node, schema)
        check_datetimes(node, _first_type(node, schema))
        _check_struct(node)


def _calls(node: Tree) -> Iterator[tuple[str, list[Tree]]]:
    """The functions of the table that a node stands for, and what each gets."""
    if isinstance(node, exp.Cast):
        yield "cast", [node.this, node]
    elif isinstance(node, exp.In):
        yield from (("=", [node.this, each]) for each in node.expressions)
    elif isinstance(node, exp.Between):
        yield from (("<=", [node.this, node.args[each]]) for each in ("low", "high"))
    elif isinstance(node, (exp.NEQ, exp.NullSafeNEQ)):
        yield "=", [node.this, node.expression]
    elif isinstance(node.parent, exp.Case) and isinstance(node, exp.If):
        # A branch, which the CASE around it has checked.
        return
    elif chosen := _chosen(node):
        # Of these one is chosen, so they need a common type.
        yield from (("coalesce", [chosen[0], each]) for each in chosen[1:])
        yield from (("not", [each]) for each in _conditions(node))
    else:
        name, arguments = call_of(node) or (call_name(node) or "", list(node.expressions))
        if not any(isinstance(each, exp.Lambda) for each in arguments):
            yield name, arguments


def _check(node: Tree, name: str, arguments: Sequence[Tree], schema: Schema) -> None:
    found = [type_of(each, schema) for each in arguments]
    given = [each for each in found if each is not None]
    if arguments and len(given) == len(found) and refuses(name, given):
        raise WrongType(
            f"{render(node)}: Spark does not take {' and '.join(given)} here; cast what it is given, or take "
            "a part of it"
        )


def _chosen(node: Tree) -> list[Tree]:
    """The values of which the node is one; none if it is something else."""
    if isinstance(node, exp.Case):
        found = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args["true"], node.args.get("false")]
    else:
        found = list(node.expressions) if call_name(node) in _ALIKE else []
    return [each for each in found if each is not None]


def _conditions(node: Tree) -> list[Tree]:
    """What decides which value is chosen, where that is a condition."""
    if isinstance(node, exp.Case):
        return [] if node.this else [each.this for each in node.args["ifs"]]
    return [node.this] if isinstance(node, exp.If) else []


def _check_element(node: exp.Bracket, schema: Schema) -> None:
    kind = type_of(node.this, schema)
    indexes = [type_of(each, schema) for each in node.expressions]
    if kind is not None and is_atomic(kind):
        raise WrongType(f"{render(node)}: {render(node.this)} is {kind}, which has no elements")
    if (
        kind is not None
        and kind.startswith("array<")
        and any(each and not is_integer(each) for each in indexes)
    ):
        raise WrongType(f"{render(node)}: the place in an array is a whole number, got {indexes[0]}; cast it")


def _first_type(node: Tree, schema: Schema) -> str | None:
    given = node.expressions[:1] if isinstance(node, exp.Anonymous) else []
    return type_of(given[0], schema) if given else None


def _check_struct(node: Tree) -> None:
    name, given = call_name(node), node.expressions
    if name == "struct" and _is_given(node):
        names = [each.alias_or_name for each in given if isinstance(each, (exp.Column, exp.Alias))]
    elif name in {"named_struct", "map"}:
        if len(given) % 2:
            raise BadExpression(f"{render(node)}: {name}() takes pairs, a name or key and its value in turn")
        named = name == "named_struct" and _is_given(node)
        names = [each.name for each in given[::2] if named and isinstance(each, exp.Literal)]
    else:
        return
    twice = next((each for place, each in enumerate(names) if each in names[:place]), None)
    if twice is not None:
        raise BadExpression(f"{render(node)} has two fields {twice!r}; rename one with AS")


def _is_given(node: Tree) -> bool:
    """Whether a value is a column of the result, or a part of one; Arrow has no two fields of one name."""
    around = node.parent
    while isinstance(around, (exp.Paren, exp.Alias)) or (around and call_name(around) in _HOLDERS):
        around = around.parent
    return around is None


def check_fields(name: str, kind: str | None, fields: Sequence[str]) -> None:
    """Raise for a field that a column of this type does not have.

    >>> check_fields("place", "struct<city:string>", ["town"])
    Traceback (most recent call last):
        ...
    penstock.errors.UnknownColumn: no column 'place.town'; did you mean 'place.city'? The columns are: \
place.city
    """
    for place, field in enumerate(fields):
        shown = ".".join([name, *fields[:place]])
        if kind is not None and is_atomic(kind):
            raise WrongType(f"{shown}.{field}: {shown} is {kind}, which has no fields")
        if kind is None or not kind.startswith("struct<"):
            # Spark takes a field of every struct in an array, and the value of a key of a map.
            return
        known = fields_of(kind)
        found = next((each for each in known if each.lower() == field.lower()), None)
        if found is None:
            raise UnknownColumn.among(f"{shown}.{field}", [f"{shown}.{each}" for each in known])
        kind = known[found]


def is_null(tree: Tree) -> bool:
    """Whether an expression is null and nothing tells its type.

    >>> from penstock.expressions.parsing import parse_scalar
    >>> [is_null(parse_scalar(text)) for text in ("NULL", "coalesce(NULL, (NULL))", "cast(NULL as int)")]
    [True, True, False]
    """
    node = tree.unnest()
    chosen = _chosen(node)
    return isinstance(node, exp.Null) or (bool(chosen) and all(map(is_null, chosen)))
