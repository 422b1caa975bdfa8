"""The type and the nullability of an expression, stated only if Spark is certain to agree.

sqlglot's own annotation is not used: it takes Spark's ``year()`` for a tinyint and ``1.5`` for a
double. What these rules do not cover has the type None, and Spark determines it before the run.
"""

from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from penstock.expressions import types
from penstock.expressions.functions import NESTED, RETURNS, SAME_AS_INPUT
from penstock.expressions.parsing import Tree, call_name
from penstock.expressions.schema import Schema
from penstock.functions.calls import call_of, unit_of
from penstock.functions.function import FUNCTIONS

__all__ = ["is_nested", "is_nullable", "type_of"]

_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_PLAIN_NUMBERS: Final = frozenset({"float", "double", *_WIDTHS})
# The digits of every whole number of a type.
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_MOST_DIGITS: Final = 38
_INT_END: Final = 2**31
_BIGINT_END: Final = 2**63


def type_of(node: Tree, schema: Schema) -> str | None:
    """The normalised type of an expression, None if only Spark can tell."""
    for kind, rule in _RULES:
        if isinstance(node, kind) and (found := rule(node, schema)) is not None:
            return found
    return _certified(node, schema)


def is_nested(node: Tree, schema: Schema) -> bool:
    """Whether an expression is certainly an array, a map, a struct or a variant, also of unknown fields."""
    found = type_of(node, schema)
    if found is not None:
        return not types.is_atomic(found)
    if isinstance(node, exp.Paren):
        return is_nested(node.this, schema)
    if isinstance(node, exp.Case):
        return any(is_nested(each.args["true"], schema) for each in node.args["ifs"])
    if isinstance(node, exp.If):
        return is_nested(node.args["true"], schema)
    if call_name(node) in SAME_AS_INPUT:
        return any(is_nested(each, schema) for each in node.expressions)
    return call_name(node) in NESTED


