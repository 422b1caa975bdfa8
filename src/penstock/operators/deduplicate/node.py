"""Deduplication: the tuples of a key that are far enough in event time from the last one that passed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.expressions.durations import words
from penstock.expressions.schema import Schema
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.operators.operator import Inputs, Operator
from penstock.routing.resources import Resources

if TYPE_CHECKING:
    from penstock.operators.deduplicate.kernel import DeduplicateKernel

__all__ = ["Deduplicate"]

_ONE_TIME: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class Deduplicate(Operator):
    """Tuples of a key that are at least ``within`` microseconds after the last tuple that passed.

    Take the tuples of a key in the order of event time, those of one time in the order of their content. The
    first passes. Each later one passes if and only if its time is at least that of the last tuple that passed
    plus ``within``. A dropped tuple delays nothing: a key that never pauses passes about one tuple each
    ``within``.

    ``given`` are the columns of the tuples, ``time`` names their event time. The order of tuples of one time
    depends on every column, so it reads them all.
    """

    stateful: ClassVar[bool] = True

    keys: Named
    within: int
    given: Schema
    time: str

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.key_names)}; within {words(self.within)})"

    def meaning(self) -> list[object]:
        """Keys, distance, and the columns that decide between tuples of one time."""
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        return [self.kind, keys, self.within, [[each.name, each.type] for each in self.given.columns]]

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of its input."""
        return inputs[0].schema

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The columns that tell duplicates."""
        return tuple((name, each.sql) for name, each in self.keys)

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The keys: all that passes of a key is in one channel."""
        return frozenset(self.key_names)

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "DeduplicateKernel":
        """Tuples that wait for the frontier, and when each key passes again."""
        from penstock.operators.deduplicate.kernel import (  # noqa: PLC0415 -- it needs this class
            compile_deduplicate,
        )

        return compile_deduplicate(self, time_type, ports[0])

    def resources(self, form: Form = "rows") -> Resources:
        """One time for each key, whatever its frequency."""
        return _ONE_TIME

    def words(self) -> list[str]:
        """The rule, the order of tuples, and what its channels keep and until when."""
        keys, within = ", ".join(self.key_names), words(self.within)
        return [
            f"passes: the first tuple of each {keys}, and any {within} or more after the last that passed",
            "order: event time, then content; a tuple waits in a segment until the frontier has passed it",
            f"state: one time for each {keys}, until the frontier is {within} past the last that passed",
        ]
