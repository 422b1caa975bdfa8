"""The query language: one statement over streams, a SELECT or a SPLIT.

``SPLIT reports CASE WHEN … THEN fast … ELSE rest END`` is the filter with m + 1 outputs of [002] §II.A;
each output gets a name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.aggregates.sql_calls import UserAggregate, check_definitions
from penstock.errors import BadExpression, BadName
from penstock.expressions.parsing import (
    Tree,
    check_quotes,
    marked,
    parse_scalar,
    parse_statement,
    render,
    tokens_of,
)
from penstock.query.relation import Derived, Relation
from penstock.query.sql.clauses import cut_clauses
from penstock.query.sql.grouping import windows_apart
from penstock.query.sql.scope import mark
from penstock.query.sql.statement import Statement
from penstock.query.sql.windows import cut_functions, restored
from penstock.query.stream import Stream

__all__ = ["sql"]

_FORM: Final = "SPLIT reports CASE WHEN speed > 100 THEN fast WHEN speed < 5 THEN slow ELSE rest END"


@dataclass(frozen=True)
class Split:
    """A split: its tables as a statement that begins with FROM, its conditions, and its output names.

    Without ELSE the last output has no name, and nothing reads it.
    """

    tables: str
    conditions: tuple[Tree, ...]
    names: tuple[str, ...]


def sql(text: str, /, *streams: Stream, **definitions: UserAggregate | Relation) -> Relation | Any:
    """The relation that a statement defines over the streams; for a SPLIT, a dict of relations by name.

    ``FROM calls [RANGE size SLIDE slide OFFSET offset]`` aggregates over windows. Without SLIDE they do
    not overlap. window_start and window_end always come first in the results. ``a JOIN b ON … WITHIN
    1 HOUR`` and ``… LAST 100 ROWS`` join. ``definitions`` names user-defined aggregates and relations that
    were made elsewhere. approx_count_distinct(x), quantile(x, q), percentile_approx(x, q) and top_k(x, k) are
    approximate, with the errors that their methods state; count(DISTINCT x) is exact.

    >>> from penstock.query.stream import stream
    >>> reports = stream("reports", "time timestamp, vehicle string, speed double", time="time")
    >>> sql("SELECT vehicle, avg(speed) AS mean FROM reports [RANGE 5 MINUTES] GROUP BY vehicle", reports)
    reports.group_by(vehicle).window(5 minutes slide 5 minutes).agg(mean=avg(`speed`))
    >>> alerts = stream("alerts", "at timestamp, car string, code int", time="at")
    >>> sql("SELECT r.speed, a.code FROM reports AS r JOIN alerts AS a ON r.vehicle = a.car WITHIN 1 MINUTE",
    ...     reports, alerts)
    reports.join(alerts; vehicle = car; within 1 minute).select(pair_time, speed, code)
    >>> sql("SPLIT reports CASE WHEN speed > 100 THEN fast ELSE rest END", reports)["fast"]
    reports.split(`speed` > 100)[0]
    """
    if not isinstance(text, str):
        raise BadExpression(
            f"expected SQL text, got {text!r} of type {type(text).__name__}; put it in quotes"
        )
    relations = _relations(streams, definitions)
    aggregates = {name.lower(): each for name, each in definitions.items() if not isinstance(each, Relation)}
    check_definitions(aggregates)
    split = split_of(text)
    plain, functions = cut_functions(split.tables if split else text)
    rest, clauses = cut_clauses(plain)
    tree = restored(parse_statement(rest, text), text)
    aliases = (each.alias for each in tree.find_all(exp.Alias))
    check_quotes(text, (*aliases, *(name for each in relations.values() for name in each.schema.names)))
    for group in tree.find_all(exp.Group):
        windows_apart(group)
    statement = Statement(text, relations, aggregates, iter(clauses), functions)
    found = _branches(split, statement, tree) if split else statement.relation(tree)
    assert next(statement.clauses, None) is None, "every SELECT of the text has been read"
    return found


def _relations(streams: tuple[Stream, ...], definitions: Mapping[str, object]) -> dict[str, Relation]:
    found: dict[str, Relation] = {}
    for each in streams:
        if not isinstance(each, Stream):
            raise BadName(f"{each!r} has no name; pass it under one: sql(text, name=…)")
        if found.setdefault(each.name.lower(), each) != each:
            raise BadName(f"two streams have the name {each.name!r}; declare it once and use it twice")
    for name, given in definitions.items():
        if isinstance(given, Relation):
            if name.lower() in found:
                raise BadName(f"{name!r} is already the name of a stream; choose another one")
            found[name.lower()] = given
    return found


def _branches(split: Split, statement: Statement, tree: exp.Expr) -> dict[str, Derived]:
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("having"):
        raise BadExpression("a SPLIT takes tables, joins and WHERE; put anything else into a sub-query")
    # In the select list, so that joins keep columns that only conditions read.
    tree.set("expressions", [exp.Star(), *split.conditions])
    reading = statement.read(tree)
    scope = reading.scope
    if reading.window is not None:
        raise BadExpression("a SPLIT has no window; put the aggregation into a sub-query")
    found = scope.relation.split(*(render(scope.over(each)) for each in split.conditions))
    shown = [each.select(*scope.visible) for each in found] if scope.hidden else found
    return dict(zip(split.names, shown, strict=False))


def split_of(text: str) -> Split | None:
    """The split that a text defines, None if it is a SELECT.

    >>> found = split_of("SPLIT calls CASE kind WHEN 'a' THEN first ELSE others END")
    >>> found.tables, render(found.conditions[0]), found.names
    ('FROM  calls ', "kind = 'a'", ('first', 'others'))
    """
    outside = list(_outside_parentheses(text))
    start = _start(outside)
    if start is None:
        return None
    later = [each for each in outside if each.start > start.start and each.token_type == TokenType.CASE]
    if not later:
        raise BadExpression(f"SPLIT without a CASE; write {_FORM}\n{marked(text, start.start)}")
    place = later[0].start
    # FROM has the length of SPLIT with the blank, so that positions do not change.
    tables = f"{text[: start.start]}FROM {text[start.end + 1 : place]}"
    case = parse_scalar(" " * place + text[place:], text)
    if not isinstance(case, exp.Case):
        raise BadExpression(f"a SPLIT ends with its CASE; write {_FORM}\n{marked(text, place)}")
    return Split(tables, tuple(_conditions(case)), tuple(_names(case, text)))


def _outside_parentheses(text: str) -> Iterator[Token]:
    depth = 0
    for each in tokens_of(text):
        depth -= each.token_type == TokenType.R_PAREN
        if depth == 0:
            yield each
        depth += each.token_type == TokenType.L_PAREN


def _start(outside: list[Token]) -> Token | None:
    """The word SPLIT in the position of a SELECT: first of all, or after the tables of a WITH."""
    before: TokenType | None = None
    for each in outside:
        if each.token_type in {TokenType.SELECT, TokenType.FROM}:
            return None
        word = each.token_type == TokenType.VAR and str(each.text).upper() == "SPLIT"
        if word and before in {None, TokenType.R_PAREN}:
            return each
        before = each.token_type
    return None


def _conditions(case: exp.Case) -> Iterator[Tree]:
    for each in case.args["ifs"]:
        condition = each.this.copy()
        yield exp.EQ(this=case.this.copy(), expression=condition) if case.this else condition


def _names(case: exp.Case, text: str) -> Iterator[str]:
    default = case.args.get("default")
    seen: set[str] = set()
    for each in [*(each.args["true"] for each in case.args["ifs"]), *([default] if default else [])]:
        if not isinstance(each, exp.Column) or each.table:
            raise BadExpression(f"{render(each)} cannot name an output; write {_FORM}{mark(each, text)}")
        if each.name.lower() in seen:
            raise BadName(
                f"two outputs have the name {each.name!r}; join their conditions with OR{mark(each, text)}"
            )
        seen.add(each.name.lower())
        yield str(each.name)
