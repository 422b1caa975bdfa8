"""Rewrites a query to give the same results with less work: filters down, columns down ([002] §III.F).

Each rewriting is a pure function of the graph of relations; a query that cannot gain is returned unchanged.

Filters move down to where fewer tuples are held: below joins, aggregations and maps. A condition passes a
stateful operator only if it raises for no tuple, so no filter before it can have been its guard. It
passes selects and unions together with all filters around it, in their order. A filter does not pass a
relation that has another reader. Nothing is moved below a select or a union alone: Spark and DuckDB do that
themselves.

Columns are dropped early: joins keep and stages pass on only what is read later. No new select is added: the
plans of joins and windows read only the columns that they need from their input, and Spark pushes that down
to the source. With the operator strategy, one more select would be one more exchange.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.expressions.conditions import conjunction, conjuncts, is_total, substituted
from penstock.expressions.scalar import Expression, column
from penstock.operators import Filter, Operator, Select, Where, lowered
from penstock.query import Derived, Query, Relation, Schema, derived

__all__ = ["Optimised", "columns_down", "columns_read", "optimise", "predicates_down"]


@dataclass(frozen=True)
class Optimised:
    """A query, and notes on what every rewriting did to it."""

    query: Query
    notes: tuple[str, ...]


def optimise(query: Query) -> Optimised:
    """The query with all rewritings applied.

    State holds what the rewritten query keeps, so compare the fingerprint of that query.

    >>> from penstock.query import stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> known = stream("known", "time timestamp, phone string", time="time")
    >>> pairs = calls.join(known, "phone", within="1 hour").where("seconds > 9")
    >>> for note in optimise(Query((pairs,))).notes:
    ...     print(note)
    condition `seconds` > 9 moved below join(phone; within 1 hour) to its left input calls
    """
    sunk, moved = predicates_down(query)
    narrowed, left_behind = columns_down(sunk)
    return Optimised(narrowed, (*moved, *left_behind, *_shared_notes(narrowed)))


def _readers(query: Query) -> dict[Relation, int]:
    """How often each relation is read, by operators and by sinks."""
    counts = dict.fromkeys(query.relations, 0)
    for relation in query.relations:
        for each in relation.inputs:
            counts[each] += 1
    for each in query.outputs:
        counts[each] += 1
    return counts


def _shared_notes(query: Query) -> tuple[str, ...]:
    """A line for every stream and stateful relation that is read more than once: equal sub-graphs are one."""
    return tuple(
        f"{relation.label} is there once and used {count} times"
        for relation, count in _readers(query).items()
        if count > 1 and (not relation.inputs or relation.stateful)
    )


def _rebuilt(relation: Derived, inputs: Sequence[Relation], operator: Operator | None = None) -> Derived:
    """The relation over these inputs, itself if nothing changes; its operator may become narrower."""
    given, wanted = tuple(inputs), operator or relation.operator
    if given == relation.inputs and wanted == relation.operator:
        return relation
    return derived(wanted, given)


# -- filters down --------------------------------------------------------------------------------------


def predicates_down(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with its filters as far down as possible, and notes on what was moved where.

    >>> from penstock.query import stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> known = stream("known", "time timestamp, phone string", time="time")
    >>> long = calls.join(known, "phone", within="1 hour").where("seconds > 60")
    >>> predicates_down(Query((long,)))[0]
    calls.where(`seconds` > 60).join(known; phone; within 1 hour)
    """
    sinking = _Sinking(_readers(query))
    outputs = tuple(sinking.rewritten(each) for each in query.outputs)
    return (query if outputs == query.outputs else Query(outputs)), tuple(sinking.notes)


