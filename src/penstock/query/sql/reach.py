"""How far apart in time the conditions of a JOIN let two rows be.

Conditions that compare the event time of the new table with that of a table on the left, from below and from
above, bound the join. They are kept as they are; the join itself needs to know how far apart the times of
its two inputs may be. The left input may be a pair, whose time is that of one of its rows, so the bounds of
all joins on the way count: if payments come up to 10 s after orders and shipments up to 10 s after payments,
a shipment comes up to 20 s after its order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import BadDuration, BadJoin
from penstock.expressions.durations import signed_microseconds
from penstock.expressions.parsing import Tree, render
from penstock.query.sql.clauses import BoundClause
from penstock.query.sql.scope import FromTable, Scope, found_in
from penstock.query.sql.windows import WINDOW_BOUNDS, conjuncts

__all__ = ["Reach", "by_window", "reach_of", "unknown_lengths"]

Span = tuple[int, int]


@dataclass(frozen=True)
class Reach:
    """How long before and after the left input's time, in microseconds, the right one's may lie."""

    least: int
    most: int

    @property
    def apart(self) -> int:
        """The distance in either direction."""
        return max(abs(self.least), abs(self.most))

    def spans(self, left: Mapping[int, Span], right: int, how: str, time: str) -> dict[int, Span]:
        """How far the times of all tables may lie after that of the pair, which ``time`` names.

        A row without a partner has its own time.
        """
        before, after = max(0, -self.least), max(0, self.most)
        ours, theirs = {
            "earliest": ((0, before), (0, after)),
            "latest": ((-after, 0), (-before, 0)),
            "left": ((0, 0), (self.least, self.most)),
            "right": ((-self.most, -self.least), (0, 0)),
        }[time]
        if how in {"left", "full"}:
            ours = min(0, ours[0]), max(0, ours[1])
        if how in {"right", "full"}:
            theirs = min(0, theirs[0]), max(0, theirs[1])
        found = {table: (low + ours[0], high + ours[1]) for table, (low, high) in left.items()}
        return {**found, right: theirs}


def by_window(
    left: Sequence[FromTable], right: FromTable, on: Tree | None
) -> tuple[BoundClause, Tree | None] | None:
    """The windows by which two table functions are joined, and the rest of the condition."""
    (first, *more) = left
    if right.function is None or more or first.function is None:
        return None
    equal = [(each, _equal_columns(each)) for each in (conjuncts(on) if on is not None else ())]
    shared = {name for _, pair in equal for name in WINDOW_BOUNDS if pair == (name, name)}
    if shared != set(WINDOW_BOUNDS):
        return None
    ours, theirs = first.function.clause, right.function.clause
    if not (ours.kind == theirs.kind == "window" and ours.lengths == theirs.lengths):
        raise BadJoin(
            f"{first.name} and {right.name} are joined by the bounds of their windows, which differ or "
            "are neither tumbling nor sliding; give both the same TUMBLE or HOP"
        )
    rest = [each for each, pair in equal if pair not in {(name, name) for name in WINDOW_BOUNDS}]
    return BoundClause(window=theirs), exp.and_(*rest) if rest else None


def reach_of(left: Scope, right: FromTable, on: Tree | None) -> Reach | None:
    """What a condition says of the times of both sides; None unless it bounds them in both directions."""
    tables = {each.number: each for each in (*left.tables, right)}
    least: list[int] = []
    most: list[int] = []
    for each in conjuncts(on) if on is not None else ():
        for first, second, at_least, at_most in _comparisons(each.unnest()):
            ours, theirs = _moment(first, tables), _moment(second, tables)
            if ours is None or theirs is None or right.number not in {ours[0], theirs[0]}:
                continue
            turned = theirs[0] == right.number
            other, distance = (ours[0], ours[1] - theirs[1]) if turned else (theirs[0], theirs[1] - ours[1])
            span = left.spans.get(other)
            if span is not None:
                least += [distance + span[0]] if (at_most if turned else at_least) else []
                most += [distance + span[1]] if (at_least if turned else at_most) else []
    return Reach(max(least), min(most)) if least and most else None


def _comparisons(node: Tree) -> Iterator[tuple[Tree, Tree, bool, bool]]:
    """Two sides, whether the first is at least the second, and whether it is at most that."""
    if isinstance(node, exp.Between):
        yield node.this, node.args["low"], True, False
        yield node.this, node.args["high"], False, True
    elif isinstance(node, (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)):
        equal = isinstance(node, exp.EQ)
        greater = isinstance(node, (exp.GT, exp.GTE))
        yield node.this, node.expression, equal or greater, equal or not greater


def unknown_lengths(on: Tree | None) -> list[str]:
    """The intervals of a condition that have no fixed length, or none that is understood."""
    return [render(each) for each in (on.find_all(exp.Interval) if on else ()) if _length(each) is None]


def _moment(tree: Tree, tables: Mapping[int, FromTable]) -> tuple[int, int] | None:
    """The table whose event time an expression is, plus how much; None if it is anything else."""
    node, plus = tree.unnest(), 0
    while isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression.unnest(), exp.Interval):
        length = _length(node.expression.unnest())
        if length is None:
            return None
        plus += length if isinstance(node, exp.Add) else -length
        node = node.this.unnest()
    found = found_in(node)
    if found is None or found.fields or found.read[0] not in tables:
        return None
    number, column = found.read
    return (number, plus) if tables[number].relation.time.lower() == column else None


def _length(interval: Tree) -> int | None:
    try:
        return signed_microseconds(render(interval))
    except BadDuration:
        return None


def _equal_columns(tree: Tree) -> tuple[str, str] | None:
    """The names of the columns of two tables that a condition says are equal."""
    node = tree.unnest()
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if not sides or not all(isinstance(each, exp.Column) for each in sides):
        return None
    one_table = bool(sides[0].table) and sides[0].table == sides[1].table
    return None if one_table else (sides[0].name.lower(), sides[1].name.lower())
