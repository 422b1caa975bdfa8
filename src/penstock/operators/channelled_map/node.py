"""A map that is a stage of its own: without state, with channels, measures and rescaling."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.expressions.schema import Schema
from penstock.operators.kernel import Describe
from penstock.operators.operator import Inputs, Operator
from penstock.operators.steps import Map
from penstock.routing import Grouping

if TYPE_CHECKING:
    from penstock.operators.channelled_map.kernel import MapKernel

__all__ = ["ChannelledMap"]


@dataclass(frozen=True, slots=True)
class ChannelledMap(Operator):
    """A function over rows in channels of its own; any row may go to any of them.

    ``by`` names the columns on which the cost of a row depends; without any, they are found out. With ``own``
    rows always go to channels of the stage; without it, only in epochs in which that is expected to pay.
    """

    stateful: ClassVar[bool] = True
    passing: ClassVar[bool] = True

    step: Map
    by: tuple[str, ...] = ()
    own: bool = False

    def __str__(self) -> str:
        given = [f"by {', '.join(self.by) or '*'}"] if self.by or not self.own else []
        given += ["in channels"] if self.own else []
        return f"{str(self.step).removesuffix(')')}; {'; '.join(given)})"

    @property
    def kind(self) -> str:
        """As all maps."""
        return "map"

    def meaning(self) -> list[object]:
        """The function, and what decides on the stage."""
        return [*self.step.meaning(), "in channels", list(self.by), self.own]

    def schema(self, inputs: Inputs) -> Schema:
        """What passes by, then what the function makes."""
        return self.step.schema(inputs)

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """What passes by."""
        return self.step.origins(place, inputs)

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns that pass by."""
        return self.step.carriers(names)

    def why_single(self) -> str | None:
        """Any number of channels can run it."""
        return None

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """How rows may find a channel, at first as the first of these says."""
        if not self.own:
            return ("in place", "round robin", "by cost")
        return ("by cost",) if self.by else ("round robin", "by cost")

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "MapKernel":
        """The function, and what it costs."""
        from penstock.operators.channelled_map.kernel import compile_map  # noqa: PLC0415 -- it needs this class

        return compile_map(self, ports[0])

    def words(self) -> list[str]:
        """What is measured and when rows are exchanged."""
        found = ["state: none; a tuple passes at once and keeps its event time"]
        by = ", ".join(self.by) or "the columns that are found to explain it"
        found.append(f"cost: of samples, by {by}, wall and processor time, over epochs")
        if not self.own:
            found.append("exchange: only while its gain exceeds its price; else it runs where the tuples are")
        return found

    @property
    def route(self) -> str:
        """Any channel will do."""
        return "any"

    def route_words(self) -> str:
        """Round robin, or by cost."""
        if self.own and not self.by:
            return "round robin: no state, so any channel will do; by cost once that is known and pays"
        return "by cost, the dearest tuples first in each task, round robin before costs are known"
