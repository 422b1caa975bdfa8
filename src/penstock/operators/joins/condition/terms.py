"""A condition as a tree of arithmetic and comparisons over the pair; all other parts are unknown.

The tree decides nothing: it says what can be estimated without DuckDB. Negations are
pushed into the comparisons, which is sound with nulls: `NOT a < b` and `a >= b` are true for the same pairs.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import sqlglot
from sqlglot import expressions as exp

__all__ = [
    "AllOf",
    "AnyOf",
    "Apply",
    "Compare",
    "Logic",
    "Number",
    "PairColumn",
    "SideName",
    "Term",
    "Unknown",
    "read",
]

SideName = Literal["l", "r"]
Operator = Literal["+", "-", "*", "/", "abs", "sqrt", "square", "double", "micros", "near"]
Relation = Literal["<", "<=", "=", "<>"]


@dataclass(frozen=True)
class PairColumn:
    """A column of the left or the right row."""

    side: SideName
    name: str


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float
    whole: bool


@dataclass(frozen=True)
class Apply:
    """Arithmetic; `micros` takes a timestamp, `double` and `near` stand for conversions."""

    operator: Operator
    parts: tuple["Term", ...]


Term = PairColumn | Number | Apply


@dataclass(frozen=True)
class Compare:
    """A comparison of two terms."""

    relation: Relation
    one: Term
    other: Term


@dataclass(frozen=True)
class AllOf:
    """True if all parts are true."""

    parts: tuple["Logic", ...]


@dataclass(frozen=True)
class AnyOf:
    """True if one of the parts is true."""

    parts: tuple["Logic", ...]


@dataclass(frozen=True)
class Unknown:
    """A part that only DuckDB can decide."""


Logic = Compare | AllOf | AnyOf | Unknown

_SWAPPED: dict[type[exp.Expr], Relation] = {exp.GT: "<", exp.GTE: "<="}
_PLAIN: dict[type[exp.Expr], Relation] = {exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>"}
_BINARY: dict[type[exp.Expr], Operator] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_ROUNDED = {exp.DataType.Type.BIGINT, exp.DataType.Type.INT}


class _Other(Exception):  # noqa: N818 -- it never leaves this file
    """A term that is not arithmetic."""


@cache
def read(sql: str) -> Logic:
    """The tree of a condition in DuckDB's SQL.

    >>> read("NOT l.start >= r.stop")
    Compare(relation='<', one=PairColumn(side='l', name='start'), other=PairColumn(side='r', name='stop'))
    >>> read("l.name LIKE r.name")
    Unknown()
    """
    try:
        parsed = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError:
        return Unknown()
    return _logic(parsed, negated=False)


def _logic(node: exp.Expr, *, negated: bool) -> Logic:
    if isinstance(node, exp.Paren):
        return _logic(node.this, negated=negated)
    if isinstance(node, exp.Not):
        return _logic(node.this, negated=not negated)
    if isinstance(node, exp.And | exp.Or):
        parts = (_logic(node.this, negated=negated), _logic(node.expression, negated=negated))
        return AllOf(parts) if isinstance(node, exp.And) != negated else AnyOf(parts)
    if isinstance(node, exp.Case):
        inner = _unguarded(node)
        return Unknown() if inner is None else _logic(inner, negated=negated)
    if isinstance(node, exp.Between):
        ends = exp.And(
            this=exp.GTE(this=node.this, expression=node.args["low"]),
            expression=exp.LTE(this=node.this, expression=node.args["high"]),
        )
        return Unknown() if node.args.get("symmetric") else _logic(ends, negated=negated)
    return _comparison(node, negated=negated)


def _unguarded(node: exp.Case) -> exp.Expr | None:
    """The condition behind a guard of the translation: one without which the same pairs are true.

    It gives null for a null, or repeats the first parts of AND or OR, so that none behind one that decides is
    evaluated and may raise. Where it might, numbers are unfit for an estimate.
    """
    ifs = node.args["ifs"]
    default: exp.Expr | None = node.args.get("default")
    if node.this is not None or default is None:
        return None
    first = ifs[0].args["true"]
    if len(ifs) == 1 and isinstance(first, exp.Cast) and isinstance(first.this, exp.Null):
        return default
    inner = default.unnest()
    if not isinstance(inner, exp.And | exp.Or):
        return None
    parts = list(inner.flatten(unnest=False))
    deciding = isinstance(inner, exp.Or)
    for when, part in zip(ifs, parts, strict=False):
        given = when.this if deciding else when.this.this if isinstance(when.this, exp.Not) else None
        value = when.args["true"]
        if not isinstance(value, exp.Boolean) or value.this is not deciding or given != part:
            return None
    return default


def _comparison(node: exp.Expr, *, negated: bool) -> Logic:
    try:
        if type(node) in _SWAPPED:
            return _compare(_SWAPPED[type(node)], node.expression, node.this, negated=negated)
        if type(node) in _PLAIN:
            return _compare(_PLAIN[type(node)], node.this, node.expression, negated=negated)
    except _Other:
        pass
    return Unknown()


def _compare(relation: Relation, one: exp.Expr, other: exp.Expr, *, negated: bool) -> Logic:
    first, second = _term(one), _term(other)
    if not negated:
        return Compare(relation, first, second)
    if relation in {"=", "<>"}:
        return Compare("<>" if relation == "=" else "=", first, second)
    return Compare("<=" if relation == "<" else "<", second, first)


def _term(node: exp.Expr) -> Term:  # noqa: C901, PLR0911 -- one line for each kind of term
    if isinstance(node, exp.Paren):
        return _term(node.this)
    if isinstance(node, exp.Column) and len(node.parts) == 2 and node.table in {"l", "r"}:
        return PairColumn("l" if node.table == "l" else "r", node.name)
    if isinstance(node, exp.Literal) and not node.is_string:
        return Number(float(node.this), node.this.isdigit())
    if isinstance(node, exp.Cast) and (number := _number(node.this)) is not None:
        return number
    if isinstance(node, exp.Case):
        return _guarded(node)
    if isinstance(node, exp.Neg):
        return Apply("-", (Number(0.0, whole=True), _term(node.this)))
    if type(node) in _BINARY:
        return _binary(_BINARY[type(node)], _term(node.this), _term(node.expression))
    if isinstance(node, exp.Abs):
        return Apply("abs", (_term(node.this),))
    if isinstance(node, exp.Sqrt):
        return Apply("sqrt", (_term(node.this),))
    if isinstance(node, exp.Pow) and _term(node.expression) == Number(2.0, whole=True):
        return Apply("square", (_as_double(_term(node.this)),))
    return _conversion(node)


def _number(node: exp.Expr) -> Number | None:
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal) or literal.is_string:
        return None
    value = float(literal.this)
    return Number(-value if negative else value, literal.this.isdigit())


def _guarded(node: exp.Case) -> Term:
    """The value behind a guard of the translation: null for null, an error for a divisor 0, NaN for a root.

    An interval of divisors that holds 0, or of a root's values that holds negative ones, is unfit for an
    estimate, so such a pair is left to DuckDB.
    """
    first, default = node.args["ifs"][0], node.args.get("default")
    if len(node.args["ifs"]) != 1 or default is None:
        raise _Other
    value = first.args["true"]
    inner = default.unnest()
    null = isinstance(value, exp.Cast) and isinstance(value.this, exp.Null)
    fails = isinstance(value, exp.Anonymous) and value.name.lower() == "error"
    nan = isinstance(value, exp.Cast) and value.this.name == "nan"
    if null or (fails and isinstance(inner, exp.Div)) or (nan and isinstance(inner, exp.Sqrt)):
        return _term(inner)
    raise _Other


def _binary(operator: Operator, one: Term, other: Term) -> Term:
    # A product of equal terms is never negative, which a square root needs.
    return Apply("square", (one,)) if operator == "*" and one == other else Apply(operator, (one, other))


def _as_double(term: Term) -> Term:
    return Apply("double", (term,))


def _conversion(node: exp.Expr) -> Term:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "epoch_us":
        return Apply("micros", (_term(node.expressions[0]),))
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        if node.to.this is exp.DataType.Type.DOUBLE:
            return _as_double(_term(node.this))
        if node.to.this in _ROUNDED:
            return Apply("near", (_term(node.this),))
    raise _Other
