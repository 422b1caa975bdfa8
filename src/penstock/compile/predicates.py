"""Filters moved down to where tuples are fewer to be held: below joins, aggregations and maps (002, III.F).

What a query delivers stays the same. A condition passes an operator that keeps state only if it raises for
no tuple, so no filter before it can have been its guard; it passes selects and unions together with all
filters around it, in their order. A relation that something else reads too is not passed. Below a select or
a union alone nothing is moved: Spark and DuckDB do that themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.compile.conditions import conjuncts, is_total, joined, substituted
from penstock.compile.naming import named
from penstock.compile.rebuild import filtered, rebuilt, stepped
from penstock.compile.shared import readers
from penstock.compile.sides import sides_of
from penstock.query import (
    Aggregation,
    Branch,
    Derived,
    Expression,
    Join,
    Map,
    Process,
    Query,
    Relation,
    Schema,
    Select,
    Union,
    Where,
    quoted,
)

__all__ = ["predicates_down"]

Filters = Sequence[Where | Branch]


def predicates_down(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with its filters as far down as they can go, and what was moved where.

    >>> from penstock.query import stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> known = stream("known", "time timestamp, phone string", time="time")
    >>> long = calls.join(known, "phone", within="1 hour").where("seconds > 60")
    >>> predicates_down(Query((long,)))[0]
    calls.where(`seconds` > 60).join(known; phone; within 1 hour)
    """
    sinking = _Sinking(readers(query))
    outputs = tuple(sinking.rewritten(each) for each in query.outputs)
    return (query if outputs == query.outputs else Query(outputs)), tuple(sinking.notes)


@dataclass
class _Sinking:
    """Rewrites each relation once; `readers` counts what reads it, as in the query that is rewritten."""

    readers: dict[Relation, int]
    known: dict[Relation, Relation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rewritten(self, relation: Relation) -> Relation:
        """The relation with every filter behind it moved down."""
        if relation not in self.known:
            self.known[relation] = self._rewritten(relation)
        return self.known[relation]

    def _rewritten(self, relation: Relation) -> Relation:
        if not isinstance(relation, Derived):
            return relation
        if isinstance(relation.operator, (Where, Branch)):
            return self._below(relation.inputs[0], (relation.operator,))[0]
        return rebuilt(relation, [self.rewritten(each) for each in relation.inputs])

    def _below(self, relation: Relation, filters: Filters) -> tuple[Relation, bool]:
        """The relation after these filters, and whether one of them has passed an operator worth passing."""
        found = None
        if isinstance(relation, Derived) and self.readers[relation] == 1:
            found = self._passed(relation, filters)
        return (found, True) if found else (filtered(self.rewritten(relation), filters), False)

    def _passed(self, relation: Derived, filters: Filters) -> Relation | None:
        operator = relation.operator
        if isinstance(operator, (Where, Branch)):
            found, passed = self._below(relation.inputs[0], (operator, *filters))
            return found if passed else None
        if isinstance(operator, Select):
            return self._through_select(relation, operator, filters)
        if isinstance(operator, Union):
            return self._through_union(relation, filters)
        return self._through_costly(relation, filters)

    def _through_select(self, relation: Derived, select: Select, filters: Filters) -> Relation | None:
        (given,) = relation.inputs
        meanings = {name: each.sql for name, each in select.columns}
        found, passed = self._below(given, [_renamed(each, meanings, given.schema) for each in filters])
        return stepped(select, found) if passed else None

    def _through_union(self, relation: Derived, filters: Filters) -> Relation | None:
        parts = []
        for each in relation.inputs:
            meanings = {name: quoted(each.schema.column(name).name) for name in relation.schema.names}
            parts.append(self._below(each, [_renamed(one, meanings, each.schema) for one in filters]))
        return rebuilt(relation, [part for part, _ in parts]) if any(passed for _, passed in parts) else None

    def _through_costly(self, relation: Derived, filters: Filters) -> Relation | None:
        lowered: list[list[Where]] = [[] for _ in relation.inputs]
        kept: list[Where | Branch] = []
        for each in filters:
            staying = []
            for one in conjuncts(each, relation.schema):
                places = _places(relation, one) if is_total(one, relation.schema) else {}
                for place, condition in places.items():
                    lowered[place].append(Where(condition))
                if places:
                    self.notes.append(_note(relation, one, tuple(places)))
                else:
                    staying.append(one)
            kept += _remaining(each, tuple(staying), relation.schema)
        if not any(lowered):
            return None
        inputs = [
            self._below(given, wheres)[0] if wheres else self.rewritten(given)
            for given, wheres in zip(relation.inputs, lowered, strict=True)
        ]
        return filtered(rebuilt(relation, inputs), kept)


def _places(relation: Derived, condition: Expression) -> dict[int, Expression]:
    """The inputs that can be filtered instead of the result, with the condition as each has to read it."""
    operator = relation.operator
    if not condition.columns:
        return {}
    if isinstance(operator, Join):
        left, right = relation.inputs
        return sides_of(operator, condition, left.schema, right.schema)
    if isinstance(operator, (Aggregation, Process)):
        # The bounds of windows are no keys; all tuples of a group have its key, so whole groups go.
        meanings = {name: each.sql for name, each in operator.keys}
    else:
        assert isinstance(operator, Map)
        meanings = {name: quoted(name) for name in operator.kept}
    found = substituted(condition, meanings, relation.inputs[0].schema)
    return {0: found} if found else {}


def _renamed(step: Where | Branch, meanings: dict[str, str], schema: Schema) -> Where | Branch:
    def mean(each: Expression) -> Expression:
        found = substituted(each, meanings, schema)
        assert found is not None, each
        return found

    if isinstance(step, Where):
        return Where(mean(step.expression))
    return Branch(tuple(mean(each) for each in step.conditions), step.place)


def _remaining(step: Where | Branch, staying: tuple[Expression, ...], schema: Schema) -> Filters:
    if len(staying) == len(conjuncts(step, schema)):
        return [step]
    return [joined(staying, schema)] if staying else []


def _note(relation: Derived, condition: Expression, places: tuple[int, ...]) -> str:
    if not isinstance(relation.operator, Join):
        where = f"input {named(relation.inputs[0])}"
    else:
        names = "left", "right"
        where = " and ".join(f"{names[place]} input {named(relation.inputs[place])}" for place in places)
    return f"condition {condition} moved below {relation.operator} to its {where}"
