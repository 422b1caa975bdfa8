"""Short names of relations for people: a stream's own, or the operator that made it."""

from penstock.query import Relation, Stream

__all__ = ["named"]


def named(relation: Relation) -> str:
    """The name of a stream, the operator of any other relation.

    >>> from penstock.query import stream
    >>> calls = stream("calls", "time timestamp, seconds int", time="time")
    >>> named(calls), named(calls.where("seconds > 9"))
    ('calls', 'where(`seconds` > 9)')
    """
    return relation.name if isinstance(relation, Stream) else str(getattr(relation, "operator", relation))
