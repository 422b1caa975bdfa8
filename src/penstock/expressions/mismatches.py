"""Operands whose types do not go together, refused when the query is built.

Spark would cast a string to the type of the other side, and a run would end at the first text that is no
number. Who means that writes the cast.
"""

import re
from typing import Final

from sqlglot import exp

from penstock.errors import WrongType
from penstock.expressions import types
from penstock.expressions.inference import type_of
from penstock.expressions.parsing import Tree, call_name, render
from penstock.expressions.schema import Schema

__all__ = ["COMPARISONS", "check_decimals", "check_operands", "is_bare_decimal", "operands_of"]

_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.In,
    exp.Between,
)
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_TIME: Final = re.compile(r"\s*([+-]?\d|epoch|now|today|tomorrow|yesterday).*", re.IGNORECASE)


def check_operands(tree: Tree, schema: Schema) -> None:
    """Raise WrongType for the first operator of the tree whose operands cannot go together."""
    for node in tree.walk():
        if isinstance(node, (*_ARITHMETIC, *COMPARISONS)):
            _check(node, schema)


def check_decimals(tree: Tree, schema: Schema) -> None:
    """Raise WrongType for a cast to a decimal without a scale that would drop digits in silence.

    Spark takes DECIMAL and NUMERIC for decimal(10,0); elsewhere they keep all digits.
    """
    for node in tree.walk():
        if not is_bare_decimal(node):
            continue
        value = node.this if isinstance(node, exp.Cast) else node.expressions[0]
        kind = type_of(value, schema) or ""
        if not types.is_integer(kind) and not (kind.startswith("decimal(") and kind.endswith(",0)")):
            raise WrongType(
                f"{render(node)} is decimal(10,0) in Spark and drops what is after the point; give precision "
                f"and scale, as in cast({render(value)} as decimal(20,6)), or write decimal(10,0)"
            )


def is_bare_decimal(node: Tree) -> bool:
    """Whether the node is a cast to a decimal that does not say its precision."""
    if isinstance(node, exp.Cast):
        target = node.args["to"]
        return bool(target.is_type(exp.DataType.Type.DECIMAL)) and not target.expressions
    return call_name(node) == "decimal" and len(node.expressions) == 1


def operands_of(node: Tree) -> list[Tree]:
    """The operands of an operator or a comparison."""
    found = [node.this, *node.expressions, *(node.args.get(key) for key in ("expression", "low", "high"))]
    return [each for each in found if each is not None]


def _check(node: Tree, schema: Schema) -> None:
    operands = [(each, type_of(each, schema)) for each in operands_of(node)]
    families = {_family(kind) for _, kind in operands if kind is not None} - {None}
    for each, kind in operands:
        if kind == "string":
            _check_text(node, each, families, [kind for _, kind in operands if kind])
    if len(families - {"text"}) > 1 and not (
        isinstance(node, _ARITHMETIC) and families == {"time", "number"}
    ):
        shown = " and ".join(dict.fromkeys(kind for _, kind in operands if kind))
        raise WrongType(f"{render(node)} puts together {shown}; cast one of them")


def _check_text(node: Tree, text: Tree, families: set[str | None], kinds: list[str]) -> None:
    literal = text.name if isinstance(text, exp.Literal) else None
    for family, pattern in (("number", _NUMBER), ("time", _TIME)):
        if family not in families or (literal is not None and pattern.fullmatch(literal)):
            continue
        if literal is None and family == "time":
            continue
        wanted = next(kind for kind in kinds if _family(kind) == family)
        cast = f"cast({render(text)} as {wanted})" if literal is None else f"a value of type {wanted}"
        raise WrongType(f"{render(node)} puts together string and {wanted}; write {cast}")


def _family(kind: str) -> str | None:
    """Types that Spark casts to each other without a chance of failure."""
    if types.is_numeric(kind):
        return "number"
    return {
        "string": "text",
        "boolean": "truth",
        "date": "time",
        "timestamp": "time",
        "timestamp_ntz": "time",
    }.get(kind)
