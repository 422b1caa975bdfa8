"""Spark SQL to DuckDB SQL of the same meaning, or the reason why there is none.

Types go up from the columns: each node is translated by the form that is certified for the types of its
arguments. A node without one makes the whole expression one that only Spark can evaluate.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from penstock.expressions import types
from penstock.expressions.parsing import Tree, call_name, parse_scalar, render
from penstock.functions.casts import cast_sql
from penstock.functions.function import FUNCTIONS
from penstock.functions.times import UNITS

__all__ = ["DEFAULT", "SqlSetting", "Translated", "Uncertified", "translated"]


@dataclass(frozen=True)
class SqlSetting:
    """What Spark's session says about the meaning of SQL."""

    ansi: bool = True
    zone: str = "UTC"


DEFAULT: Final = SqlSetting()
_UTC: Final = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "+00:00"})


@dataclass(frozen=True)
class Translated:
    """DuckDB's SQL, the type that Spark gives, and the text of a literal."""

    sql: str
    type: str
    literal: str | None = None


class Uncertified(Exception):  # noqa: N818 -- it is an answer, not a fault
    """No certified translation; the message says what is missing."""


def translated(sql: str, columns: Mapping[str, str | None], setting: SqlSetting = DEFAULT) -> Translated:
    """An expression over columns of known types for DuckDB; raise Uncertified where only Spark will do.

    >>> translated("`n` / 2", {"n": "bigint"}).type
    'double'
    >>> translated("exp(`x`)", {"x": "double"})
    Traceback (most recent call last):
    penstock.functions.translate.Uncertified: exp(double) runs in Spark
    """
    lowered = {name.lower(): (name, kind) for name, kind in columns.items()}
    return _Translation(lowered, setting).of(parse_scalar(sql))


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
# Spark and DuckDB read these spellings alike; others are left to Spark.
_MOMENTS: Final = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?"),
    "timestamp_ntz": re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?"),
}
_UNARY: Final[dict[type[exp.Expr], str]] = {exp.Neg: "unary-", exp.Not: "not", exp.BitwiseNot: "~"}
_DUCK_TYPES: Final = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
}


@dataclass(frozen=True)
class _Translation:
    columns: Mapping[str, tuple[str, str | None]]
    setting: SqlSetting

    def of(self, node: Tree) -> Translated:
        """The translation of a node; a negated predicate is one argument of its node."""
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            return Translated(f"(NOT {self._of(plain).sql})", "boolean")
        return self._of(node)

    def _of(self, node: Tree) -> Translated:  # noqa: C901, PLR0911, PLR0912 -- a line for each kind of node
        if isinstance(node, exp.Paren):
            return self.of(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, (exp.Literal, exp.Boolean, exp.Null)):
            return _literal(node)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _literal(node.this, negative=True)
        if type(node) in _BINARY:
            return self._call(_BINARY[type(node)], [node.this, node.expression])
        if type(node) in _UNARY:
            return self._call(_UNARY[type(node)], [node.this])
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
            return self._call("in", [node.this, *node.expressions])
        if isinstance(node, exp.Between):
            return self._call("between", [node.this, node.args["low"], node.args["high"]])
        if isinstance(node, exp.Cast) and not node.args.get("safe"):
            return self._cast(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.If):
            otherwise = node.args.get("false") or exp.Null()
            return self._call("if", [node.this, node.args["true"], otherwise])
        if (
            isinstance(node, exp.Trim)
            and node.args.get("expression") is None
            and not node.args.get("position")
        ):
            return self._call("trim", [node.this])
        if isinstance(node, exp.Extract) and isinstance(node.this, exp.Var):
            return self._call(_EXTRACTED.get(node.this.name.upper(), "extract"), [node.expression])
        if isinstance(node, exp.StrPosition) and set(node.args) <= {"this", "substr"}:
            return self._call("position", [node.args["substr"], node.this])
        name = call_name(node)
        if name is not None:
            return self._call(name, list(node.expressions))
        raise Uncertified(f"{render(node)} runs in Spark")

    def _column(self, node: exp.Column) -> Translated:
        name, kind = self.columns.get(node.name.lower(), (node.name, None))
        if node.args.get("table") or kind is None or not types.is_atomic(kind):
            raise Uncertified(f"{render(node)} has a type that only Spark handles")
        escaped = name.replace('"', '""')
        return Translated(f'"{escaped}"', kind)

    def _is(self, node: exp.Is) -> Translated:
        other = node.expression
        if isinstance(other, exp.Null):
            return self._call("is_null", [node.this])
        if isinstance(other, exp.Boolean):
            return self._call("is_true" if other.this else "is_false", [node.this])
        raise Uncertified(f"{render(node)} runs in Spark")

    def _cast(self, node: exp.Cast) -> Translated:
        given, wanted = self.of(node.this), types.of_node(node.to)
        if given.literal is not None and given.type == "string" and wanted in _MOMENTS:
            if not _MOMENTS[wanted].fullmatch(given.literal):
                raise Uncertified(f"{render(node)} runs in Spark")
            self._check(render(node), raises=False, zoned=wanted == "timestamp")
            return Translated(f"CAST({given.sql} AS {_duck_type(wanted)})", wanted)
        found = cast_sql(given.type, wanted)
        if found is None:
            raise Uncertified(f"cast from {given.type} to {wanted} runs in Spark")
        sql, raises, zoned = found
        self._check(f"cast from {given.type} to {wanted}", raises=raises, zoned=zoned)
        return Translated(_filled(sql, [given], wanted), wanted)

    def _case(self, node: exp.Case) -> Translated:
        whens = [(each.this, each.args["true"]) for each in node.args["ifs"]]
        values = [self.of(each) for _, each in whens]
        values.append(self.of(node.args.get("default") or exp.Null()))
        kind = FUNCTIONS["case"].forms[0].result([each.type for each in values if each.type != "void"])
        if kind is None:
            raise Uncertified(f"CASE over {', '.join(each.type for each in values)} runs in Spark")
        conditions = []
        for condition, _ in whens:
            if node.this is not None:
                conditions.append(self._call("=", [node.this, condition]))
            else:
                conditions.append(self.of(condition))
        duck = _duck_type(kind)
        parts = [
            f"WHEN {when.sql} THEN CAST({then.sql} AS {duck})"
            for when, then in zip(conditions, values, strict=False)
        ]
        return Translated(f"(CASE {' '.join(parts)} ELSE CAST({values[-1].sql} AS {duck}) END)", kind)

    def _call(self, name: str, nodes: Sequence[Tree]) -> Translated:
        function = FUNCTIONS.get(name)
        arguments = [
            self._argument(each, unit=place == 0 and name in _TAKE_UNIT) for place, each in enumerate(nodes)
        ]
        given = [each.type for each in arguments]
        for form in function.forms if function else ():
            kind = form.result(given)
            if kind is None or not _literals_fit(form.literals, arguments):
                continue
            self._check(f"{name}()", raises=form.raises, zoned=form.zoned)
            return Translated(_filled(form.sql, arguments, kind), kind)
        raise Uncertified(f"{name}({', '.join(given)}) runs in Spark")

    def _argument(self, node: Tree, *, unit: bool) -> Translated:
        if unit and isinstance(node, (exp.Var, exp.Column)) and node.name.upper() in UNITS:
            return Translated(str(UNITS[node.name.upper()]), "unit", node.name.upper())
        return self.of(node)

    def _check(self, what: str, *, raises: bool, zoned: bool) -> None:
        if raises and not self.setting.ansi:
            raise Uncertified(f"{what} runs in Spark, because the session is not in ANSI mode")
        if zoned and self.setting.zone not in _UTC:
            raise Uncertified(f"{what} runs in Spark, because the session's time zone is {self.setting.zone}")


