"""Spark SQL to DuckDB SQL of the same meaning, or the reason why there is none.

Types go up from the columns: each node is translated by the form that is certified for the types of its
arguments. A node without one makes the whole expression one that only Spark can evaluate.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from sqlglot import exp

from penstock.expressions import types
from penstock.expressions.duck import constant_type
from penstock.expressions.parsing import Tree, parse_scalar, render
from penstock.functions.calls import call_of, unit_of
from penstock.functions.casts import cast_between
from penstock.functions.function import FUNCTIONS, Form
from penstock.functions.times import UNITS

__all__ = [
    "DEFAULT",
    "SqlSetting",
    "Translated",
    "Types",
    "Uncertified",
    "duck_name",
    "duck_type",
    "passed_or_translated",
    "translated",
]

Types = Mapping[str, str | None]
"""Columns in sight and their types; None where only Spark can tell."""

# What Spark's order of evaluation costs is that arguments stand twice; beyond this, Spark takes over.
_LONGEST: Final = 20_000


@dataclass(frozen=True)
class SqlSetting:
    """What Spark's session says about the meaning of SQL."""

    ansi: bool = True
    zone: str = "UTC"


DEFAULT: Final = SqlSetting()
_WHOLE: Final = re.compile(r"\d+")
_SECONDS: Final = re.compile(r"\d+\.\d{1,6}")
_UTC: Final = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "+00:00"})


@dataclass(frozen=True)
class Translated:
    """DuckDB's SQL, the type that Spark gives, the text of a literal, and whether it may raise."""

    sql: str
    type: str
    literal: str | None = None
    raises: bool = False


@dataclass(frozen=True)
class Passed:
    """A column that passes unchanged, of whatever type."""

    sql: str
    type: str | None


class Uncertified(Exception):  # noqa: N818 -- it is an answer, not a fault
    """No certified translation; the message says what is missing."""


def translated(sql: str, columns: Types, setting: SqlSetting = DEFAULT) -> Translated:
    """An expression over columns of known types for DuckDB; raise Uncertified where only Spark will do.

    >>> translated("`n` / 2", {"n": "bigint"}).type
    'double'
    >>> translated("exp(`x`)", {"x": "double"})
    Traceback (most recent call last):
    penstock.functions.translation.Uncertified: exp(double) has no certified translation
    """
    lowered = {name.lower(): (name, kind) for name, kind in columns.items()}
    found = _Translation(lowered, setting).of(parse_scalar(sql))
    if found.type == "void":
        raise Uncertified(f"{sql} is a null without a type")
    return found


def passed_or_translated(sql: str, columns: Types, setting: SqlSetting = DEFAULT) -> Passed | Translated:
    """The same, but a column alone may be of any type, known or not: it passes unchanged."""
    node = parse_scalar(sql)
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        for name, kind in columns.items():
            if name.lower() == node.name.lower():
                return Passed(duck_name(name), kind)
    return translated(sql, columns, setting)


def duck_type(kind: str) -> str:
    """The name of a type in DuckDB."""
    return kind.upper() if kind.startswith("decimal(") else _DUCK_TYPES[kind]


