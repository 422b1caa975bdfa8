"""Columns left behind early: joins hold and stages pass on only what is read later (002, section III.F).

What a query delivers stays the same, names and order. Streams that lead to windows alone are left as they
are: the pane-level query takes its columns itself.
"""

from dataclasses import dataclass, field, replace

from penstock.compile.reading import columns_read, entering
from penstock.compile.rebuild import rebuilt, stepped
from penstock.query import Aggregation, Derived, Join, Query, Relation, Select, Stream, Union
from penstock.query.expressions import column

__all__ = ["columns_down"]


def columns_down(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with only the columns that are read, and what was left behind where.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int, x double", time="time")
    >>> known = stream("known", "time timestamp, phone string, since date", time="time")
    >>> pairs = calls.join(known, "phone", within="1 hour")
    >>> columns_down(Query((pairs.group_by("seconds").window("1 hour").agg(n=count()),)))[0].relations[4]
    calls.select(phone, seconds).join(known.select(phone); phone; within 1 hour)
    """
    narrowing = _Narrowing(columns_read(query))
    for relation in query.relations:
        narrowing.known[relation] = narrowing.narrowed(relation)
    outputs = tuple(narrowing.known[each] for each in query.outputs)
    return (query if outputs == query.outputs else Query(outputs)), tuple(narrowing.notes)


@dataclass
class _Narrowing:
    """Narrows each relation once, after its inputs; `read` is what is read of it later."""

    read: dict[Relation, frozenset[str]]
    known: dict[Relation, Relation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def narrowed(self, relation: Relation) -> Relation:
        """The relation without columns that nobody reads, as far as they cost something."""
        if not isinstance(relation, Derived):
            return relation
        operator, inputs = relation.operator, [self.known[each] for each in relation.inputs]
        if isinstance(operator, Select) and _holds_state(relation):
            kept = [each for each in operator.columns if each[0].lower() in self.read[relation]]
            return stepped(Select(tuple(kept)), inputs[0])
        if isinstance(operator, Union):
            return rebuilt(relation, self._alike(relation, inputs))
        if isinstance(operator, Aggregation) and _holds_state(relation.inputs[0]):
            return rebuilt(relation, [self._entering(relation, inputs, 0)])
        if isinstance(operator, Join):
            return self._join(relation, operator, inputs)
        return rebuilt(relation, inputs)

    def _join(self, relation: Derived, join: Join, inputs: list[Relation]) -> Relation:
        if join.last is not None:
            return rebuilt(relation, inputs)
        left = tuple(each for each in join.left if each[1].lower() in self.read[relation])
        right = tuple(each for each in join.right if each[1].lower() in self.read[relation])
        given, made = len(join.left + join.right), len(left + right)
        if made < given:
            self.notes.append(f"{join} gives {made} of {given} columns beside its time and keys")
        entered = [self._entering(relation, inputs, place) for place in range(2)]
        return rebuilt(relation, entered, replace(join, left=left, right=right))

    def _entering(self, relation: Derived, inputs: list[Relation], place: int) -> Relation:
        given = inputs[place]
        names = entering(relation, place, self.read[relation])
        if inputs.count(given) > 1:
            # Both sides of a self-join stay one, so that it is read and routed once.
            names |= entering(relation, 1 - place, self.read[relation])
        found = _only(given, names)
        # The event time is carried on in any case: leaving out its column alone saves nothing.
        if {*given.schema.names} <= {*found.schema.names, given.time}:
            return given
        counts = f"{len(found.schema.columns)} of {len(given.schema.columns)} columns of {given!r}"
        self.notes.append(f"{counts} enter {relation.operator}: {', '.join(found.schema.names)}")
        return found

    def _alike(self, relation: Derived, inputs: list[Relation]) -> list[Relation]:
        kinds = {frozenset(name.lower() for name in each.schema.names) for each in inputs}
        return inputs if len(kinds) == 1 else [_only(each, self.read[relation]) for each in inputs]


def _only(relation: Relation, names: frozenset[str]) -> Relation:
    """The relation with these columns alone, those that are pinned among them, in its own order."""
    wanted = names | {name.lower() for name in relation.pinned}
    kept = [name for name in relation.schema.names if name.lower() in wanted] or [relation.schema.names[0]]
    if len(kept) == len(relation.schema.names):
        return relation
    if isinstance(relation, Derived) and isinstance(relation.operator, Select):
        chosen = tuple(each for each in relation.operator.columns if each[0] in kept)
        return stepped(Select(chosen), relation.inputs[0])
    return stepped(Select(tuple((name, column(name, relation.schema)) for name in kept)), relation)


def _holds_state(relation: Relation) -> bool:
    """Whether its tuples come out of a stateful operator."""
    if isinstance(relation, Stream):
        return False
    assert isinstance(relation, Derived)
    stateful = isinstance(relation.operator, (Aggregation, Join))
    return stateful or any(_holds_state(each) for each in relation.inputs)