@dataclass
class _Sinking:
    """Rewrites each relation once; `readers` counts the readers of each in the original query."""

    readers: dict[Relation, int]
    known: dict[Relation, Relation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rewritten(self, relation: Relation) -> Relation:
        """The relation with every filter in its inputs moved down."""
        if relation not in self.known:
            self.known[relation] = self._rewritten(relation)
        return self.known[relation]

    def _rewritten(self, relation: Relation) -> Relation:
        if not isinstance(relation, Derived):
            return relation
        if found := relation.operator.as_filter():
            return self._below(relation.inputs[0], (found,))[0]
        return _rebuilt(relation, [self.rewritten(each) for each in relation.inputs])

    def _below(self, relation: Relation, filters: Sequence[Filter]) -> tuple[Relation, bool]:
        """The relation after these filters, and whether one has passed an operator worth passing."""
        found = None
        if isinstance(relation, Derived) and self.readers[relation] == 1:
            found = self._passed(relation, filters)
        return (found, True) if found else (_filtered(self.rewritten(relation), filters), False)

    def _passed(self, relation: Derived, filters: Sequence[Filter]) -> Relation | None:
        if own := relation.operator.as_filter():
            found, passed = self._below(relation.inputs[0], (own, *filters))
            return found if passed else None
        if relation.operator.transparent:
            return self._through_transparent(relation, filters)
        return self._through_costly(relation, filters)

    def _through_transparent(self, relation: Derived, filters: Sequence[Filter]) -> Relation | None:
        parts = []
        for place, each in enumerate(relation.inputs):
            origins = relation.operator.origins(place, relation.inputs)
            parts.append(self._below(each, [_moved(one, origins, each.schema) for one in filters]))
        return _rebuilt(relation, [part for part, _ in parts]) if any(passed for _, passed in parts) else None

    def _through_costly(self, relation: Derived, filters: Sequence[Filter]) -> Relation | None:
        moved: list[list[Filter]] = [[] for _ in relation.inputs]
        kept: list[Filter] = []
        for each in filters:
            staying = []
            for one in conjuncts(each.condition, relation.schema):
                places = _places(relation, one)
                for place, condition in places.items():
                    moved[place].append(Where(condition))
                if places:
                    self.notes.append(_note(relation, one, tuple(places)))
                else:
                    staying.append(one)
            kept += _remaining(each, tuple(staying), relation.schema)
        if not any(moved):
            return None
        inputs = [
            self._below(given, wheres)[0] if wheres else self.rewritten(given)
            for given, wheres in zip(relation.inputs, moved, strict=True)
        ]
        return _filtered(_rebuilt(relation, inputs), kept)


def _filtered(relation: Relation, filters: Iterable[Filter]) -> Relation:
    """The relation after filters, applied in their order."""
    for each in filters:
        relation = relation.derive(each)
    return relation


def _places(relation: Derived, condition: Expression) -> dict[int, Expression]:
    """The inputs that can be filtered instead of the result, with the condition in the columns of each."""
    if not condition.columns or not is_total(condition, relation.schema):
        return {}
    return relation.operator.passes(condition, relation.inputs)


def _moved(step: Filter, origins: dict[str, str], schema: Schema) -> Filter:
    def mean(each: Expression) -> Expression:
        found = substituted(each, origins, schema)
        assert found is not None, each
        return found

    return step.rewritten(mean)


def _remaining(step: Filter, staying: tuple[Expression, ...], schema: Schema) -> list[Filter]:
    if len(staying) == len(conjuncts(step.condition, schema)):
        return [step]
    return [Where(conjunction(staying, schema))] if staying else []


def _note(relation: Derived, condition: Expression, places: tuple[int, ...]) -> str:
    ports = relation.operator.ports
    shown = [
        f"{f'{ports[place]} ' if len(ports) > 1 else ''}input {relation.inputs[place].label}"
        for place in places
    ]
    return f"condition {condition} moved below {relation.operator} to its {' and '.join(shown)}"


# -- columns down --------------------------------------------------------------------------------------


def columns_down(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with only the columns that are read, and notes on what was dropped where.

    Its results stay the same, with names and order.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int, x double", time="time")
    >>> known = stream("known", "time timestamp, phone string, since date", time="time")
    >>> pairs = calls.join(known, "phone", within="1 hour")
    >>> narrow, _ = columns_down(Query((pairs.group_by("seconds").window("1 hour").agg(n=count()),)))
    >>> narrow.outputs[0].inputs[0].schema.names
    ('pair_time', 'phone', 'seconds')
    """
    narrowing = _Narrowing(columns_read(query))
    for relation in query.relations:
        narrowing.known[relation] = narrowing.narrowed(relation)
    outputs = tuple(narrowing.known[each] for each in query.outputs)
    return (query if outputs == query.outputs else Query(outputs)), tuple(narrowing.notes)


def columns_read(query: Query) -> dict[Relation, frozenset[str]]:
    """The columns of each relation that later ones read, in lower case; at least one, and all pinned ones.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> hourly = calls.where("seconds > 60").group_by("phone").window("1 hour").agg(n=count())
    >>> sorted(columns_read(Query((hourly,)))[calls])
    ['phone', 'seconds']
    """
    read: dict[Relation, frozenset[str]] = dict.fromkeys(query.relations, frozenset())
    for output in query.outputs:
        read[output] = lowered(output.schema.names)
    for relation in reversed(query.relations):
        pinned = lowered(name for name in relation.pinned if name in relation.schema)
        # A relation without columns cannot be written; keep the first one.
        read[relation] = read[relation] | pinned or lowered(relation.schema.names[:1])
        if isinstance(relation, Derived):
            for place, each in enumerate(relation.inputs):
                read[each] |= relation.operator.reads(place, read[relation], relation.inputs)
    return read


@dataclass
class _Narrowing:
    """Narrows each relation once, after its inputs; `read` are the columns that are read later.

    Before the first stateful operator, columns cost nothing: Spark reads only those that are needed.
    """

    read: dict[Relation, frozenset[str]]
    known: dict[Relation, Relation] = field(default_factory=dict)
    behind_state: set[Relation] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def narrowed(self, relation: Relation) -> Relation:
        """The relation without unread columns, if dropping them saves something."""
        if not isinstance(relation, Derived):
            return relation
        operator, inputs = relation.operator, [self.known[each] for each in relation.inputs]
        if operator.stateful or not self.behind_state.isdisjoint(relation.inputs):
            self.behind_state.add(relation)
            operator, notes = operator.narrowed(self.read[relation], relation.inputs)
            self.notes += notes
        if operator.merges:
            inputs = self._alike(relation, inputs)
        return _rebuilt(relation, inputs, operator)

    def _alike(self, relation: Derived, inputs: list[Relation]) -> list[Relation]:
        kinds = {lowered(each.schema.names) for each in inputs}
        return inputs if len(kinds) == 1 else [_only(each, self.read[relation]) for each in inputs]


def _only(relation: Relation, names: frozenset[str]) -> Relation:
    """The relation with only these columns and the pinned ones, in its own order."""
    wanted = names | lowered(relation.pinned)
    kept = [name for name in relation.schema.names if name.lower() in wanted]
    if len(kept) == len(relation.schema.names):
        return relation
    return relation.derive(Select(tuple((name, column(name, relation.schema)) for name in kept)))
