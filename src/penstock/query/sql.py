"""The query language: SQL in which a window stands after its table and a bound after each join."""

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from penstock.errors import BadExpression, BadName
from penstock.expressions.parsing import parse_statement, render
from penstock.query.clauses import cut_clauses
from penstock.query.relation import Derived, Relation
from penstock.query.sql_calls import Definition, check_definitions
from penstock.query.sql_split import Split, split_of
from penstock.query.sql_statement import Statement
from penstock.query.stream import Stream

__all__ = ["sql"]


def sql(text: str, /, *streams: Stream, **definitions: Definition | Relation) -> Relation | Any:
    """The relation that a statement states over the streams; of a SPLIT a dict of relations by name.

    ``FROM calls [RANGE size SLIDE slide OFFSET offset]`` aggregates over windows; without SLIDE they do
    not overlap, and window_start and window_end always come first in the results. ``a JOIN b ON … WITHIN
    1 HOUR`` and ``… LAST 100 ROWS`` join. ``definitions`` gives names to user-defined aggregates and to
    relations made elsewhere. Approximate, with the errors that their methods state, are count(DISTINCT x)
    and approx_count_distinct(x), quantile(x, q) and top_k(x, k).

    >>> from penstock.query.stream import stream
    >>> reports = stream("reports", "time timestamp, vehicle string, speed double", time="time")
    >>> sql("SELECT vehicle, avg(speed) AS mean FROM reports [RANGE 5 MINUTES] GROUP BY vehicle", reports)
    reports.group_by(vehicle).window(5 minutes slide 5 minutes).agg(mean=avg(`speed`))
    >>> alerts = stream("alerts", "at timestamp, car string, code int", time="at")
    >>> sql("SELECT r.speed, a.code FROM reports AS r JOIN alerts AS a ON r.vehicle = a.car WITHIN 1 MINUTE",
    ...     reports, alerts)
    reports.join(alerts; vehicle = car; within 1 minute).select(time, speed, code)
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
    rest, clauses = cut_clauses(split.tables if split else text)
    tree = parse_statement(rest, text)
    statement = Statement(text, relations, aggregates, iter(clauses))
    found = _branches(split, statement, tree) if split else statement.relation(tree)
    assert next(statement.clauses, None) is None, "every SELECT of the text has been read"
    return found


def _relations(streams: tuple[Stream, ...], definitions: Mapping[str, object]) -> dict[str, Relation]:
    found: dict[str, Relation] = {}
    for each in streams:
        if not isinstance(each, Stream):
            raise BadName(f"{each!r} has no name of its own; pass it under one: sql(text, name=…)")
        if found.setdefault(each.name.lower(), each) != each:
            raise BadName(f"two streams have the name {each.name!r}; declare it once and use it twice")
    for name, given in definitions.items():
        if isinstance(given, Relation):
            if name.lower() in found:
                raise BadName(f"{name!r} is the name of a stream already; choose another one")
            found[name.lower()] = given
    return found


def _branches(split: Split, statement: Statement, tree: exp.Expr) -> dict[str, Derived]:
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("having"):
        raise BadExpression("a SPLIT takes tables, joins and WHERE; put anything else into a sub-query")
    # In the select list, so that columns which only conditions read are carried through joins.
    tree.set("expressions", [exp.Star(), *split.conditions])
    scope, clauses = statement.scope(tree)
    if clauses.window is not None:
        raise BadExpression("a SPLIT has no window; put the aggregation into a sub-query")
    found = scope.relation.split(*(render(scope.over(each)) for each in split.conditions))
    shown = [each.select(*scope.visible) for each in found] if scope.hidden else found
    return dict(zip(split.names, shown, strict=False))
