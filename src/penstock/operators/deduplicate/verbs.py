"""The verb deduplicate: what a user gives, checked."""

from typing import Final

from penstock.errors import BadDuration, BadName
from penstock.expressions.durations import microseconds
from penstock.operators.deduplicate.node import Deduplicate
from penstock.operators.names import group_keys
from penstock.operators.operator import D, Derivable, Duration, R

__all__ = ["DeduplicateVerbs"]

_LONGEST: Final = 1 << 61


class DeduplicateVerbs(Derivable[R, D]):
    """The verb of a relation that drops tuples which repeat others."""

    def deduplicate(self, /, *keys: str, within: Duration) -> D:
        """Drop each tuple that is less than ``within`` after the last one of equal keys that passed.

        ``keys`` name columns; null is a key like any other. Tuples count in the order of event time, those of
        one time in the order of their content (column by column, nulls last), never in that of arrival: a
        tuple waits until the frontier has passed it. Columns and event time stay as they are.

        >>> from penstock.query import stream
        >>> orders = stream("orders", "time timestamp, id bigint, price double", time="time")
        >>> orders.deduplicate("id", within="10 minutes")
        orders.deduplicate(id; within 10 minutes)
        """
        if not keys:
            raise BadName(
                "deduplicate() needs at least one key; name the columns in which duplicates are equal"
            )
        length = microseconds(within)
        if not 0 < length < _LONGEST:
            raise BadDuration(f"within={within!r}; give more than 0 and less than 73,000 years")
        named = group_keys(keys, {}, self.schema)
        return self.derive(Deduplicate(named, length, self.schema, self.time))
