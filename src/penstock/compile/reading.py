"""Which columns of every relation are read by anything after it."""

from collections.abc import Iterable

from penstock.query import Aggregation, Branch, Derived, Join, Query, Relation, Select, Union, Where

__all__ = ["columns_read", "entering"]


def columns_read(query: Query) -> dict[Relation, frozenset[str]]:
    """The columns of each relation that later ones read, in lower case; never none, and always the pinned.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> hourly = calls.where("seconds > 60").group_by("phone").window("1 hour").agg(n=count())
    >>> sorted(columns_read(Query((hourly,)))[calls])
    ['phone', 'seconds']
    """
    read: dict[Relation, frozenset[str]] = dict.fromkeys(query.relations, frozenset())
    for output in query.outputs:
        read[output] = _lowered(output.schema.names)
    for relation in reversed(query.relations):
        pinned = _lowered(name for name in relation.pinned if name in relation.schema)
        # A relation without any column cannot be written down; the first one is kept.
        read[relation] = read[relation] | pinned or _lowered(relation.schema.names[:1])
        if isinstance(relation, Derived):
            for place, each in enumerate(relation.inputs):
                read[each] |= entering(relation, place, read[relation])
    return read


def entering(relation: Derived, place: int, wanted: frozenset[str]) -> frozenset[str]:
    """The columns of an input that an operator reads to make the wanted columns of its result."""
    operator = relation.operator
    if isinstance(operator, (Where, Branch)):
        conditions = [operator.expression] if isinstance(operator, Where) else operator.conditions
        return wanted | _lowered(name for each in conditions for name in each.columns)
    if isinstance(operator, Select):
        made = [each for name, each in operator.columns if name.lower() in wanted]
        return _lowered(name for each in made for name in each.columns)
    if isinstance(operator, Aggregation):
        given = [each for _, each in operator.keys]
        given += [each for aggregate in operator.aggregates for each in aggregate.arguments]
        return _lowered(name for each in given for name in each.columns)
    if isinstance(operator, Join) and operator.last is None:
        return _joined(operator, place, wanted)
    if isinstance(operator, Union):
        return wanted
    # A function may look at every column, and the order of rows of one time is a digest of them all.
    return _lowered(relation.inputs[place].schema.names)


def _joined(join: Join, place: int, wanted: frozenset[str]) -> frozenset[str]:
    keys = [(key.left, key.right)[place] for key in join.keys]
    condition = (join.condition.left, join.condition.right)[place] if join.condition else ()
    given = [stored for stored, name in (join.left, join.right)[place] if name.lower() in wanted]
    return _lowered([*keys, *condition, *given])


def _lowered(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