def _filled(sql: str, arguments: Sequence[Translated], kind: str) -> str:
    """The SQL of a form with its arguments."""
    duck = _duck_type(kind)
    texts = [each.sql for each in arguments]
    known = {
        "{type}": duck,
        "{all}": ", ".join(texts),
        "{rest}": ", ".join(texts[1:]),
        "{joined}": " || ".join(texts),
        "{cast}": ", ".join(f"CAST({each} AS {duck})" for each in texts),
        "{unit}": texts[0] if arguments and arguments[0].type == "unit" else "",
        **{f"{{{place}}}": text for place, text in enumerate(texts)},
    }
    # In one pass: an argument may itself hold braces, in a text.
    out, rest = [], sql
    while True:
        at = min((place for place in (rest.find(each) for each in known) if place >= 0), default=-1)
        if at < 0:
            return f"({''.join([*out, rest])})"
        name = next(each for each in known if rest.startswith(each, at))
        out += [rest[:at], known[name]]
        rest = rest[at + len(name) :]


def _duck_type(kind: str) -> str:
    return kind.upper() if kind.startswith("decimal(") else _DUCK_TYPES.get(kind, kind.upper())


def _literals_fit(wanted: Mapping[int, Callable[[str], bool]], arguments: Sequence[Translated]) -> bool:
    for place, allowed in wanted.items():
        text = arguments[place].literal
        if text is None or not allowed(text):
            return False
    return True


def _literal(node: Tree, *, negative: bool = False) -> Translated:
    sign = "-" if negative else ""
    if isinstance(node, exp.Null):
        return Translated("NULL", "void")
    if isinstance(node, exp.Boolean):
        return Translated("true" if node.this else "false", "boolean")
    text = node.name
    if node.args["is_string"]:
        if "\\" in text:
            raise Uncertified(f"{render(node)}: a text with a backslash runs in Spark")
        escaped = text.replace("'", "''")
        return Translated(f"'{escaped}'", "string", text)
    if "e" in text.lower():
        return Translated(f"CAST({sign}{text} AS DOUBLE)", "double", sign + text)
    if "." in text:
        whole, fraction = text.split(".")
        digits = max(len(whole.lstrip("0")) + len(fraction), 1)
        kind = f"decimal({digits},{len(fraction)})"
        return Translated(f"CAST({sign}{text} AS {kind.upper()})", kind, sign + text)
    value = int(sign + text)
    kind = "int" if -(2**31) <= value < 2**31 else "bigint"
    if not -(2**63) <= value < 2**63:
        raise Uncertified(f"{sign}{text} is no bigint; it runs in Spark")
    return Translated(f"CAST({value} AS {_DUCK_TYPES[kind]})", kind, sign + text)
