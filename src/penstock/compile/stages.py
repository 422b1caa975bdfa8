"""Cuts a query into stages: each stateful operator, with the stateless ones around it ([002] §III.B).

A stage is one stateful operator with its own channels. Stateless operators have no channels: they run on the
way, by DuckDB on Arrow where their tuples come about (`inside`): in the task that reads a stream, or in the
channels of the stage before them. A step that has a function which is not certified to give there what Spark
gives runs in Spark SQL (`outside`), with all that stand between two of them; what follows runs on Arrow again
(`beyond`). Unions are not operators here: a port has several feeds, and the input merger takes them as one.

Neighbours that partition tuples alike are merged: the second runs where its tuples are ([002] §III.F). Each
merge saves one exchange, that is, one shuffle between stages. A join is merged if both of its inputs come
from stages that share channels. If one comes from elsewhere, that side needs a shuffle all the same, and the
join has channels of its own, which hot keys may then use as grids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

from penstock.errors import UnknownStrategy
from penstock.expressions.schema import Column, Schema
from penstock.functions import DEFAULT, SqlSetting, Types, Uncertified, passed_or_translated
from penstock.operators import Filter, Operator, Step
from penstock.operators.channelled_step import ChannelledStep
from penstock.query import STRATEGIES, Derived, Query, Relation, Strategy, Stream, derived

__all__ = [
    "STRATEGIES",
    "Feed",
    "Port",
    "Stage",
    "Strategy",
    "Subqueries",
    "cut",
    "origin_of",
    "partitioned_by",
]


@dataclass(frozen=True)
class Feed:
    """Tuples on their way from a stream, or from the stage with that number, to a port or a sink.

    `start` is the relation at the origin and `end` the one that arrives. `given` are the types of the columns
    that each step gets. `why_outside` tells what keeps the first step outside from running on Arrow.
    """

    origin: Stream | int
    start: Relation
    end: Relation
    inside: tuple[Step, ...] = ()
    outside: tuple[Step, ...] = ()
    beyond: tuple[Step, ...] = ()
    why_outside: str | None = None
    given: tuple[Types, ...] = field(default=(), compare=False, repr=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps on the way."""
        return self.inside + self.outside + self.beyond

    def narrowed(self, wanted: frozenset[str]) -> "tuple[Feed, frozenset[str]]":
        """The feed that gives no more than these columns, in lower case, and what it reads at its origin."""
        steps: list[Step] = []
        for step, given in zip(reversed(self.steps), reversed(self.given), strict=True):
            columns: Any = _Given(Schema(tuple(starmap(Column, given.items()))))
            less = step.narrowed(wanted, (columns,))[0].as_step()
            assert less is not None, "a step stays one"
            steps.insert(0, less)
            wanted = less.reads(0, wanted, (columns,))
        first = len(self.inside)
        last = first + len(self.outside)
        parts = (tuple(steps[:first]), tuple(steps[first:last]), tuple(steps[last:]))
        return replace(self, inside=parts[0], outside=parts[1], beyond=parts[2]), wanted


@dataclass(frozen=True)
class _Given:
    """The columns that a step gets, as far as it asks for them."""

    schema: Schema


Port = tuple[Feed, ...]


@dataclass(frozen=True)
class Stage:
    """A stateful operator; with `host` it runs in the channels of that stage, on the tuples in them.

    If several stages feed it, the host is the last of them; all have the same channels.

    A stage with a host relies on the host's router: all tuples of a key must be in one channel.
    """

    number: int
    relation: Derived
    ports: tuple[Port, ...]
    host: int | None = None

    @property
    def operator(self) -> Operator:
        """The stateful operator."""
        return self.relation.operator


@dataclass(frozen=True)
class Subqueries:
    """Stages in an order in which each comes after those that feed it, and the feeds of each output."""

    query: Query
    strategy: Strategy
    stages: tuple[Stage, ...]
    outputs: tuple[Port, ...]
    notes: tuple[str, ...] = ()
    setting: SqlSetting = DEFAULT


def cut(query: Query, strategy: str = "subquery", setting: SqlSetting = DEFAULT) -> Subqueries:
    """Cut a query at its stateful operators; `setting` is what the session says about the meaning of SQL.

    With ``subquery`` a stage is a stateful operator with the stateless ones after it, and neighbours that
    partition tuples alike are merged. With ``operator`` every step has its own channels. With ``query`` the
    stages are those of ``subquery``, unmerged, and each has every channel.

    >>> from penstock.query import count, stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> hourly = calls.group_by("phone").window("1 hour").agg(n=count()).where("n > 5")
    >>> cut(Query((hourly,))).outputs[0][0].inside
    (Where(expression=Expression(sql='`n` > 5', type='boolean', nullable=False, columns=('n',))),)
    """
    known = {each: each for each in STRATEGIES}
    if strategy not in known:
        raise UnknownStrategy(strategy, STRATEGIES)
    if strategy == "operator":
        query = _channelled(query, setting)
    subqueries = _cut(query, known[strategy], setting)
    return _folded(_merged(subqueries) if strategy == "subquery" else subqueries)


