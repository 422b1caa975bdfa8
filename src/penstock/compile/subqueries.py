"""A query cut into stages: each stateful operator, with the stateless ones around it (002, section III.B).

A stage is one stateful operator in channels of its own. Stateless operators have no channels: they run
on the way, either inside the channels of the stage before them (`inside`, by DuckDB on Arrow) or in front
of the stage after them (`outside`, by Spark SQL). Unions are no operators at all here: a port has several
feeds, and the input merger takes them as one.
"""

from penstock.compile.folding import folding_notes
from penstock.compile.merging import merged
from penstock.compile.stages import STRATEGIES, Feed, Port, Stage, Strategy, Subqueries
from penstock.errors import UnknownStrategy
from penstock.query import Aggregation, Derived, Join, Process, Query, Relation, Step, Stream, Union

__all__ = ["STRATEGIES", "Feed", "Port", "Stage", "Strategy", "Subqueries", "cut"]


def cut(query: Query, strategy: str = "subquery") -> Subqueries:
    """Cut a query at its stateful operators.

    By ``subquery`` a stage is a stateful operator with the stateless ones after it, and neighbours that part
    tuples alike are merged; by ``operator`` every step has channels of its own; by ``query`` the stages of
    ``subquery``, unmerged, all have every channel.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> hourly = calls.group_by("phone").window("1 hour").agg(n=count()).where("n > 5")
    >>> cut(Query((hourly,))).outputs[0][0].inside
    (Where(expression=Expression(sql='`n` > 5', type='boolean', nullable=False, columns=('n',))),)
    """
    known = {each: each for each in STRATEGIES}
    if strategy not in known:
        raise UnknownStrategy(strategy, STRATEGIES)
    subqueries = _cut(query, known[strategy])
    found = merged(subqueries) if strategy == "subquery" else subqueries
    return folding_notes(found)


def _cut(query: Query, strategy: Strategy) -> Subqueries:
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
    return isinstance(relation, Derived) and isinstance(relation.operator, (Aggregation, Join, Process))


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
    assert not isinstance(end.operator, (Aggregation, Join, Process))
    return [(start, (*steps, end.operator)) for start, steps in ways]


def _feed(
    start: Relation, end: Relation, steps: tuple[Step, ...], numbers: dict[Relation, int], strategy: Strategy
) -> Feed:
    if isinstance(start, Stream):
        return Feed(start, start, end, outside=steps, exchanged=strategy == "operator")
    if strategy == "operator":
        return Feed(numbers[start], start, end, outside=steps, exchanged=True)
    return Feed(numbers[start], start, end, inside=steps)
