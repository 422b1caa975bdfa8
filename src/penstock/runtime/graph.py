"""A query ready to run: the plan of every stage, typed by Spark, and every way between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from sqlglot import exp

from penstock.columns import TIME
from penstock.compile import Feed, Stage, Subqueries, compile_tail, partitioned_by
from penstock.connect.results import ResultFormat
from penstock.errors import WrongType
from penstock.expressions.parsing import shared_scalar
from penstock.functions import SqlSetting
from penstock.operators import Step
from penstock.operators.exchange import Exchange
from penstock.operators.kernel import Kernel
from penstock.query import Relation, Stream
from penstock.runtime.dataflow.intake import Intake
from penstock.runtime.dataflow.ports import PortMap, port_map
from penstock.runtime.dataflow.tasks import Compiled, Hosted, Origin
from penstock.runtime.dataflow.ways import End, ToFile, ToPort, ToSpark, ToStage, Way
from penstock.runtime.delivering import OpenSink, QueryOutput
from penstock.runtime.spark.frames import describe
from penstock.runtime.stage import StageRunner, members_of
from penstock.state.storage import Location

__all__ = ["Graph", "SparkWay", "Typed", "build"]

Typed = Callable[[Any, tuple[Step, ...]], DataFrame]
"""Gives an empty frame after steps over columns of an Arrow schema, which tells types."""


@dataclass(frozen=True)
class SparkWay:
    """A way with steps that only Spark can evaluate, between two parts on Arrow.

    `before` leads from its origin to Spark: the rows of a stream leave their task as they are, those of a
    stage pass through files. Spark takes the `steps`, and then evaluates the `exchange` of a port if it has
    to. What follows is `Compiled.after` of the same number; `stage` is the one that it leads to.
    """

    number: int
    origin: Origin
    before: Way
    steps: tuple[Step, ...]
    exchange: Exchange | None
    stage: int | None


@dataclass(frozen=True)
class Graph:
    """Everything that runs: stages in order, outlets, ways on Arrow, and ways through Spark.

    `never` remembers of ways through Spark whether Spark knows that no row passes them.
    """

    stages: tuple[StageRunner, ...]
    outlets: tuple[QueryOutput, ...]
    compiled: Compiled
    spark_ways: tuple[SparkWay, ...]
    setting: SqlSetting
    never: dict[int, bool] = field(default_factory=dict, compare=False)


def build(
    typed: Typed,
    subqueries: Subqueries,
    deliveries: Sequence[OpenSink],
    between: ResultFormat,
    routers: Location,
) -> Graph:
    """Compile and connect all stages; this finds everything that can be wrong with types."""
    building = _Building(typed, subqueries, deliveries, between)
    for stage in subqueries.stages:
        building.add(stage)
    outlets = tuple(building.outlet(place) for place in range(len(subqueries.outputs)))
    return Graph(
        tuple(building.runners),
        outlets,
        building.compiled(routers),
        tuple(building.spark_ways),
        subqueries.setting,
    )


@dataclass
class _Building:
    typed: Typed
    subqueries: Subqueries
    deliveries: Sequence[OpenSink]
    between: ResultFormat
    runners: list[StageRunner] = field(default_factory=list)
    ways: dict[Origin, list[Way]] = field(default_factory=dict)
    after: dict[int, tuple[Origin, Way]] = field(default_factory=dict)
    spark_ways: list[SparkWay] = field(default_factory=list)
    hosted: dict[int, tuple[Hosted, ...]] = field(default_factory=dict)
    read: dict[str, set[str]] = field(default_factory=dict)
    judging: list[PortMap] = field(default_factory=list)
    looks: dict[str, list[Way]] = field(default_factory=dict)

    def compiled(self, routers: Location) -> Compiled:
        """What tasks need of all this."""
        streams = self.subqueries.query.streams
        return Compiled(
            intakes={each.name: Intake.of(each, sorted(self.read.get(each.name, ()))) for each in streams},
            ways={origin: tuple(ways) for origin, ways in self.ways.items()}
            | {each.name: () for each in streams if each.name not in self.ways},
            after=self.after,
            kernels=tuple(each.kernel for each in self.runners),
            members={
                each.number: tuple(one.number for one in members_of(self.runners, each.number))
                for each in self.runners
                if not each.hosted
            },
            hosted=self.hosted,
            routers=routers,
            judging=tuple(self.judging),
            looks={stream: tuple(ways) for stream, ways in self.looks.items()},
        )

    def add(self, stage: Stage) -> None:
        """Make a stage ready to run; the stages that feed it are ready."""
        empties = [self._port(port, stage.relation) for port in stage.ports]
        kernel = stage.operator.compile(stage.relation.time_type, [describe(each) for each in empties])
        if stage.host is not None:
            kernel = kernel.hosted(partitioned_by(self.subqueries, stage.number))
        self.runners.append(StageRunner(stage, kernel))
        if stage.host is not None:
            self.hosted[stage.number] = tuple(
                self._host(stage, port, kernel) for port in range(len(stage.ports))
            )
            return
        for port, feeds in enumerate(stage.ports):
            for feed in feeds:
                self._lead(feed, stage, port, kernel)

    def outlet(self, place: int) -> QueryOutput:
        """Make an output, when every stage is ready."""
        relation, port = self.subqueries.query.outputs[place], self.subqueries.outputs[place]
        delivery = self.deliveries[place]
        schema = self._output_schema(place)
        exits, origins = [], []
        for feed in port:
            self._check_types(feed, relation, schema)
            end = ToFile("outlet", place, delivery.target)
            wanted = frozenset(name.lower() for name in schema.names)
            number = self._way(feed.narrowed(wanted)[0], wanted, schema, end)
            origin = feed.origin.name if isinstance(feed.origin, Stream) else feed.origin
            origins.append(origin)
            if isinstance(origin, int) and number is not None:
                exits.append((origin, number))
        return QueryOutput(delivery, schema, tuple(exits), tuple(origins))

    # Ways.

    def _lead(self, feed: Feed, stage: Stage, port: int, kernel: Kernel) -> None:
        """Lead a feed to a port of a stage with channels of its own."""
        exchange, number = kernel.exchanges[port], stage.number
        wanted = frozenset(name.lower() for name in _columns_of(exchange))
        schema = self._end_schema(feed, wanted)
        whole, (feed, _) = feed, feed.narrowed(wanted)
        found = None if feed.outside else port_map(kernel, number, port, schema, self.subqueries.setting)
        beyond = port_map(kernel, number, port, schema, self.subqueries.setting) if feed.outside else None
        floor = (number, port)
        if found is not None:
            self._way(feed, wanted, schema, ToPort(found), floor)
        elif beyond is not None:
            self._spark_way(
                feed, wanted, feed.outside, feed.beyond, schema, ToPort(beyond), number, None, floor
            )
        else:
            sent = PortMap(number, port, kernel, evaluated=True)
            steps = feed.outside + feed.beyond
            self._spark_way(feed, wanted, steps, (), None, ToPort(sent), number, exchange, floor)
        if kernel.judges:
            self._look_again(whole, stage, port, kernel)

    def _look_again(self, feed: Feed, stage: Stage, port: int, kernel: Kernel) -> None:
        """How tuples that come too late are found again, as they came to a port: read once more, or kept."""
        wanted = frozenset(name.lower() for name in feed.end.schema.names)
        schema = self._end_schema(feed, wanted)
        number, setting = stage.number, self.subqueries.setting
        found = port_map(kernel, number, port, schema, setting)
        if found is None or feed.outside or isinstance(feed.origin, int):
            self._kept_to_judge(feed, wanted, schema, found or PortMap(number, port, kernel, evaluated=True))
            return
        given = pa.schema([*feed.origin.schema.arrow(), (TIME, pa.int64())])
        tail = compile_tail(feed.inside, given, setting)
        self.looks.setdefault(feed.origin.name, []).append(Way(tail, schema, ToPort(found)))

    def _kept_to_judge(self, feed: Feed, wanted: frozenset[str], schema: Any, port: PortMap) -> None:
        """Keep the rows of a port in files, for a second look at those that come too late."""
        # Of a stream only those columns come that the narrowed steps read.
        feed, _ = feed.narrowed(wanted)
        end = ToFile("judge", len(self.judging), self.between)
        self.judging.append(port)
        if port.evaluated:
            steps = feed.outside + feed.beyond
            self._spark_way(feed, wanted, steps, (), None, end, None, port.exchange, None)
        else:
            self._way(feed, wanted, schema, end)

    def _way(
        self,
        feed: Feed,
        wanted: frozenset[str],
        schema: Any,
        end: End,
        floor: tuple[int, int] | None = None,
    ) -> int | None:
        """Add the way of a feed; its number among those of its origin, None if it leads through Spark."""
        if feed.outside:
            self._spark_way(feed, wanted, feed.outside, feed.beyond, schema, end, None, None, floor)
            return None
        origin, start = self._start(feed, wanted)
        tail = compile_tail(feed.inside, start, self.subqueries.setting)
        floor = floor if isinstance(origin, int) else None
        return self._added(origin, Way(tail, schema, end, floor))

    def _added(self, origin: Origin, way: Way) -> int:
        self.ways.setdefault(origin, []).append(way)
        return len(self.ways[origin]) - 1

    def _spark_way(  # noqa: PLR0913, PLR0917 -- both ends of a way, and what is between them
        self,
        feed: Feed,
        wanted: frozenset[str],
        steps: tuple[Step, ...],
        beyond: tuple[Step, ...],
        schema: Any,
        end: End,
        stage: int | None,
        exchange: Exchange | None,
        floor: tuple[int, int] | None,
    ) -> None:
        number = len(self.spark_ways)
        origin, start = self._start(feed, wanted)
        setting = self.subqueries.setting
        tail = compile_tail(feed.inside, start, setting)
        reached = start if tail is None else tail.schema
        floor = floor if isinstance(origin, int) else None
        before = Way(tail, reached, ToSpark(), floor)
        if isinstance(origin, int):
            before = replace(before, end=ToFile("spark", number, self.between))
            self._added(origin, before)
        made = _arrow(self.typed(reached, steps))
        last = compile_tail(beyond, made, setting)
        self.spark_ways.append(SparkWay(number, origin, before, steps, exchange, stage))
        self.after[number] = (origin, Way(last, schema, end))

    def _start(self, feed: Feed, wanted: frozenset[str]) -> tuple[Origin, Any]:
        """The origin of a feed, and the columns there that are read for the wanted ones at its end."""
        if isinstance(feed.origin, int):
            return feed.origin, self.runners[feed.origin].kernel.schema
        stream = feed.origin
        _, read = feed.narrowed(wanted)
        names = [each.name for each in stream.schema.columns if each.name.lower() in read]
        self.read.setdefault(stream.name, set()).update(names)
        schema = stream.schema.arrow()
        fields = [schema.field(name).with_nullable(True) for name in names]
        return stream.name, pa.schema([*fields, (TIME, pa.int64())])

    def _end_schema(self, feed: Feed, wanted: frozenset[str]) -> Any:
        """The columns at the end of a feed that are wanted there, with the event time."""
        found = _arrow(self._empty(feed))
        return pa.schema([each for each in found if each.name.lower() in wanted or each.name == TIME])

    def _host(self, stage: Stage, port: int, kernel: Kernel) -> Hosted:
        """Lead the only feed of a port to a stage in the same channels."""
        (feed,) = stage.ports[port]
        assert isinstance(feed.origin, int)
        given = self.runners[feed.origin].kernel.schema
        tail = compile_tail(feed.inside, given, self.subqueries.setting)
        schema = given if tail is None else tail.schema
        found = port_map(kernel, stage.number, port, schema, self.subqueries.setting)
        assert found is not None, "what runs in the channels of another stage is certified"
        return Hosted(feed.origin, self._added(feed.origin, Way(tail, schema, ToStage())), found)

    # Types, as Spark tells them.

    def _port(self, port: tuple[Feed, ...], relation: Relation) -> DataFrame:
        frames = [self._empty(feed) for feed in port]
        for frame in frames[1:]:
            _check_same(frames[0], frame, relation)
        return frames[0]

    def _empty(self, feed: Feed) -> DataFrame:
        if isinstance(feed.origin, Stream):
            schema = pa.schema([*feed.origin.schema.arrow(), (TIME, pa.int64())])
        else:
            schema = self.runners[feed.origin].kernel.schema
        return self.typed(schema, feed.steps)

    def _output_schema(self, place: int) -> Any:
        feed = self.subqueries.outputs[place][0]
        names = list(self.subqueries.query.outputs[place].schema.names)
        if isinstance(feed.origin, int) and not feed.outside:
            given = self.runners[feed.origin].kernel.schema
            tail = compile_tail(feed.inside, given, self.subqueries.setting)
            found = given if tail is None else tail.schema
            return pa.schema([found.field(name) for name in names])
        return _arrow(self._empty(feed).select(*(f"`{name}`" for name in names)))

    def _check_types(self, feed: Feed, relation: Relation, schema: Any) -> None:
        found = _arrow(self._empty(feed).select(*(f"`{name}`" for name in relation.schema.names)))
        for one, other in zip(schema, found, strict=True):
            if _as_spark(one) != _as_spark(other):
                raise WrongType(
                    f"union: column {one.name!r} is {one.type} in one relation and {other.type} in another"
                )


def _columns_of(exchange: Exchange) -> set[str]:
    """The columns of a port that its exchange reads."""
    texts = [each.sql for each in exchange.columns]
    if exchange.combine is not None:
        texts += [sql for _, sql in exchange.combine.sql]
    return {node.parts[0].name for text in texts for node in shared_scalar(text).find_all(exp.Column)}


def _as_spark(field_: Any) -> Any:
    """A type as Spark knows it, which does not tell whether members may be null."""
    return from_arrow_schema(pa.schema([field_.with_nullable(True)]))


def _check_same(first: DataFrame, other: DataFrame, relation: Relation) -> None:
    types = {each.name: each.dataType for each in other.schema}
    for each in first.schema:
        if each.dataType != types[each.name]:
            raise WrongType(
                f"union before {relation}: column {each.name!r} is {each.dataType.simpleString()} in one "
                f"relation and {types[each.name].simpleString()} in another; cast one of them"
            )


def _arrow(frame: DataFrame) -> Any:
    found = to_arrow_schema(frame.schema, timezone="UTC")
    return pa.schema([each.with_nullable(True) for each in found])
