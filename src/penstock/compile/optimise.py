"""Rewritings of a query that deliver the same with less: filters down, columns down (002, section III.F).

Each is a pure function of the graph of relations; a query without anything to gain comes back as it is.
"""

from dataclasses import dataclass

from penstock.compile.columns import columns_down
from penstock.compile.predicates import predicates_down
from penstock.compile.shared import shared_notes
from penstock.query import Query

__all__ = ["Optimised", "optimise"]


@dataclass(frozen=True)
class Optimised:
    """A query and what every rewriting did to it, in words."""

    query: Query
    notes: tuple[str, ...]


def optimise(query: Query) -> Optimised:
    """The query with all rewritings applied.

    State holds what the rewritten query keeps, so that one's fingerprint is the one to compare.

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
    return Optimised(narrowed, (*moved, *left_behind, *shared_notes(narrowed)))
