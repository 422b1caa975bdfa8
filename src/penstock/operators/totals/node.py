"""Aggregation without a window: the totals so far, of each key or of all, and what each epoch changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.errors import BadAggregate, QueryError
from penstock.expressions.durations import words
from penstock.expressions.schema import Schema
from penstock.operators.aggregated import CHANGE, AggregateOperator
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named
from penstock.operators.operator import NATIVE, Inputs, Operator
from penstock.routing.resources import LLL, Resources

if TYPE_CHECKING:
    from penstock.operators.totals.kernel import TotalsKernel

__all__ = ["Totals"]

_LATEST: Final = "_latest"


@dataclass(frozen=True, slots=True)
class Totals(AggregateOperator):
    """Aggregates over all tuples so far, of each key or of all.

    An epoch gives the groups that it changed. With `keep`, in microseconds, a group is forgotten when the
    frontier is so far past its latest tuple.
    """

    stateful: ClassVar[bool] = True

    keys: Named
    aggregates: tuple[ResolvedAggregate, ...]
    keep: int | None = None

    def __str__(self) -> str:
        return self.shown("", *([] if self.keep is None else [f"keep={words(self.keep)}"]))

    def meaning(self) -> list[object]:
        """Keys, aggregates, and how long a group is kept."""
        return ["totals", self.meaning_of_keys(), self.keep, self.meaning_of_aggregates()]

    def schema(self, inputs: Inputs) -> Schema:
        """The kind of change, the keys, the aggregates."""
        del inputs
        return self.results({CHANGE: "string"})

    def event_time(self, inputs: Inputs) -> str:
        """That of the latest tuple; no operator goes by it, so it has a name that leaves all others free."""
        del inputs
        return _LATEST

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The kind of change."""
        del inputs
        return (CHANGE,)

    def why_single(self) -> str | None:
        """Without a key there is one group; several channels are worth it where user code forms partials."""
        if self.keys or self._kernel().splits:
            return None
        return "without a key there is one group, and its partials are few"

    def why_last(self) -> str | None:
        """A total is never final."""
        return (
            f"{self}: its results change as long as tuples come, and no operator with state can follow, "
            "since it would have to take back what it made of them; end the query here, or put a window "
            "before agg()"
        )

    def refused(self, why: str) -> QueryError:
        """An aggregation that cannot be where it is."""
        return BadAggregate(why)

    def resources(self, form: Form = "rows") -> Resources:
        """One state for each key, whatever its frequency, unless an aggregate keeps values of tuples."""
        if self.keeps_values:
            return LLL
        return Resources.of("CLL" if form == "rows" else "CCC")

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "TotalsKernel":
        """The newest partials of each key."""
        del time_type
        return self._kernel(ports[0])

    def _kernel(self, describe: Describe | None = None) -> "TotalsKernel":
        from penstock.operators.totals.kernel import compile_totals  # noqa: PLC0415 -- it needs this class

        return compile_totals(self, describe)

    def words(self) -> list[str]:
        """What is kept, and until when."""
        keys, until = f"each {', '.join(self.key_names)}" if self.keys else "all tuples", "for good"
        if self.keep is not None:
            until = (
                f"until the frontier is {words(self.keep)} past {'its' if self.keys else 'the'} latest tuple"
            )
        return [
            "update mode: each epoch gives the groups that it changed, old values retracted",
            f"state: the partials of {keys}, {until}",
        ]

    @property
    def route(self) -> str:
        """By key, or to the first channel."""
        return "hash" if self.keys else "any"

    def route_words(self) -> str:
        """The router and the reason for it."""
        if self.keys:
            return Operator.route_words(self)
        return f"rows in runs to channels that form partials; these to the first channel, {NATIVE}"
