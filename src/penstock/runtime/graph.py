"""A query ready to run: the plan of every stage, typed by Spark, and every connection between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.compile import (
    Feed,
    Stage,
    Subqueries,
    compile_tail,
    partitioned_by,
)
from penstock.connect.results import ResultFormat
from penstock.errors import WrongType
from penstock.functions import SqlSetting
from penstock.query import Relation, Stream
from penstock.runtime.delivering import OpenSink, QueryOutput, Written
from penstock.runtime.epoch_input import PortInput
from penstock.runtime.in_place import InPlace, InPlacePorts, in_place
from penstock.runtime.spark.exchange import SparkExchange
from penstock.runtime.spark.frames import FILE, RECORD, REJECT, describe, marked, stepped
from penstock.runtime.stage import StageRunner
from penstock.runtime.stage_outputs import StageOutput

__all__ = ["Graph", "build"]


@dataclass(frozen=True)
class Graph:
    """Everything that runs: stages in order, outlets, and the columns that stages pass to each other."""

    stages: tuple[StageRunner, ...]
    outlets: tuple[QueryOutput, ...]
    handed: dict[tuple[int, int], StructType]
    setting: SqlSetting


def build(
    session: SparkSession, subqueries: Subqueries, deliveries: Sequence[OpenSink], between: ResultFormat
) -> Graph:
    """Compile and connect all stages; this finds everything that can be wrong with types."""
    building = _Building(session, subqueries, deliveries, between)
    for stage in subqueries.stages:
        building.add(stage)
    outlets = tuple(building.outlet(place) for place in range(len(subqueries.outputs)))
    return Graph(tuple(building.runners), outlets, building.handed, subqueries.setting)


@dataclass
class _Building:
    session: SparkSession
    subqueries: Subqueries
    deliveries: Sequence[OpenSink]
    between: ResultFormat
    runners: list[StageRunner] = field(default_factory=list)
    handed: dict[tuple[int, int], StructType] = field(default_factory=dict)
    _exits: dict[tuple[int, Any], int] = field(default_factory=dict)

    def add(self, stage: Stage) -> None:
        """Make a stage ready to run; the stages that feed it are ready."""
        inputs = tuple(
            PortInput((stage.number, place), port, tuple(self._exit_of(feed, stage) for feed in port))
            for place, port in enumerate(stage.ports)
        )
        empties = [self._port(each, stage.relation) for each in inputs]
        kernel = stage.operator.compile(stage.relation.time_type, [describe(each) for each in empties])
        hosted: InPlace | InPlacePorts | None = None
        if stage.host is not None:
            kernel = kernel.hosted(partitioned_by(self.subqueries, stage.number))
            ports = tuple(
                in_place(exchange, self._fed_by(stage, port), self.subqueries.setting)
                for port, exchange in enumerate(kernel.exchanges)
            )
            hosted = ports[0] if len(ports) == 1 else InPlacePorts(ports)
        shared = any(each.host == stage.number for each in self.subqueries.stages)
        exchange = SparkExchange(kernel, inputs, alone=self._alone(stage), whole=shared)
        exits = self._ways_out(stage, kernel.schema)
        self.runners.append(StageRunner(stage, kernel, inputs, exits, exchange, hosted))

    def outlet(self, place: int) -> QueryOutput:
        """Make an output, when every stage is ready."""
        relation, port = self.subqueries.query.outputs[place], self.subqueries.outputs[place]
        delivery = self.deliveries[place]
        schema = self._output_schema(place)
        exits, written = [], []
        for number, feed in enumerate(port):
            if isinstance(feed.origin, int) and not feed.outside:
                copy = port[:number].count(feed)
                exits.append((feed.origin, self._exits[feed.origin, (feed.inside, delivery.target, copy)]))
            else:
                written.append(Written(feed, self._exit_of(feed)))
                self._check_types(feed, relation, schema)
        return QueryOutput(delivery, schema, tuple(exits), tuple(written))

    def _ways_out(self, stage: Stage, schema: Any) -> tuple[StageOutput, ...]:
        exits: list[StageOutput] = []
        for feed, target, copy in self._consumers(stage.number):
            tail = compile_tail(feed.inside, schema, self.subqueries.setting)
            found = tail.schema if tail else schema
            if target is not None and target is not self.between:
                found = pa.schema([found.field(name) for name in feed.end.schema.names])
            key = stage.number, (feed.inside, target, copy)
            if key not in self._exits:
                self._exits[key] = len(exits)
                exits.append(StageOutput(tail, found, target))
            if target is self.between:
                self.handed[stage.number, self._exits[key]] = from_arrow_schema(found)
        return tuple(exits)

    def _consumers(self, number: int) -> list[tuple[Feed, ResultFormat | None, int]]:
        """Every feed that starts at a stage, its folder if it leaves the channel, and its copy number.

        A union of a relation with itself delivers everything twice, so its feeds need files of their own.
        """
        found: list[tuple[Feed, ResultFormat | None, int]] = []
        for stage in self.subqueries.stages:
            target = None if stage.host is not None else self.between
            found += [(feed, target, 0) for port in stage.ports for feed in port if feed.origin == number]
        for port, delivery in zip(self.subqueries.outputs, self.deliveries, strict=True):
            found += [
                (feed, self.between, 0) if feed.outside else (feed, delivery.target, port[:place].count(feed))
                for place, feed in enumerate(port)
                if feed.origin == number
            ]
        return found

    def _exit_of(self, feed: Feed, stage: Stage | None = None) -> int | None:
        """The exit through which a feed reaches a stage, or Spark if there is no stage."""
        if isinstance(feed.origin, Stream):
            return None
        target = None if stage is not None and stage.host is not None else self.between
        return self._exits[feed.origin, (feed.inside, target, 0)]

    def _fed_by(self, stage: Stage, port: int) -> Any:
        """The columns of the rows that a port of a stage takes in the channels of another."""
        (feed,) = stage.ports[port]
        assert isinstance(feed.origin, int)
        number = self._exit_of(feed, stage)
        assert number is not None
        return self.runners[feed.origin].exits[number].schema

    def _alone(self, stage: Stage) -> bool:
        """Whether no stream that feeds the stage feeds anything else."""
        ports = [port for each in self.subqueries.stages for port in each.ports]
        every = [feed.origin for port in [*ports, *self.subqueries.outputs] for feed in port]
        return all(every.count(feed.origin) == 1 for port in stage.ports for feed in port)

    def _port(self, entrance: PortInput, relation: Relation) -> DataFrame:
        frames = [
            self._empty(feed, number) for feed, number in zip(entrance.port, entrance.exits, strict=True)
        ]
        for frame in frames[1:]:
            _check_same(frames[0], frame, relation)
        return frames[0]

    def _empty(self, feed: Feed, number: int | None) -> DataFrame:
        if isinstance(feed.origin, Stream):
            bare = self.session.createDataFrame([], feed.origin.schema.ddl().replace(" NOT NULL", ""))
            start = marked(bare, feed.origin).drop(REJECT, RECORD, FILE)
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
                    f"union: column {one.name!r} is {one.type} in one relation and {other.type} in another"
                )


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
    return pa.schema([field.with_nullable(True) for field in found])
