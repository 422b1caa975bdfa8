"""Columns left behind early: joins keep and stages hand on only what is read later (002, section III.F).

What a query delivers stays the same, names and order. No select is put in where there was none: the plans
of joins and windows read just the columns that they need from what feeds them, and Spark carries that on to
the source; a select more would be one exchange more by the operator strategy.
"""

from dataclasses import dataclass, field, replace

from penstock.compile.naming import named
from penstock.compile.reading import columns_read, entering
from penstock.compile.rebuild import rebuilt, stepped
from penstock.expressions.scalar import column
from penstock.query import Aggregation, Derived, Join, Process, Query, Relation, Select, Union

__all__ = ["columns_down"]


def columns_down(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with only the columns that are read, and what was left behind where.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int, x double", time="time")
    >>> known = stream("known", "time timestamp, phone string, since date", time="time")
    >>> pairs = calls.join(known, "phone", within="1 hour")
    >>> narrow, _ = columns_down(Query((pairs.group_by("seconds").window("1 hour").agg(n=count()),)))
    >>> narrow.outputs[0].inputs[0].schema.names
    ('time', 'phone', 'seconds')
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
    stateful: set[Relation] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def narrowed(self, relation: Relation) -> Relation:
        """The relation without columns that nobody reads, as far as they cost something."""
        if not isinstance(relation, Derived):
            return relation
        operator, inputs = relation.operator, [self.known[each] for each in relation.inputs]
        if isinstance(operator, (Aggregation, Join, Process)) or not self.stateful.isdisjoint(
            relation.inputs
        ):
            self.stateful.add(relation)
        if isinstance(operator, Select) and relation in self.stateful:
            kept = tuple(each for each in operator.columns if each[0].lower() in self.read[relation])
            return stepped(Select(kept), inputs[0])
        if isinstance(operator, Union):
            return rebuilt(relation, self._alike(relation, inputs))
        if isinstance(operator, Join) and operator.last is None:
            return self._join(relation, operator, inputs)
        return rebuilt(relation, inputs)

    def _join(self, relation: Derived, join: Join, inputs: list[Relation]) -> Relation:
        left = tuple(each for each in join.left if each[1].lower() in self.read[relation])
        right = tuple(each for each in join.right if each[1].lower() in self.read[relation])
        given, made = len(join.left + join.right), len(left + right)
        if made < given:
            self.notes.append(f"{join} gives {made} of {given} columns beside its time and keys")
            self.notes += [_entry(relation, place, self.read[relation]) for place in range(2)]
        return rebuilt(relation, inputs, replace(join, left=left, right=right))

    def _alike(self, relation: Derived, inputs: list[Relation]) -> list[Relation]:
        kinds = {frozenset(name.lower() for name in each.schema.names) for each in inputs}
        return inputs if len(kinds) == 1 else [_only(each, self.read[relation]) for each in inputs]


def _entry(relation: Derived, place: int, read: frozenset[str]) -> str:
    given = relation.inputs[place]
    wanted = entering(relation, place, read)
    names = [name for name in given.schema.names if name.lower() in wanted]
    counts = f"{len(names)} of {len(given.schema.names)} columns of {named(given)}"
    shown = f": {', '.join(names)}" if names else ""
    return f"{counts} enter {relation.operator} beside its time{shown}"


def _only(relation: Relation, names: frozenset[str]) -> Relation:
    """The relation with these columns alone, those that are pinned among them, in its own order."""
    wanted = names | {name.lower() for name in relation.pinned}
    kept = [name for name in relation.schema.names if name.lower() in wanted]
    if len(kept) == len(relation.schema.names):
        return relation
    return stepped(Select(tuple((name, column(name, relation.schema)) for name in kept)), relation)