def duck_name(name: str) -> str:
    """A name in DuckDB's quotes."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


# Spark and DuckDB read these spellings alike; others are left to Spark.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_MOMENTS: Final = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": _TIME,
    "timestamp_ntz": _TIME,
}
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
    "unit": "BIGINT",
}
_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "between", "in", "equal_null"})


@dataclass(frozen=True)
class _Translation:
    columns: Mapping[str, tuple[str, str | None]]
    setting: SqlSetting

    def of(self, node: Tree) -> Translated:
        """The translation of a node; a negated predicate is one argument of its node."""
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            found = self._of(plain)
            return Translated(f"(NOT {found.sql})", "boolean", raises=found.raises)
        found = self._of(node)
        return found if not found.raises or self._reads(node) else _constant(node, found)

    def _reads(self, node: Tree) -> bool:
        """Whether a node reads a column; a unit of time is parsed as one."""
        paths = ([part.name for part in each.parts] for each in node.find_all(exp.Column))
        return any(self._named(path)[1] is not None for path in paths)

    def _of(self, node: Tree) -> Translated:  # noqa: C901, PLR0911 -- a line for each kind of node
        if isinstance(node, exp.Paren):
            return self.of(node.this)
        if isinstance(node, (exp.Column, exp.Dot)):
            return self._column(node)
        if isinstance(node, (exp.Literal, exp.Boolean, exp.Null)):
            return _literal(node)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _literal(node.this, negative=True)
        if isinstance(node, exp.Cast) and not node.args.get("safe"):
            return self._cast(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, (exp.And, exp.Or)):
            return self._connected(node)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return self._between(node)
        if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression, exp.Interval):
            return self._moved(node, node.expression)
        call = call_of(node)
        if call is None:
            raise Uncertified(f"{render(node)} has no certified translation")
        return self._call(*call)

    def _column(self, node: Tree) -> Translated:
        """A column; fields of structs are left to Spark.

        DuckDB casts a field also for rows that a CASE leaves out, and then raises for them.
        """
        path = [each.name for each in node.parts] if isinstance(node, exp.Column) else []
        written, kind = self._named(path)
        if kind is None or len(written) < len(path) or not types.is_atomic(kind) or kind == "binary":
            raise Uncertified(f"{render(node)} is {kind or 'of a type that is not known yet'}")
        return Translated(".".join(map(duck_name, written)), kind)

    def _named(self, path: list[str]) -> tuple[list[str], str | None]:
        """How the column at the start of a path is spelled, and its type; of a pair, `l.x` is a column."""
        for length in (1, 2):
            found = self.columns.get(".".join(path[:length]).lower())
            if found is not None and len(path) >= length:
                return found[0].split(".", length - 1), found[1]
        return path, None

    def _cast(self, node: exp.Cast) -> Translated:
        given, wanted = self.of(node.this), types.of_node(node.to)
        what = f"a cast from {given.type} to {wanted}"
        if given.type == "void":
            return Translated(f"CAST(NULL AS {duck_type(wanted)})", wanted)
        if given.literal is not None and given.type == "string":
            if wanted in _MOMENTS:
                return self._moment(given, wanted)
            raise Uncertified(f"{what} has no certified translation")
        exact = wanted == "double" or (wanted == "bigint" and types.is_integer(given.type))
        if given.literal is not None and exact and types.is_numeric(given.type):
            return Translated(f"CAST({given.literal} AS {duck_type(wanted)})", wanted, given.literal)
        found = cast_between(given.type, wanted)
        if found is None:
            raise Uncertified(f"{what} has no certified translation")
        self._check(what, raises=found.raises, zoned=found.zoned)
        return Translated(_filled(found.sql, [given], wanted), wanted, raises=given.raises or found.raises)

    def _moment(self, given: Translated, wanted: str) -> Translated:
        if not _MOMENTS[wanted].fullmatch(given.literal or ""):
            raise Uncertified(f"{given.sql} as {wanted} is read by Spark")
        self._check(f"{wanted} {given.sql}", raises=False, zoned=wanted == "timestamp")
        return Translated(f"CAST({given.sql} AS {duck_type(wanted)})", wanted)

    def _connected(self, node: exp.And | exp.Or) -> Translated:
        """A chain of AND or of OR: a part is not evaluated if one before it decides."""
        parts = [self.of(each) for each in _chain(node)]
        wrong = [each.type for each in parts if each.type not in {"boolean", "void"}]
        if wrong:
            raise Uncertified(f"{wrong[0]} as a condition has no certified translation")
        word, decides = ("AND", "false") if isinstance(node, exp.And) else ("OR", "true")
        sql = f"({f' {word} '.join(each.sql for each in parts)})"
        raises = any(each.raises for each in parts)
        if any(each.raises for each in parts[1:]):
            decided = "NOT " if decides == "false" else ""
            last = max(place for place, each in enumerate(parts) if each.raises)
            whens = " ".join(f"WHEN {decided}{each.sql} THEN {decides}" for each in parts[:last])
            sql = f"(CASE {whens} ELSE {sql} END)"
        return Translated(sql, "boolean", raises=raises)

    def _between(self, node: exp.Between) -> Translated:
        """Two comparisons; where an end may raise, the second only if the first is not false, as in Spark."""
        value, low, high = node.this, node.args["low"], node.args["high"]
        if not (self.of(low).raises or self.of(high).raises):
            return self._call("between", [value, low, high])
        return self._connected(
            exp.And(
                this=exp.GTE(this=value.copy(), expression=low.copy()),
                expression=exp.LTE(this=value.copy(), expression=high.copy()),
            )
        )

    def _moved(self, node: exp.Add | exp.Sub, by: exp.Interval) -> Translated:
        """A time plus or minus an interval of a fixed length."""
        given, unit = self.of(node.this), str(by.args.get("unit") or "").upper().removesuffix("S")
        text = by.this.name if isinstance(by.this, exp.Literal) else ""
        known = _WHOLE.fullmatch(text) or (unit == "SECOND" and _SECONDS.fullmatch(text))
        if given.type not in {"timestamp", "timestamp_ntz"} or unit not in UNITS or not known:
            raise Uncertified(f"{render(node)} has no certified translation")
        days = unit in {"DAY", "WEEK"}
        self._check(render(node), raises=False, zoned=given.type == "timestamp" and days)
        sign = "+" if isinstance(node, exp.Add) else "-"
        sql = f"({given.sql} {sign} to_microseconds({int(Decimal(text) * UNITS[unit])}))"
        return Translated(sql, given.type, raises=given.raises)

    def _case(self, node: exp.Case) -> Translated:
        whens = [(each.this, each.args["true"]) for each in node.args["ifs"]]
        if node.this is not None:
            whens = [(exp.EQ(this=node.this.copy(), expression=when.copy()), then) for when, then in whens]
        conditions = [self.of(when) for when, _ in whens]
        values = [self.of(then) for _, then in whens]
        values.append(self.of(node.args.get("default") or exp.Null()))
        kind = FUNCTIONS["coalesce"].forms[0].result([each.type for each in values if each.type != "void"])
        if kind is None or any(each.type != "boolean" for each in conditions):
            raise Uncertified(
                f"CASE over {', '.join(each.type for each in values)} has no certified translation"
            )
        parts = [
            f"WHEN {when.sql} THEN {_as(then, kind)}" for when, then in zip(conditions, values, strict=False)
        ]
        raises = any(each.raises for each in (*conditions, *values))
        return Translated(f"(CASE {' '.join(parts)} ELSE {_as(values[-1], kind)} END)", kind, raises=raises)

    def _call(self, name: str, nodes: Sequence[Tree]) -> Translated:
        function = FUNCTIONS.get(name)
        arguments = [self._argument(name, place, each) for place, each in enumerate(nodes)]
        if name in _COMPARISONS:
            arguments = self._with_moments(arguments)
        given = [each.type for each in arguments]
        for form in function.forms if function else ():
            kind = form.result(given)
            if kind is None or not _literals_fit(form, arguments):
                continue
            self._check(f"{name}()", raises=form.raises, zoned=form.zoned)
            return _applied(name, form, arguments, kind)
        raise Uncertified(f"{name}({', '.join(given)}) has no certified translation")

    def _argument(self, name: str, place: int, node: Tree) -> Translated:
        unit = unit_of(name, place, node)
        return self.of(node) if unit is None else Translated(str(UNITS[unit]), "unit", unit)

    def _with_moments(self, arguments: list[Translated]) -> list[Translated]:
        """Texts that stand for a time because they are compared with one."""
        kinds = {each.type for each in arguments if each.type in _MOMENTS}
        if len(kinds) != 1:
            return arguments
        (wanted,) = kinds
        return [
            self._moment(each, wanted) if each.type == "string" and each.literal is not None else each
            for each in arguments
        ]

    def _check(self, what: str, *, raises: bool, zoned: bool) -> None:
        if raises and not self.setting.ansi:
            raise Uncertified(f"{what} is certified for ANSI mode, and the session is not in it")
        if zoned and self.setting.zone not in _UTC:
            raise Uncertified(
                f"{what} is certified for UTC, and the session's time zone is {self.setting.zone}"
            )


def _constant(node: Tree, found: Translated) -> Translated:
    """A value without columns that does not raise, though its functions may; what raises is left to Spark.

    DuckDB computes a constant when it plans, also where no row reaches it, and would raise then. A few it
    gives a wider type instead, such as the smallest integer with its sign changed.
    """
    if constant_type(found.sql) != duck_type(found.type):
        raise Uncertified(f"{render(node)} raises for every row, and so has no certified translation")
    return replace(found, raises=False)


def _applied(name: str, form: Form, arguments: Sequence[Translated], kind: str) -> Translated:
    """The form with its arguments; what Spark would not evaluate is not evaluated either."""
    order = [arguments[1], arguments[0]] if form.order == "divisor first" else list(arguments)
    late = [place for place, each in enumerate(order) if place and each.raises]
    if late and form.order == "short":
        raise Uncertified(f"{name}() over values that may raise has no certified translation")
    sql = _filled(form.sql, arguments, kind)
    if late and form.order in {"strict", "divisor first"}:
        before = [f"{each.sql} IS NULL" for each in order[: late[-1]] if each.literal is None]
        if before:
            sql = f"(CASE WHEN {' OR '.join(before)} THEN CAST(NULL AS {duck_type(kind)}) ELSE {sql} END)"
    if len(sql) > _LONGEST:
        raise Uncertified("an expression this long has no certified translation")
    return Translated(sql, kind, raises=form.raises or any(each.raises for each in arguments))


_HOLE: Final = re.compile(r"\{(\d+|all|rest|joined|type|unit)(:as|:with)?\}")


def _filled(sql: str, arguments: Sequence[Translated], kind: str) -> str:
    """The SQL of a form with its arguments."""
    wide = _compared_as([each.type for each in arguments])

    def shown(each: Translated, ending: str | None) -> str:
        if ending == ":as":
            return _as(each, kind)
        return _as(each, wide) if ending == ":with" and wide else each.sql

    def hole(found: re.Match[str]) -> str:
        name, ending = found[1], found[2]
        if name == "type":
            return duck_type(kind)
        if name == "unit":
            return arguments[0].sql
        if name == "joined":
            return " || ".join(each.sql for each in arguments)
        if name in {"all", "rest"}:
            return ", ".join(shown(each, ending) for each in arguments[1 if name == "rest" else 0 :])
        return shown(arguments[int(name)], ending)

    return f"({_HOLE.sub(hole, sql)})"


def _compared_as(given: Sequence[str]) -> str | None:
    """The type in which numbers of different types are compared, if one has to be cast."""
    kinds = set(given)
    return "double" if len(kinds) > 1 and "double" in kinds else None


def _as(value: Translated, kind: str) -> str:
    if value.type == kind:
        return value.sql
    # A number as it was written, not by way of a decimal, so that a join's estimates can read it.
    number = value.literal is not None and kind == "double"
    return f"CAST({value.literal if number else value.sql} AS {duck_type(kind)})"


def _chain(node: Tree) -> list[Tree]:
    """The parts of a chain of one connector, from the left; only the left side is taken apart."""
    kind, parts, rest = type(node), [], node
    while type(rest) is kind:
        parts.append(rest.expression)
        rest = rest.this
    return [rest, *reversed(parts)]


def _literals_fit(form: Form, arguments: Sequence[Translated]) -> bool:
    if any(arguments[place].literal is not None for place in form.varying):
        return False
    texts = {place: arguments[place].literal for place in form.literals}
    return all(text is not None and form.literals[place](text) for place, text in texts.items())


def _literal(node: Tree, *, negative: bool = False) -> Translated:
    sign = "-" if negative else ""
    if isinstance(node, exp.Null):
        return Translated("NULL", "void")
    if isinstance(node, exp.Boolean):
        return Translated("true" if node.this else "false", "boolean", "true" if node.this else "false")
    text = node.name
    if node.args["is_string"]:
        if "\\" in text or "\0" in text:
            raise Uncertified(f"{render(node)} is a text with a backslash")
        escaped = text.replace("'", "''")
        return Translated(f"'{escaped}'", "string", text)
    if "e" in text.lower():
        return Translated(f"CAST({sign}{text} AS DOUBLE)", "double", sign + text)
    if "." in text:
        whole, fraction = text.split(".")
        digits = max(len(whole.lstrip("0")) + len(fraction), 1)
        if digits > 38:
            raise Uncertified(f"{text} has more than 38 digits")
        kind = f"decimal({digits},{len(fraction)})"
        return Translated(f"CAST({sign}{text} AS {kind.upper()})", kind, sign + text)
    value = int(sign + text)
    if not -(2**63) <= value < 2**63:
        raise Uncertified(f"{sign}{text} is no bigint")
    kind = "int" if -(2**31) <= value < 2**31 else "bigint"
    return Translated(f"CAST({value} AS {_DUCK_TYPES[kind]})", kind, sign + text)
