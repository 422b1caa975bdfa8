"""A query cut into stages: each stateful operator, with the stateless ones around it (002, section III.B).

A stage is one stateful operator in channels of its own. Stateless operators have no channels: they run
on the way, either inside the channels of the stage before them (`inside`, by DuckDB on Arrow) or in front
of the stage after them (`outside`, by Spark SQL). Unions are no operators at all here: a port has several
feeds, and the input merger takes them as one.
"""

from dataclasses import dataclass
from typing import Literal

from penstock.query import Aggregation, Derived, Join, Query, Relation, Step, Stream, Union

__all__ = ["STRATEGIES", "Feed", "Port", "Stage", "Strategy", "Subqueries", "cut"]

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
    """A stateful operator; with `beside` it runs in the channels of that stage, on tuples that are there."""

    number: int
    relation: Derived
    ports: tuple[Port, ...]
    beside: int | None = None

    @property
    def operator(self) -> Aggregation | Join:
        """The stateful operator."""
        assert isinstance(self.relation.operator, (Aggregation, Join))
        return self.relation.operator


@dataclass(frozen=True)
class Subqueries:
    """Stages in an order in which each comes after those that feed it, and what feeds each output."""

    query: Query
    strategy: Strategy
    stages: tuple[Stage, ...]
    outputs: tuple[Port, ...]
    notes: tuple[str, ...] = ()


def cut(query: Query, strategy: Strategy = "subquery") -> Subqueries:
    """Cut a query at its stateful operators."""
    numbers: dict[Relation, int] = {}
    for relation in query.relations:
        if _stateful(relation):
            numbers[relation] = len(numbers)
    stages = tuple(
        Stage(number, relation, tuple(_feeds(each, numbers, strategy) for each in relation.inputs))
        for relation, number in numbers.items()
        if isinstance(relation, Derived)
    )
    return Subqueries(
        query, strategy, stages, tuple(_feeds(each, numbers, strategy) for each in query.outputs)
    )


def _stateful(relation: Relation) -> bool:
    return isinstance(relation, Derived) and isinstance(relation.operator, (Aggregation, Join))


def _feeds(end: Relation, numbers: dict[Relation, int], strategy: Strategy) -> Port:
    """What flows into a relation from streams and stages, one feed for each way through unions."""
    return tuple(_feed(start, end, steps, numbers, strategy) for start, steps in _ways(end, numbers))


def _ways(end: Relation, numbers: dict[Relation, int]) -> list[tuple[Relation, tuple[Step, ...]]]:
    if isinstance(end, Stream) or end in numbers:
        return [(end, ())]
    assert isinstance(end, Derived)
    ways = [way for each in end.inputs for way in _ways(each, numbers)]
    if isinstance(end.operator, Union):
        return ways
    assert not isinstance(end.operator, (Aggregation, Join))
    return [(start, (*steps, end.operator)) for start, steps in ways]


def _feed(
    start: Relation, end: Relation, steps: tuple[Step, ...], numbers: dict[Relation, int], strategy: Strategy
) -> Feed:
    if isinstance(start, Stream):
        return Feed(start, start, end, outside=steps, exchanged=strategy == "operator")
    if strategy == "operator":
        return Feed(numbers[start], start, end, outside=steps, exchanged=True)
    return Feed(numbers[start], start, end, inside=steps)
