"""Which function of the table a node of a parsed tree calls, and with which arguments."""

from typing import Final

from sqlglot import exp

from penstock.expressions.parsing import Tree, call_name
from penstock.functions.times import UNITS

__all__ = ["Call", "call_of", "unit_of"]

Call = tuple[str, list[Tree]]
"""The name in the table and the nodes of the arguments."""

_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.Like: "like",
}
_UNARY: Final[dict[type[exp.Expr], str]] = {exp.Neg: "unary-", exp.Not: "not", exp.BitwiseNot: "~"}
_EXTRACTED: Final = {
    "YEAR": "year",
    "MONTH": "month",
    "DAY": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "QUARTER": "quarter",
    "WEEK": "weekofyear",
    "DOY": "dayofyear",
    "DOW": "dayofweek",
}
_TAKE_UNIT: Final = frozenset({"timestampdiff", "timestampadd"})


def call_of(node: Tree) -> Call | None:  # noqa: C901, PLR0911 -- a line for each kind of node
    """The call that a node is; None for columns, literals, casts, CASE, and what no function stands for."""
    if type(node) in _BINARY:
        return _BINARY[type(node)], [node.this, node.expression]
    if type(node) in _UNARY:
        return _UNARY[type(node)], [node.this]
    if isinstance(node, exp.Is):
        return _test(node)
    if isinstance(node, exp.In):
        return ("in", [node.this, *node.expressions]) if node.expressions else None
    if isinstance(node, exp.Between):
        return "between", [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.If):
        return "if", [node.this, node.args["true"], node.args.get("false") or exp.Null()]
    if isinstance(node, exp.Trim):
        plain = node.args.get("expression") is None and not node.args.get("position")
        return ("trim", [node.this]) if plain else None
    if isinstance(node, exp.Extract):
        name = _EXTRACTED.get(node.this.name.upper()) if isinstance(node.this, exp.Var) else None
        return (name, [node.expression]) if name else None
    if isinstance(node, exp.StrPosition):
        plain = {key for key, value in node.args.items() if value is not None} <= {"this", "substr"}
        return ("position", [node.args["substr"], node.this]) if plain else None
    if isinstance(node, (exp.Cast, exp.Case, exp.Column)):
        return None
    name = call_name(node)
    if name in {"date_part", "datepart"} and len(node.expressions) == 2:
        return _part(*node.expressions)
    return None if name is None else (name, list(node.expressions))


def unit_of(name: str, place: int, node: Tree) -> str | None:
    """The unit of time that an argument is, as in timestampdiff(MINUTE, a, b); None if it is none."""
    if place or name not in _TAKE_UNIT or not isinstance(node, (exp.Var, exp.Column)):
        return None
    return node.name.upper() if node.name.upper() in UNITS else None


def _part(part: Tree, moment: Tree) -> Call | None:
    name = _EXTRACTED.get(part.name.upper()) if isinstance(part, exp.Literal) and part.is_string else None
    return (name, [moment]) if name else None


def _test(node: exp.Is) -> Call | None:
    other = node.expression
    if isinstance(other, exp.Null):
        return "is_null", [node.this]
    if isinstance(other, exp.Boolean):
        return ("is_true" if other.this else "is_false"), [node.this]
    return None
