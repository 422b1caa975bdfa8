"""Relations that several operators read: equal sub-graphs are one, so what they hold is computed once."""

from penstock.compile.naming import named
from penstock.query import Aggregation, Derived, Join, Process, Query, Relation, Stream

__all__ = ["readers", "shared_notes"]


def readers(query: Query) -> dict[Relation, int]:
    """How often each relation is read, by operators and by sinks."""
    counts = dict.fromkeys(query.relations, 0)
    for relation in query.relations:
        for each in relation.inputs:
            counts[each] += 1
    for each in query.outputs:
        counts[each] += 1
    return counts


def shared_notes(query: Query) -> tuple[str, ...]:
    """A line for every stream and stateful relation that is read more than once."""
    return tuple(
        f"{named(relation)} is there once and used {count} times"
        for relation, count in readers(query).items()
        if count > 1 and (isinstance(relation, Stream) or _stateful(relation))
    )


def _stateful(relation: Relation) -> bool:
    return isinstance(relation, Derived) and isinstance(relation.operator, (Aggregation, Join, Process))