def origin_of(feed: Feed) -> str:
    """The name of a feed's origin."""
    return f"stage {feed.origin}" if isinstance(feed.origin, int) else feed.origin.name


# -- cut -----------------------------------------------------------------------------------------------


def _cut(query: Query, strategy: Strategy, setting: SqlSetting) -> Subqueries:
    stateful = [each for each in query.relations if isinstance(each, Derived) and each.stateful]
    numbers: dict[Relation, int] = {relation: number for number, relation in enumerate(stateful)}
    stages = tuple(
        Stage(number, relation, tuple(_feeds(each, numbers, setting) for each in relation.inputs))
        for number, relation in enumerate(stateful)
    )
    for relation in stateful:
        relation.operator.check_setting(relation.inputs, setting)
    outputs = tuple(_feeds(each, numbers, setting) for each in query.outputs)
    return Subqueries(query, strategy, stages, outputs, setting=setting)


def _channelled(query: Query, setting: SqlSetting) -> Query:
    """The same query with a stage of its own for every step that can run on Arrow."""
    made: dict[Relation, Relation] = {}
    for relation in query.relations:
        made[relation] = relation
        if isinstance(relation, Derived):
            inputs = [made[each] for each in relation.inputs]
            operator = relation.operator
            step = operator.as_step()
            if step is not None:
                *_, missing = _certified(_Way(inputs[0], (step,), (_types(inputs[0]),)), setting)
                operator = operator if missing else ChannelledStep(step, inputs[0].schema.names, setting)
            made[relation] = derived(operator, inputs)
    return Query(tuple(made[each] for each in query.outputs))


def _feeds(end: Relation, numbers: dict[Relation, int], setting: SqlSetting) -> Port:
    """The input of a relation from streams and stages, one feed for each path through unions."""
    return tuple(_feed(way, end, numbers, setting) for way in _ways(end, numbers))


@dataclass(frozen=True)
class _Way:
    """Steps from a relation onwards, and the types of the columns that each gets."""

    start: Relation
    steps: tuple[Step, ...] = ()
    given: tuple[Types, ...] = ()


def _ways(end: Relation, numbers: dict[Relation, int]) -> list[_Way]:
    if isinstance(end, Stream) or end in numbers:
        return [_Way(end)]
    assert isinstance(end, Derived)
    ways = [way for each in end.inputs for way in _ways(each, numbers)]
    if end.operator.merges:
        return ways
    step = end.operator.as_step()
    assert step is not None, "an operator keeps state, merges its inputs or is a step"
    given = _types(end.inputs[0])
    return [_Way(way.start, (*way.steps, step), (*way.given, given)) for way in ways]


def _types(relation: Relation) -> Types:
    return {each.name: each.type for each in relation.schema.columns}


def _feed(way: _Way, end: Relation, numbers: dict[Relation, int], setting: SqlSetting) -> Feed:
    origin = way.start if isinstance(way.start, Stream) else numbers[way.start]
    first, last, why = _certified(way, setting)
    steps = way.steps
    return Feed(origin, way.start, end, steps[:first], steps[first:last], steps[last:], why, way.given)


def _certified(way: _Way, setting: SqlSetting) -> tuple[int, int, str | None]:
    """The steps from the first to the last that only Spark can evaluate, and what is wrong with the first."""
    missing: dict[int, str] = {}
    for place, (step, given) in enumerate(zip(way.steps, way.given, strict=True)):
        try:
            if not step.calls:
                step.in_channel("input", given, setting)
        except Uncertified as lacking:
            missing[place] = str(lacking)
    if not missing:
        return len(way.steps), len(way.steps), None
    return min(missing), max(missing) + 1, missing[min(missing)]


# -- merge ---------------------------------------------------------------------------------------------


Parted = tuple[frozenset[str], ...]
"""For each column that a router hashes, in its order: the columns of a stage's result that hold it."""


