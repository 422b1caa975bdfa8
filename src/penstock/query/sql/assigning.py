"""The windows of a row as columns, where a statement reads a table function without grouping by windows."""

from dataclasses import replace
from typing import Final

from penstock.errors import BadWindow
from penstock.expressions.parsing import Tree, render
from penstock.expressions.schema import quoted
from penstock.operators import WINDOW_END, WINDOW_START
from penstock.operators.windows import Cumulation, Window
from penstock.operators.windows.shapes import cumulate, window_of
from penstock.query.sql.scope import Scope
from penstock.query.sql.windows import TIME_OF_WINDOW, TableFunction

__all__ = ["assigned"]

_BOUND: Final = "_bound"
_BEFORE_END: Final = 1_000  # microseconds, as in Flink


def assigned(scope: Scope, function: TableFunction, after: tuple[Tree, ...]) -> Scope:
    """The scope with a row for each window that a row is in, and window_start, window_end and window_time."""
    relation, clause = scope.relation, function.clause
    if clause.kind == "session":
        raise BadWindow(
            "SESSION() without an aggregate: a session is known when it ends; write GROUP BY window_start, "
            "window_end, or collect the rows with collect_list()"
        )
    if relation.time not in relation.schema or relation.time_type != "timestamp":
        raise BadWindow(
            f"{function.name.upper()}() without an aggregate needs the event time {relation.time!r} as a "
            f"timestamp column; it is {relation.time_type}"
        )
    taken = {each.lower() for each in relation.schema.names}
    if taken & {WINDOW_START, WINDOW_END, TIME_OF_WINDOW, _BOUND}:
        raise BadWindow(f"{function.name.upper()}() of rows that have windows already; group by them instead")
    time = f"unix_micros({quoted(relation.time)})"
    if clause.kind == "cumulate":
        shape = cumulate(clause.size, clause.slide or "", clause.offset)
        array, start, end = _cumulating(shape, time)
    else:
        array, start, end = _sliding(window_of(clause.size, clause.slide, clause.offset), time)
    bounds = {
        WINDOW_START: f"timestamp_micros({start})",
        WINDOW_END: f"timestamp_micros({end})",
        TIME_OF_WINDOW: f"timestamp_micros({end} - {_BEFORE_END})",
    }
    made = relation.explode(outer=False, **{_BOUND: array}).select(*relation.schema.names, **bounds)
    for each in after:
        made = made.where(render(scope.over(each)))
    return replace(scope, relation=made)


def _sliding(window: Window, time: str) -> tuple[str, str, str]:
    """The starts of the windows that hold a time, and the bounds of one."""
    into = f"pmod({time} - {window.offset}, {window.slide})"
    last = f"({time} - {into})"
    first = f"{last} - {window.slide} * (({window.size} - 1 - {into}) DIV {window.slide})"
    starts = f"sequence({first}, {last}, {window.slide})"
    if window.slide > window.size:
        starts = f"CASE WHEN {into} < {window.size} THEN {starts} END"
    return starts, _BOUND, f"{_BOUND} + {window.size}"


def _cumulating(shape: Cumulation, time: str) -> tuple[str, str, str]:
    """The ends of the windows that hold a time, and the bounds of one."""
    into = f"pmod({time} - {shape.offset}, {shape.size})"
    start = f"({time} - {into})"
    first = f"{start} + {shape.step} * ({into} DIV {shape.step} + 1)"
    return f"sequence({first}, {start} + {shape.size}, {shape.step})", start, _BOUND
