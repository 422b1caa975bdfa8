"""A query made ready to run: the plan of every stage, typed by Spark, and every way between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.compile import (
    TIME,
    Feed,
    Stage,
    Subqueries,
    compile_aggregation,
    compile_join,
    compile_process,
    compile_tail,
    parted_by,
)
from penstock.errors import BadJoin, WrongType
from penstock.query import Aggregation, Join, Process, Relation, Stream
from penstock.runtime.beside import RawRows, raw_rows
from penstock.runtime.exits import Exit
from penstock.runtime.join_stage import JoinStage
from penstock.runtime.keyed import KEY
from penstock.runtime.process_stage import ProcessStage
from penstock.runtime.results import ResultFormat
from penstock.runtime.sinks import Delivery
from penstock.runtime.spark.frames import RECORD, REJECT, describe, marked, stepped
from penstock.runtime.stage import Entrance, StageRunner
from penstock.runtime.window_stage import WindowStage

__all__ = ["Graph", "Outlet", "Written", "build"]


@dataclass(frozen=True)
class Written:
    """A feed of an output that Spark writes, since it comes through no stage or takes its steps outside."""

    feed: Feed
    exit: int | None


@dataclass(frozen=True)
class Outlet:
    """An output of the query: its delivery, its columns, and the ways by which tuples come to it.

    `exits` are pairs of a stage and one of its exits, in which channels write for the sink themselves.
    """

    delivery: Delivery
    schema: Any
    exits: tuple[tuple[int, int], ...]
    written: tuple[Written, ...]


@dataclass(frozen=True)
class Graph:
    """Everything that runs: stages in order, outlets, and the columns of what stages hand to each other."""

    stages: tuple[StageRunner, ...]
    outlets: tuple[Outlet, ...]
    handed: dict[tuple[int, int], StructType]


def build(
    session: SparkSession, subqueries: Subqueries, deliveries: Sequence[Delivery], between: ResultFormat
) -> Graph:
    """Compile every stage and lay every way; all that can be wrong with types is found here."""
    building = _Building(session, subqueries, deliveries, between)
    for stage in subqueries.stages:
        building.add(stage)
    outlets = tuple(building.outlet(place) for place in range(len(subqueries.outputs)))
    return Graph(tuple(building.runners), outlets, building.handed)


@dataclass
class _Building:
    session: SparkSession
    subqueries: Subqueries
    deliveries: Sequence[Delivery]
    between: ResultFormat
    runners: list[StageRunner] = field(default_factory=list)
    handed: dict[tuple[int, int], StructType] = field(default_factory=dict)
    _exits: dict[tuple[int, Any], int] = field(default_factory=dict)

    def add(self, stage: Stage) -> None:
        """Make the runner of a stage; those that feed it are there already."""
        entrances = tuple(
            Entrance((stage.number, place), port, tuple(self._exit_of(feed, stage) for feed in port))
            for place, port in enumerate(stage.ports)
        )
        empties = [self._port(entrance, stage.relation) for entrance in entrances]
        if isinstance(stage.operator, Join):
            self._check_order(stage)
            plan = compile_join(stage.relation, describe(empties[0]), describe(empties[1]))
            exits = self._ways_out(stage, plan.schema)
            shared = any(each.beside == stage.number for each in self.subqueries.stages)
            self.runners.append(JoinStage(stage, plan, entrances, exits, shared))
            return
        if isinstance(stage.operator, Process):
            process = compile_process(stage.relation, describe(empties[0]))
            exits = self._ways_out(stage, process.schema)
            self.runners.append(ProcessStage(stage, process, entrances, exits))
            return
        window = compile_aggregation(stage.relation, describe(empties[0]))
        raw = self._raw(stage, window) if stage.beside is not None else None
        schema = window.schema.append(pa.field(TIME, pa.int64()))
        exits = self._ways_out(stage, schema)
        assert isinstance(stage.operator, Aggregation)
        names = [name for name, _ in stage.operator.keys]
        parted = tuple(KEY.format(names.index(name)) for name in parted_by(self.subqueries, stage.number))
        self.runners.append(WindowStage(stage, window, entrances, exits, self._alone(stage), parted, raw))

    def outlet(self, place: int) -> Outlet:
        """An output, once every stage is there."""
        relation, port = self.subqueries.query.outputs[place], self.subqueries.outputs[place]
        delivery = self.deliveries[place]
        schema = self._output_schema(place)
        delivery.prepare(schema)
        exits, written = [], []
        for number, feed in enumerate(port):
            if isinstance(feed.origin, int) and not feed.outside:
                copy = port[:number].count(feed)
                exits.append((feed.origin, self._exits[feed.origin, (feed.inside, delivery.target, copy)]))
            else:
                written.append(Written(feed, self._exit_of(feed)))
                self._check_types(feed, relation, schema)
        return Outlet(delivery, schema, tuple(exits), tuple(written))

    def _ways_out(self, stage: Stage, schema: Any) -> tuple[Exit, ...]:
        exits: list[Exit] = []
        for feed, target, copy in self._consumers(stage.number):
            tail = compile_tail(feed.inside, schema)
            found = tail.schema if tail else schema
            if target is not None and target is not self.between:
                found = pa.schema([found.field(name) for name in feed.end.schema.names])
            key = stage.number, (feed.inside, target, copy)
            if key not in self._exits:
                self._exits[key] = len(exits)
                exits.append(Exit(tail, found, target))
            if target is self.between:
                self.handed[stage.number, self._exits[key]] = from_arrow_schema(found)
        return tuple(exits)

    def _consumers(self, number: int) -> list[tuple[Feed, ResultFormat | None, int]]:
        """Every feed that starts at a stage, where it is written if it leaves the channel, and its copy.

        A union of a relation with itself delivers everything twice, so its feeds need files of their own.
        """
        found: list[tuple[Feed, ResultFormat | None, int]] = []
        for stage in self.subqueries.stages:
            target = None if stage.beside is not None else self.between
            found += [(feed, target, 0) for port in stage.ports for feed in port if feed.origin == number]
        for port, delivery in zip(self.subqueries.outputs, self.deliveries, strict=True):
            found += [
                (feed, self.between, 0) if feed.outside else (feed, delivery.target, port[:place].count(feed))
                for place, feed in enumerate(port)
                if feed.origin == number
            ]
        return found

    def _exit_of(self, feed: Feed, stage: Stage | None = None) -> int | None:
        """The exit through which a feed comes to a stage, or to Spark if there is none."""
        if isinstance(feed.origin, Stream):
            return None
        target = None if stage is not None and stage.beside is not None else self.between
        return self._exits[feed.origin, (feed.inside, target, 0)]

    def _raw(self, stage: Stage, window: Any) -> RawRows:
        (feed,) = stage.ports[0]
        assert isinstance(feed.origin, int)
        number = self._exit_of(feed, stage)
        assert number is not None
        return raw_rows(window, self.runners[feed.origin].exits[number].schema)

    def _alone(self, stage: Stage) -> bool:
        """Whether no stream that feeds the stage feeds anything else."""
        ports = [port for each in self.subqueries.stages for port in each.ports]
        every = [feed.origin for port in [*ports, *self.subqueries.outputs] for feed in port]
        return all(every.count(feed.origin) == 1 for port in stage.ports for feed in port)

    def _check_order(self, stage: Stage) -> None:
        """A row that the last rows of a key push out may be of any age: nothing can wait for it."""
        operator = stage.operator
        assert isinstance(operator, Join)
        followed = any(
            feed.origin == stage.number
            for each in self.subqueries.stages
            for port in each.ports
            for feed in port
        )
        if operator.last is not None and operator.how != "inner" and followed:
            raise BadJoin(
                f"{operator} delivers rows of any age when they can match no more, so no window or join can "
                "follow it; use within=..., or how='inner'"
            )

    def _port(self, entrance: Entrance, relation: Relation) -> DataFrame:
        frames = [
            self._empty(feed, number) for feed, number in zip(entrance.port, entrance.exits, strict=True)
        ]
        for frame in frames[1:]:
            _check_same(frames[0], frame, relation)
        return frames[0]

    def _empty(self, feed: Feed, number: int | None) -> DataFrame:
        if isinstance(feed.origin, Stream):
            bare = self.session.createDataFrame([], feed.origin.schema.ddl().replace(" NOT NULL", ""))
            start = marked(bare, feed.origin).drop(REJECT, RECORD)
        else:
            assert number is not None
            exit_ = self.runners[feed.origin].exits[number]
            start = self.session.createDataFrame([], from_arrow_schema(exit_.schema))
        return stepped(start, feed.outside)

    def _output_schema(self, place: int) -> Any:
        feed = self.subqueries.outputs[place][0]
        if isinstance(feed.origin, int) and not feed.outside:
            number = self._exits[feed.origin, (feed.inside, self.deliveries[place].target, 0)]
            return self.runners[feed.origin].exits[number].schema
        names = list(self.subqueries.query.outputs[place].schema.names)
        return _arrow(self._empty(feed, self._exit_of(feed)).select(*(f"`{name}`" for name in names)))

    def _check_types(self, feed: Feed, relation: Relation, schema: Any) -> None:
        frame = self._empty(feed, self._exit_of(feed))
        found = _arrow(frame.select(*(f"`{name}`" for name in relation.schema.names)))
        for one, other in zip(schema, found, strict=True):
            if one.type != other.type:
                raise WrongType(
                    f"union: column {one.name!r} is {one.type} in one and {other.type} in another"
                )


def _check_same(first: DataFrame, other: DataFrame, relation: Relation) -> None:
    types = {each.name: each.dataType for each in other.schema}
    for each in first.schema:
        if each.dataType != types[each.name]:
            raise WrongType(
                f"union before {relation}: column {each.name!r} is {each.dataType.simpleString()} in one and "
                f"{types[each.name].simpleString()} in another; cast one"
            )


def _arrow(frame: DataFrame) -> Any:
    found = to_arrow_schema(frame.schema, timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in found])