def _merged(subqueries: Subqueries) -> Subqueries:
    """The same stages, with a host and a note for each that runs in the channels of others.

    A stage is merged with those that feed it if they share channels and each of its groups is whole in one of
    them: its keys include, unchanged on the way to every port, all columns by which tuples are partitioned.
    """
    stages: list[Stage] = []
    parted: list[Parted] = []
    roots: list[int] = []
    notes = list(subqueries.notes)
    for stage in subqueries.stages:
        host = _host_of(stage, stages, parted, roots, subqueries.setting)
        stages.append(replace(stage, host=host))
        if host is None:
            parted.append(_own_columns(stage))
            roots.append(stage.number)
        else:
            by = ", ".join(sorted(min(each) for each in parted[host]))
            origins = sorted({feed.origin for (feed,) in stage.ports if isinstance(feed.origin, int)})
            fed = " and ".join(f"stage {each}" for each in origins)
            alike = "both" if len(origins) == 1 else "all"
            notes.append(f"stage {stage.number} merged with {fed}: {alike} part tuples by {by}")
            parted.append(_carried(stage, parted))
            roots.append(roots[host])
    return replace(subqueries, stages=tuple(stages), notes=tuple(notes))


def partitioned_by(subqueries: Subqueries, number: int) -> tuple[str, ...]:
    """The keys of a stage by which its channels partition tuples, in the order of the routing stage.

    For a stage with a host, these are the keys that continue the host's keys.
    """
    if subqueries.stages[number].host is None:
        return subqueries.stages[number].operator.key_names
    parted: list[Parted] = []
    for stage in subqueries.stages[: number + 1]:
        parted.append(_own_columns(stage) if stage.host is None else _carried(stage, parted))
    return tuple(min(each) for each in parted[number])


def _own_columns(stage: Stage) -> Parted:
    """The columns by which a stage with its own channels partitions tuples; none if something else does."""
    columns = stage.operator.partition_columns(stage.relation.inputs)
    return tuple(frozenset({name}) for name in stage.operator.key_names if name in columns)


def _host_of(
    stage: Stage, known: Sequence[Stage], parted: list[Parted], roots: list[int], setting: SqlSetting
) -> int | None:
    """The last of the stages that feed it, if it can run in their channels.

    When all has ended it has to know how late their results may be.
    """
    if any(len(port) > 1 for port in stage.ports):
        return None
    origins = [feed.origin for (feed,) in stage.ports if isinstance(feed.origin, int) and not feed.outside]
    if len(origins) < len(stage.ports) or len({roots[each] for each in origins}) > 1:
        return None
    if any(known[each].operator.ahead() is None for each in origins):
        return None
    whole = bool(parted[origins[0]]) and all(_carried(stage, parted))
    return max(origins) if whole and _takes_in_place(stage, setting) else None


def _takes_in_place(stage: Stage, setting: SqlSetting) -> bool:
    if not stage.operator.shares_channels():
        return False
    given = _types(stage.relation.inputs[0])
    try:
        for sql in stage.operator.taken_in_place():
            passed_or_translated(sql, given, setting)
    except Uncertified:
        return False
    return True


def _carried(stage: Stage, parted: Sequence[Parted]) -> Parted:
    """The keys of a stage that are, at every port, a column by which its origin partitions, unchanged."""
    ways: list[list[frozenset[str]]] = []
    for (feed,) in stage.ports:
        assert isinstance(feed.origin, int)
        ways.append([_passed_on(feed, each) for each in parted[feed.origin]])
    return tuple(stage.operator.joint_carriers(each) for each in zip(*ways, strict=True))


def _passed_on(feed: Feed, names: frozenset[str]) -> frozenset[str]:
    for step in feed.inside:
        names = step.carriers(names)
    return names


# -- fold ----------------------------------------------------------------------------------------------


def _folded(subqueries: Subqueries) -> Subqueries:
    """The same, with a note for each union and each filter that needs no step of its own.

    Unions before a stage belong to its input merger, filters after it to its load balancer ([002] §III.F).
    """
    ports: list[tuple[str, Port]] = [
        (f"stage {stage.number}", port) for stage in subqueries.stages for port in stage.ports
    ]
    ports += [(f"output {place}", port) for place, port in enumerate(subqueries.outputs)]
    notes = list(subqueries.notes)
    for where, port in ports:
        if len(port) > 1:
            notes.append(f"union of {len(port)} feeds folded into the input merger of {where}")
    for where, port in ports:
        for feed in port:
            if filters := _trailing_filters(feed):
                shown = " and ".join(map(str, filters))
                notes.append(f"{shown} folded into the load balancer of {origin_of(feed)} towards {where}")
    return replace(subqueries, notes=tuple(dict.fromkeys(notes)))


def _trailing_filters(feed: Feed) -> tuple[Filter, ...]:
    """The filters after the last other step."""
    found: list[Filter] = []
    for step in reversed(feed.steps):
        last = step.as_filter()
        if last is None:
            break
        found.insert(0, last)
    return tuple(found)
