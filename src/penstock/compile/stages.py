"""What a cut query consists of: stages, their ports, the feeds on which tuples come (002, section III.B)."""

from dataclasses import dataclass
from typing import Literal

from penstock.query import Aggregation, Derived, Join, Process, Query, Relation, Step, Stream

__all__ = ["STRATEGIES", "Feed", "Port", "Stage", "Strategy", "Subqueries"]

Strategy = Literal["subquery", "operator", "query"]
STRATEGIES: tuple[Strategy, ...] = ("subquery", "operator", "query")


@dataclass(frozen=True)
class Feed:
    """Tuples on their way from a stream, or from the stage of that number, to a port or a sink.

    `start` is the relation at the origin and `end` the one that arrives. With `exchanged` every step
    outside is dealt to channels of its own, round robin, as the operator strategy asks.
    """

    origin: Stream | int
    start: Relation
    end: Relation
    inside: tuple[Step, ...] = ()
    outside: tuple[Step, ...] = ()
    exchanged: bool = False


Port = tuple[Feed, ...]


@dataclass(frozen=True)
class Stage:
    """A stateful operator; with `beside` it runs in the channels of that stage, on tuples that are there.

    What runs beside a stage counts on its router: all tuples of a key have to be in one channel.
    """

    number: int
    relation: Derived
    ports: tuple[Port, ...]
    beside: int | None = None

    @property
    def operator(self) -> Aggregation | Join | Process:
        """The stateful operator."""
        assert isinstance(self.relation.operator, (Aggregation, Join, Process))
        return self.relation.operator


@dataclass(frozen=True)
class Subqueries:
    """Stages in an order in which each comes after those that feed it, and what feeds each output."""

    query: Query
    strategy: Strategy
    stages: tuple[Stage, ...]
    outputs: tuple[Port, ...]
    notes: tuple[str, ...] = ()