def is_nullable(node: Tree, schema: Schema) -> bool:
    """Whether an expression may be null; False only if it certainly is not."""
    if isinstance(node, exp.Column):
        return bool(node.table) or schema.column(node.name).nullable
    if isinstance(node, (exp.Literal, exp.Boolean, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)):
        return False
    if call_name(node) in {"coalesce", "nvl", "ifnull"}:
        return all(is_nullable(each, schema) for each in node.expressions)
    if call_name(node) in {"isnull", "isnotnull", "hash", "xxhash64"}:
        return False
    if isinstance(
        node,
        (exp.Paren, exp.Not, exp.Neg, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    ):
        return any(is_nullable(each, schema) for each in node.iter_expressions())
    return True


def _certified(node: Tree, schema: Schema) -> str | None:
    """The type by the table of functions that channels evaluate."""
    call = call_of(node)
    function = FUNCTIONS.get(call[0]) if call else None
    if call is None or function is None:
        return None
    given = [
        "unit" if unit_of(call[0], place, each) else type_of(each, schema)
        for place, each in enumerate(call[1])
    ]
    known = [each for each in given if each is not None]
    if len(known) < len(given):
        return None
    forms = [
        form for form in function.forms if not any(_is_literal(call[1][place]) for place in form.varying)
    ]
    return next((found for form in forms if (found := form.result(known)) is not None), None)


def _is_literal(node: Tree) -> bool:
    """Whether Spark takes a number for one that is written there."""
    plain = node.unnest()
    return isinstance(plain.this if isinstance(plain, exp.Neg) else plain, exp.Literal)


def _column(node: Tree, schema: Schema) -> str | None:
    return None if node.args.get("table") else schema.column(node.name).type


def _literal(node: Tree, _schema: Schema) -> str | None:
    text = node.name.lower()
    if node.args["is_string"]:
        return "string"
    if "e" in text:
        return "double"
    if "." in text:
        whole, fraction = text.split(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        return f"decimal({digits},{len(fraction)})" if 0 < digits <= 38 else None
    value = int(text)
    return "int" if value < _INT_END else "bigint" if value < _BIGINT_END else None


def _cast(node: Tree, _schema: Schema) -> str | None:
    target = node.args["to"]
    return types.of_node(target) if isinstance(target, exp.DataType) else None


def _inner(node: Tree, schema: Schema) -> str | None:
    return type_of(node.this, schema)


def _arithmetic(node: Tree, schema: Schema) -> str | None:
    left, right = type_of(node.this, schema), type_of(node.expression, schema)
    if left is None or right is None or not (types.is_numeric(left) and types.is_numeric(right)):
        return None
    if "double" in {left, right}:
        return "double"
    if types.is_integer(left) and types.is_integer(right):
        return max(left, right, key=_WIDTHS.index)
    if left == right == "float":
        return left
    ours, theirs = _digits(node.this, left), _digits(node.expression, right)
    return None if ours is None or theirs is None else _decimal(node, ours, theirs)


def _digits(node: Tree, kind: str) -> tuple[int, int] | None:
    """Precision and scale of a number among decimals; None where it is none, or not for certain."""
    if kind.startswith("decimal("):
        precision, scale = kind[8:-1].split(",")
        return int(precision), int(scale)
    if isinstance(node.unnest(), exp.Literal):
        return len(str(int(node.unnest().name))), 0
    plain = types.is_integer(kind) and not isinstance(node.unnest(), exp.Neg)
    return (_DIGITS[kind], 0) if plain else None


def _decimal(node: Tree, left: tuple[int, int], right: tuple[int, int]) -> str | None:
    """The type of a sum, a difference or a product, if it needs no more digits than there are."""
    if isinstance(node, exp.Mul):
        precision, scale = left[0] + right[0] + 1, left[1] + right[1]
    else:
        scale = max(left[1], right[1])
        precision = max(left[0] - left[1], right[0] - right[1]) + scale + 1
    fits = precision <= _MOST_DIGITS and not isinstance(node, exp.Mod)
    return f"decimal({precision},{scale})" if fits else None


def _division(node: Tree, schema: Schema) -> str | None:
    sides = type_of(node.this, schema), type_of(node.expression, schema)
    exact = all(each and (types.is_integer(each) or types.is_floating(each)) for each in sides)
    numbers = all(each and types.is_numeric(each) for each in sides)
    return "double" if exact or (numbers and "double" in sides) else None


def _joined(node: Tree, schema: Schema) -> str | None:
    return _texts([type_of(node.this, schema), type_of(node.expression, schema)])


def _case(node: Tree, schema: Schema) -> str | None:
    branches = [each.args["true"] for each in node.args["ifs"]]
    return _shared([*branches, node.args.get("default")], schema)


def _if(node: Tree, schema: Schema) -> str | None:
    return _shared([node.args["true"], node.args.get("false")], schema)


def _call(node: Tree, schema: Schema) -> str | None:
    name = call_name(node) or ""
    if name in {"struct", "named_struct"}:
        return _struct(node.expressions if name == "struct" else _named(node.expressions), schema)
    given = [
        None if unit_of(name, place, each) else type_of(each, schema)
        for place, each in enumerate(node.expressions)
    ]
    if name in SAME_AS_INPUT:
        return _shared(node.expressions, schema)
    if name in _CALLS:
        return _CALLS[name](given)
    return RETURNS.get(name)


def _struct(fields: list[Tree], schema: Schema) -> str | None:
    """A struct of columns and named fields; others have names that depend on Spark."""
    known: list[tuple[str, str]] = []
    for each in fields:
        value = each.this if isinstance(each, exp.Alias) else each
        plain = isinstance(each, exp.Alias) or (isinstance(each, exp.Column) and not each.table)
        type_ = type_of(value, schema)
        if type_ is None or not plain or not each.alias_or_name.isidentifier():
            return None
        name = each.alias if isinstance(each, exp.Alias) else schema.column(each.name).name
        known.append((name, type_))
    return types.struct_of(known) if known else None


def _named(given: list[Tree]) -> list[Tree]:
    """The fields of named_struct() as those of struct(); as they are if a name is no text."""
    names, values = given[::2], given[1::2]
    if len(names) != len(values) or not all(
        isinstance(each, exp.Literal) and each.is_string for each in names
    ):
        return given
    return [exp.alias_(value.copy(), name.name) for name, value in zip(names, values, strict=True)]


def _array(given: list[str | None]) -> str | None:
    return f"array<{given[0]}>" if given and given[0] and len(set(given)) == 1 else None


def _floor(given: list[str | None]) -> str | None:
    return "bigint" if len(given) == 1 and given[0] in _PLAIN_NUMBERS else None


def _round(given: list[str | None]) -> str | None:
    return given[0] if given and given[0] in _PLAIN_NUMBERS else None


def _text(given: list[str | None]) -> str | None:
    # Over binary these give binary.
    return "string" if given and given[0] == "string" else None


def _texts(given: list[str | None]) -> str | None:
    # Over arrays concat() gives an array.
    return "string" if given and all(each == "string" for each in given) else None


def _truncated(given: list[str | None]) -> str | None:
    return "timestamp" if given[1:] == ["timestamp"] else None


def _days(given: list[str | None]) -> str | None:
    # With a unit, as in date_add(hour, 1, time), these give what dateadd() gives.
    return "date" if len(given) == 2 else None


def _shared(nodes: Iterable[Tree | None], schema: Schema) -> str | None:
    kinds = {type_of(each, schema) for each in nodes if each is not None and not isinstance(each, exp.Null)}
    return kinds.pop() if len(kinds) == 1 else None


_CALLS: Final[dict[str, Callable[[list[str | None]], str | None]]] = {
    "array": _array,
    **dict.fromkeys(("floor", "ceil", "ceiling"), _floor),
    **dict.fromkeys(("abs", "round", "bround"), _round),
    **dict.fromkeys(("left", "right", "substring", "substr", "lpad", "rpad"), _text),
    **dict.fromkeys(("concat", "concat_ws"), _texts),
    "date_trunc": _truncated,
    "date_add": _days,
}
_Rule = Callable[[Tree, Schema], str | None]
_RULES: Final[tuple[tuple[type | tuple[type, ...], _Rule], ...]] = (
    (exp.Column, _column),
    (exp.Literal, _literal),
    (exp.Cast, _cast),
    ((exp.Paren, exp.Neg, exp.BitwiseNot), _inner),
    (_ARITHMETIC, _arithmetic),
    (exp.Div, _division),
    (exp.DPipe, _joined),
    (exp.IntDiv, lambda _node, _schema: "bigint"),
    (exp.Case, _case),
    (exp.If, _if),
    ((exp.Boolean, exp.Predicate, exp.Connector, exp.Not, exp.Escape), lambda _node, _schema: "boolean"),
    (exp.Trim, lambda _node, _schema: "string"),
    (exp.Anonymous, _call),
)
