"""A whole query without Spark: the product's compiler, planner, epochs, records and kernels in one process.

Everything between the contacts with Spark is the product's own code: the graph is built and typed, plans are
made and stored, stages run in their order, state moves, results and manifests are files. In place of Spark
there are Arrow tables: DuckDB evaluates what streams pass on their way to a stage, by the translation that
channels use, and `KernelRun` deals rows out to channels, in a random order.
"""

import atexit
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from penstock.runtime.epoch_input import EpochInput, PortInput, StreamSeen
from penstock.runtime.spark.exchange import NOTHING, MapSide
from penstock.runtime.stage_outputs import StageOutput
from pyspark import TaskContext, cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema
from sqlglot import exp

from operators.contract import EvaluatedPort, KernelRun, _together
from penstock.compile import Feed, compile_tail, cut, is_single, optimise
from penstock.connect import Begins, EpochId, ResultFormat, memory
from penstock.connect.results import ResultFile
from penstock.connect.sources.rows import rows as given_rows
from penstock.control.rescale import Rebatch, Regroup, Rescale
from penstock.expressions.duck import evaluate
from penstock.expressions.inference import type_of
from penstock.expressions.parsing import call_name, parse_scalar, render
from penstock.expressions.schema import Schema, quoted
from penstock.expressions.types import arrow_type, from_arrow, is_atomic, of_node
from penstock.functions import DEFAULT, Uncertified, duck_name, passed_or_translated
from penstock.operators.exchange import TIME
from penstock.operators.kernel import Seen
from penstock.query import Query, Relation, Stream
from penstock.routing import PARTITIONINGS, Spread
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.delivering import OpenSink, QueryOutput
from penstock.runtime.engine import _note, _resources
from penstock.runtime.epoch import Epoch, RunSetup
from penstock.runtime.epochs import Epochs
from penstock.runtime.frontier import SteadyTime
from penstock.runtime.graph import Graph, _Building
from penstock.runtime.planning import Planner
from penstock.runtime.progress import Phases
from penstock.runtime.records import Counts, Manifest, StagePlan
from penstock.runtime.rescale.frequent_keys import FrequentKeys
from penstock.runtime.rescale.learnt_costs import LearntCosts
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.routers import Routers
from penstock.runtime.spark.offsets import SourceNote
from penstock.runtime.stage import hosted_by
from penstock.state import Location, StateLayout

__all__ = ["LocalResult", "NeedsSpark", "run_local"]

Given = Mapping[str, Sequence[Sequence[Mapping[str, object]]]]
"""For each stream by name: its epochs, each a list of rows with a value per column; times are datetimes."""

MOST_CHANNELS = 5
_NEVER_MORE = 2**60
"""An event time after every row."""
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class NeedsSpark(Exception):  # noqa: N818 -- it is an answer, not a fault
    """Only Spark can evaluate the query; the message says what is missing."""


@dataclass(frozen=True)
class LocalResult:
    """What a run gave.

    - `tables`: the delivered rows of each output, over all epochs and the drain, in Spark's types; updating
      results have their `change` column and come in the order of epochs.
    - `accepted`, `late`, `rejected`: the given rows by stream (the same objects): what came in, what a port
      that the stream feeds was past, and what does not fit the schema (no time, a null in a NOT NULL column,
      or a time too far ahead of the clock).
    - `judged`: rows that a stage found to be late by its state, such as session windows do, as the stage got
      them.
    - `partly_late`: how many tuples came too late for some of their windows and counted in others.
    - `epochs`: how many epochs ran, the drain too; `rescaled`: how often a stage got another layout of its
      state; `moved`: how many rows of state moved.
    """

    tables: list[pa.Table]
    accepted: dict[str, list[Any]]
    late: dict[str, list[Any]]
    rejected: dict[str, list[Any]]
    judged: dict[int, pa.Table]
    partly_late: int
    epochs: int
    rescaled: int
    moved: int

    @property
    def clean(self) -> bool:
        """Whether `accepted` alone decides the result: nothing was late for only a part of the query."""
        return not self.partly_late and not self.judged


def run_local(
    query: Relation | Query,
    epochs: Given,
    *,
    seed: int,
    channels: int,
    rescale: bool = True,
    resume: bool = False,
    whole: bool = False,
    strategy: str = "subquery",
) -> LocalResult:
    """Run a query over rows, epoch after epoch, and drain it.

    The streams of the query need no source: rows come from `epochs`; a stream without an entry has none. The
    i-th list of each stream is its part of epoch i. With `whole` all rows come in one epoch. With `rescale`,
    before an epoch and at random from `seed`, state moves to any layout of any number of channels, exchanges
    take another form, and epochs are replayed. With `resume` the run ends after each epoch and begins again
    from the files of its checkpoint, at another number of channels. The order in which rows reach a channel
    is always random.

    What the product refuses is raised as it raises it: an error of `penstock.errors` when the query is
    compiled, RunError where a value cannot be evaluated. What only Spark can evaluate raises NeedsSpark.
    """
    compiled = _compiled(query, strategy)
    try:
        run = _LocalRun(compiled, channels, seed, restless=rescale)
        for number, tables in enumerate(_epochs(compiled.query.streams, epochs, whole=whole)):
            if resume and number:
                run.reopen(int(run.rng.integers(1, MOST_CHANNELS + 1)))
            run.epoch(number, tables)
        if resume:
            run.reopen(int(run.rng.integers(1, MOST_CHANNELS + 1)))
        run.end()
        return run.result(epochs, whole=whole)
    finally:
        shutil.rmtree(compiled.root.path, ignore_errors=True)


def _epochs(streams: Sequence[Stream], given: Given, *, whole: bool) -> Iterator[dict[str, pa.Table]]:
    """The rows of each epoch as Arrow tables of the schema of their stream."""
    found = {}
    for each in streams:
        batches = [list(batch) for batch in given.get(each.name, ())]
        if whole:
            batches = [[row for batch in batches for row in batch]]
        found[each.name] = given_rows(batches).conform(each.name, each.schema).batches
    for number in range(max(map(len, found.values()), default=0)):
        yield {name: batches[number] for name, batches in found.items() if number < len(batches)}


# -- in place of Spark ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Partitions of Arrow tables, None where one has no rows; a function over them runs here, one by one."""

    partitions: Sequence[pa.Table | None]
    function: Any = None

    def mapInArrow(self, function: Any, _schema: Any) -> "_Frame":  # noqa: N802 - Spark's name
        return replace(self, function=function)

    def collect(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        try:
            for number, table in enumerate(self.partitions):
                context = TaskContext._getOrCreate()
                context._partitionId = number
                for batch in self.function(iter([] if table is None else table.to_batches())):
                    found += batch.to_pylist()
        finally:
            TaskContext._setTaskContext(None)
        return found


@dataclass(frozen=True)
class _Shuffled:
    """Rows in their channels."""

    rows: _Frame
    observed: Mapping[str, Any] = field(default_factory=dict)

    def release(self) -> None:
        """Nothing is held."""


class _Session:
    """What the product asks of a session where it ships tasks."""

    sparkContext = SimpleNamespace(defaultParallelism=2)  # noqa: N815 - Spark's name

    def range(self, _start: int, end: int, _step: int, _partitions: int) -> _Frame:
        return _Frame([pa.table({"id": [number]}) for number in range(end)])


@dataclass(frozen=True)
class _Typed:
    """Columns and their types, in place of an empty frame by which Spark's analyzer tells types."""

    columns: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, schema: pa.Schema) -> "_Typed":
        return cls(tuple((each.name, from_arrow(each.type)) for each in schema))

    @property
    def schema(self) -> Any:
        return from_arrow_schema(pa.schema([(name, arrow_type(kind)) for name, kind in self.columns]))

    def select(self, *texts: str) -> "_Typed":
        return self.selectExpr(*texts)

    def selectExpr(self, *texts: str) -> "_Typed":  # noqa: N802 - Spark's name
        return _Typed(tuple((_name(text), _type(text, self.columns)) for text in texts))


@lru_cache(maxsize=1024)
def _name(text: str) -> str:
    node = parse_scalar(text)
    return node.name if isinstance(node, exp.Column) else text


@lru_cache(maxsize=1024)
def _type(text: str, columns: tuple[tuple[str, str], ...]) -> str:
    types = dict(columns)
    try:
        found = passed_or_translated(text, types).type
    except Uncertified as missing:
        # A digest is computed apart; the translation of anything else is asked for once more.
        found = type_of(parse_scalar(text), Schema.from_arrow(_visible(types)))
        if found is None:
            raise NeedsSpark(str(missing)) from missing
    assert found is not None, text
    return found


def _visible(types: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, arrow_type(kind)) for name, kind in types.items() if name != TIME])


# -- the graph -----------------------------------------------------------------------------------------


class _LocalBuilding(_Building):
    """Builds the graph of a query with types from the certified translation."""

    def _empty(self, feed: Feed, number: int | None) -> Any:
        start = self.start(feed, number)
        tail = _tail(feed.outside, start)
        return _Typed.of(start if tail is None else tail.schema)

    def start(self, feed: Feed, number: int | None) -> pa.Schema:
        """The columns of a feed at its origin, with the event time."""
        if isinstance(feed.origin, Stream):
            return pa.schema([*(_nullable(feed.origin.schema.arrow())), (TIME, pa.int64())])
        assert number is not None
        return self.runners[feed.origin].exits[number].schema


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each.with_nullable(True) for each in schema])


@lru_cache(maxsize=64)
def _tail(steps: tuple[Any, ...], schema: pa.Schema) -> Any:
    """The steps that Spark evaluates on the way, as channels would."""
    try:
        return compile_tail(steps, schema)
    except Uncertified as missing:
        raise NeedsSpark(str(missing)) from missing


@dataclass(frozen=True)
class _Way:
    """A feed: its steps over rows with the event time, and where the rows come from."""

    feed: Feed
    exit: int | None
    tail: Any
    schema: pa.Schema


@dataclass(frozen=True)
class _TablePort(EvaluatedPort):
    """A port whose rows are a table already."""

    @classmethod
    def over(cls, exchange: Any, schema: pa.Schema) -> "_TablePort":
        types = {each.name: from_arrow(each.type) for each in schema}
        columns = tuple(replace(each, sql=_uncast(each.sql, types)) for each in exchange.columns)
        stream = SimpleNamespace(schema=Schema.from_arrow(_visible(types)))
        for each in columns:
            for names in re.findall(r"xxhash64\(([^()]*)\)", each.sql):
                _check_hashed([name.strip(" `") for name in names.split(",")], schema)
        try:
            return cls.of(replace(exchange, columns=columns), stream)
        except Uncertified as missing:
            raise NeedsSpark(str(missing)) from missing

    def source(self, rows: pa.Table) -> pa.Table:
        """The rows as they are."""
        return rows


def _uncast(sql: str, types: Mapping[str, str]) -> str:
    """A cast of a column to the type that it has is the column, of whatever type."""
    node = parse_scalar(sql)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column) and len(node.this.parts) == 1:
        name = node.this.name
        if types.get(name) == of_node(node.to):
            return quoted(name)
    return sql


def _check_hashed(names: Sequence[str], schema: pa.Schema) -> None:
    """Only columns of atomic types are hashed here."""
    for name in names:
        if name not in schema.names or not is_atomic(from_arrow(schema.field(name).type)):
            raise NeedsSpark(f"xxhash64({name})")


# -- the exchange --------------------------------------------------------------------------------------


class _LocalExchange(KernelRun):
    """Deals the rows of a stage out to its channels, as `KernelRun` does for one stage alone."""

    def __init__(
        self, kernel: Any, inputs: Sequence[PortInput], ways: Sequence[Sequence[_Way]], *, whole: bool
    ) -> None:
        self.kernel, self.inputs, self.ways, self.whole = kernel, inputs, ways, whole
        self.ports = [
            _TablePort.over(exchange, each[0].schema)
            for exchange, each in zip(kernel.exchanges, ways, strict=True)
        ]
        self.combining = _combining(kernel.exchanges[0], ways[0][0].schema)

    def begin(self, rng: Any) -> None:
        """A run begins."""
        self.rng = rng
        self.hashes = np.zeros(0, np.uint64)
        self.layout = StateLayout(None, 1)

    @property
    def forms(self) -> list[str]:
        """Every way in which rows may reach the channels and that needs no Spark."""
        return [each for each in super().forms if each != "combined" or self.combining]

    def run(
        self, intake: "_LocalInput", plan: StagePlan, _bound: int | None, spread: Spread | None
    ) -> MapSide:
        """Rows of all ports in their channels; hot keys of a first epoch lie on any grids."""
        tables = [intake.port(each) for each in self.ways]
        if not any(each.num_rows for each in tables):
            return replace(NOTHING, shuffled=_Shuffled(_Frame([None] * plan.channels)))
        found = None
        router = intake.routers.find(plan.router) if plan.router else None
        if spread is None and len(tables) > 1 and router is not None and not self.whole:
            found = spread = self._any_spread(plan.channels, self._some_keys(tables))
        self.layout = StateLayout(router, plan.channels, spread, plan.batches)
        dealt = [self._dealt(port, table, plan.form) for port, table in enumerate(tables)]
        channels = [
            _together(self.kernel.exchanges, [port.channels[channel] for port in dealt])
            for channel in range(plan.channels)
        ]
        bucket = max((each.bucket for each in dealt if each.bucket is not None), default=None)
        rows = any(each is not None for each in channels)
        return MapSide(_Shuffled(_Frame(channels)), Seen(rows=rows, bucket=bucket), found)

    def judged_late(self, intake: "_LocalInput", _plan: StagePlan, late: Sequence[tuple[int, int]]) -> Any:
        """The tuples that channels found to be too late, by hash of key and bucket."""
        (exchange,) = self.kernel.exchanges
        table = intake.port(self.ways[0])
        sent = self.ports[0].sent(table)
        buckets = sent[exchange.bucket.name].to_pylist()
        hashes = self.hashed([sent[name] for name in exchange.keys], sent.num_rows).view(np.int64).tolist()
        pairs = set(late) if exchange.keys else {bucket for _, bucket in late}
        mine = zip(hashes, buckets, strict=True) if exchange.keys else buckets
        return table.filter(pa.array([each in pairs for each in mine], pa.bool_()))

    def _some_keys(self, tables: Sequence[pa.Table]) -> Any:
        found = []
        for port, table in enumerate(tables):
            sent = self.ports[port].sent(table)
            keys = [sent[name] for name in self.kernel.exchanges[port].keys]
            known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
            found.append(self.hashed(keys, sent.num_rows)[known])
        every = np.unique(np.concatenate(found))
        return np.unique(self.rng.choice(every, min(3, len(every)))) if len(every) else every

    def _by_window(self, table: pa.Table) -> Any:
        """To the channels of a row's windows; a single channel gets every row."""
        if self.layout.channels == 1:
            return np.arange(table.num_rows), np.zeros(table.num_rows, np.int64)
        return super()._by_window(table)

    def _combined(self, exchange: Any, source: pa.Table, sent: pa.Table) -> pa.Table:
        """What the map side combines, in random pieces."""
        by = [*exchange.keys, exchange.bucket.name]
        kept = [name for name in source.column_names if name not in by]
        source = source.select(kept)
        for name in by:
            source = source.append_column(name, sent[name])
        names = [duck_name(name) for name in by]
        names += [f"{sql} AS {duck_name(name)}" for name, sql in self.combining]
        found = []
        for piece in self._pieces(source):
            table = evaluate(f"SELECT {', '.join(names)} FROM input GROUP BY ALL", piece)
            found.append(table.select(self.kernel.partials.names).cast(self.kernel.partials))
        return pa.concat_tables(found)

    def wish(self, number: int, *, hosts: bool) -> Rescale:
        """Any number of channels by any partitioning, and any grids where pairs may have them."""
        channels = int(self.rng.integers(1, MOST_CHANNELS + 1))
        if not self.kernel.exchanges[0].keys:
            return Rescale(number, channels)
        partitioning = str(self.rng.choice(list(PARTITIONINGS)))
        spread = None
        if len(self.ports) > 1 and not hosts and len(self.hashes) and self.rng.random() < 0.5:
            spread = self._any_spread(channels, np.unique(self.rng.choice(self.hashes, 3)))
        return Rescale(number, channels, partitioning, spread=spread)


_PLAIN_AGGREGATES = frozenset({"count", "sum", "min", "max"})


def _combining(exchange: Any, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """What the map side combines as DuckDB's SQL; empty where nothing is combined or only Spark can."""
    if exchange.combine is None or exchange.combine.rowwise or exchange.bucket is None:
        return ()
    types = {each.name: from_arrow(each.type) for each in schema}
    found = []
    for name, sql in exchange.combine.columns:
        node, condition = parse_scalar(sql), ""
        try:
            if isinstance(node, exp.Filter):
                where = passed_or_translated(render(node.expression.this), types).sql
                node, condition = node.this, f" FILTER (WHERE {where})"
            if call_name(node) not in _PLAIN_AGGREGATES or len(node.expressions) != 1:
                return ()
            argument = passed_or_translated(render(node.expressions[0]), types).sql
        except Uncertified:
            return ()
        found.append((name, f"{call_name(node)}({argument}){condition}"))
    return tuple(found)


# -- an epoch ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrived:
    """The rows of a stream in an epoch, with their event time, and which of them fit and which are late."""

    rows: pa.Table
    fits: Any
    late: Any

    @classmethod
    def of(cls, stream: Stream, table: pa.Table, bound: int | None, now: int) -> "_Arrived":
        time = table[stream.time].cast(pa.int64())
        known = [table[each.name].is_valid() for each in stream.schema.columns if not each.nullable]
        fits = np.logical_and.reduce([np.asarray(each) for each in [time.is_valid(), *known]])
        times = time.fill_null(0).to_numpy()
        if stream.ahead is not None:
            fits &= times <= now + stream.ahead
        late = fits & (times < bound) if bound is not None else np.zeros(len(times), np.bool_)
        rows = pa.table(
            [*table.columns, time], schema=pa.schema([*_nullable(table.schema), (TIME, pa.int64())])
        )
        return cls(rows, fits, late)

    @property
    def taken(self) -> pa.Table:
        """The rows that stages get."""
        return self.rows.filter(pa.array(self.fits & ~self.late))

    @property
    def seen(self) -> StreamSeen:
        """What the epoch sees of them."""
        times = self.rows[TIME].filter(pa.array(self.fits))
        bounds = pc.min_max(times)
        return StreamSeen(
            bounds["max"].as_py(), bounds["min"].as_py(), rejects=not self.fits.all(), rows=self.rows.num_rows
        )

    def parts(self, stream: Stream) -> dict[str, int]:
        """The latest event time of each partition of a stream."""
        held = self.rows.filter(pa.array(self.fits))
        table = evaluate(
            f"SELECT coalesce(CAST({duck_name(stream.key or '')} AS VARCHAR), '') AS part, "
            f"max({TIME}) AS latest FROM input GROUP BY ALL",
            held,
        )
        return {row["part"]: row["latest"] for row in table.to_pylist()}


class _LocalInput(EpochInput):
    """The rows of an epoch as Arrow tables."""

    def port(self, ways: Sequence[_Way]) -> pa.Table:
        """All rows of a port, in the columns of its first feed."""
        found = [self.way(each) for each in ways]
        names = found[0].column_names
        return pa.concat_tables([each.select(names) for each in found])

    def way(self, way: _Way) -> pa.Table:
        """The rows of one feed after its steps."""
        origin = way.feed.origin
        if isinstance(origin, Stream):
            arrived = self.arrivals.get(origin.name)
            table = None if arrived is None else arrived.taken
        else:
            table = self._handed(origin, way.exit)
        if table is None or not table.num_rows:
            return way.schema.empty_table()
        return table.cast(way.schema) if way.tail is None else way.tail.apply(table)

    def _handed(self, stage: int, exit_number: int | None) -> pa.Table | None:
        files = self.handed.get((stage, exit_number))
        if files is None or not files.outputs:
            return None
        read = []
        for each in files.outputs:
            with files.folder.input(each.name) as file:
                read.append(pq.ParquetFile(file).read())
        return pa.concat_tables(read)


class _LocalEpoch(Epoch):
    """An epoch whose sources are Arrow tables."""

    written: Mapping[int, Sequence[_Way]]
    rng: Any

    def _seen(self, stream: Stream) -> dict[str, int]:
        arrived = self.intake.arrivals.get(stream.name)
        if arrived is None or arrived.seen.latest is None:
            return {}
        return {"": arrived.seen.latest} if stream.key is None else arrived.parts(stream)

    def _deliver(self) -> int:
        """As always, after the files of feeds that pass no stage."""
        for place, ways in self.written.items():
            outlet = self.works.graph.outlets[place]
            for number, way in enumerate(ways):
                file = ResultFile(outlet.delivery.target, outlet.schema)
                file.write(self.intake.way(way).select(outlet.schema.names).cast(outlet.schema))
                file.close()
                receipt = file.receipt()
                self.outputs[_place(place), number] = [] if receipt is None else [(0, receipt)]
        return super()._deliver()

    def _set_aside(self) -> Counts:
        """Count what is set aside; the run keeps it."""
        late = sum(int(each.late.sum()) for each in self.intake.arrivals.values())
        late += sum(rows.num_rows for _, rows in self.intake.judged)
        rejected = sum(int((~each.fits).sum()) for each in self.intake.arrivals.values())
        return Counts(late=late, rejected=rejected)


def _place(output: int) -> int:
    """Where the files of an output stand that come from no stage."""
    return -1 - output


class _Probe(StageOutput):
    """Looks at every result of a stage: none may be earlier than the stage has promised before the epoch."""

    promise: ClassVar[int | None] = None

    def rows(self, table: pa.Table, refusing: Any = None) -> pa.Table:
        """None; results pass by the other outputs."""
        del refusing
        if self.promise is not None and table.num_rows:
            earliest = pc.min(table[TIME]).as_py()
            assert earliest >= self.promise, f"a result of {earliest} after a promise of {self.promise}"
        return self.schema.empty_table()

    def expect(self, promise: int | None) -> None:
        """What was promised before the next epoch."""
        object.__setattr__(self, "promise", promise)


# -- a query -------------------------------------------------------------------------------------------


class _Compiled:
    """A query ready to run, any number of times, one after another: nothing in it changes but its sinks."""

    def __init__(self, given: Relation | Query, strategy: str) -> None:
        self.given, self.strategy = given, strategy
        self.query = optimise(given if isinstance(given, Query) else Query((given,))).query
        self.subqueries = cut(self.query, strategy, DEFAULT)
        self.root = Location.of(f"{_folder()}/{uuid4().hex}")
        self.id = "local"
        self.deliveries = [
            OpenSink(
                memory(),
                f"{self.id}-{place}",
                str(place),
                self.root / "results" / str(place),
                each.order,
                None,
            )
            for place, each in enumerate(self.query.outputs)
        ]
        self.exchanges: dict[int, _LocalExchange] = {}
        self.written: dict[int, list[_Way]] = {}
        self.probes: dict[int, _Probe] = {}
        self.graph = self._graph()
        self.notes = [_note(each).to_json() for each in self.graph.stages]

    def _graph(self) -> Graph:
        between = ResultFormat(Checkpoint(self.root).between, "parquet")
        building = _LocalBuilding(_Session(), self.subqueries, self.deliveries, between)

        def way(feed: Feed, number: int | None) -> _Way:
            start = building.start(feed, number)
            tail = _tail(feed.outside, start)
            return _Way(feed, number, tail, start if tail is None else tail.schema)

        for stage in self.subqueries.stages:
            building.add(stage)
            runner = building.runners[-1]
            shipped = cloudpickle.loads(cloudpickle.dumps(runner.kernel))
            exits = runner.exits
            if stage.operator.why_last() is None:
                self.probes[stage.number] = _Probe(None, shipped.schema, None)
                exits = (*exits, self.probes[stage.number])
            runner = building.runners[-1] = replace(runner, kernel=shipped, exits=exits)
            if stage.host is None:
                ways = [
                    [way(*each) for each in zip(port.port, port.exits, strict=True)] for port in runner.inputs
                ]
                whole = any(each.host == stage.number for each in self.subqueries.stages)
                self.exchanges[stage.number] = _LocalExchange(shipped, runner.inputs, ways, whole=whole)
                building.runners[-1] = replace(runner, exchange=self.exchanges[stage.number])
        outlets = []
        for place in range(len(self.subqueries.outputs)):
            outlet = building.outlet(place)
            self.written[place] = [way(each.feed, each.exit) for each in outlet.written]
            exits = [*outlet.exits, *((_place(place), number) for number in range(len(outlet.written)))]
            outlets.append(QueryOutput(outlet.delivery, outlet.schema, tuple(exits), ()))
        return Graph(tuple(building.runners), tuple(outlets), building.handed, self.subqueries.setting)


_last: list[_Compiled] = []


def _compiled(query: Relation | Query, strategy: str) -> _Compiled:
    """The query compiled; the last one is kept, since a query is run in several ways one after another."""
    if not (_last and _last[0].given is query and _last[0].strategy == strategy):
        _last[:] = [_Compiled(query, strategy)]
    return _last[0]


@cache
def _folder() -> str:
    """Where the checkpoints of this process are."""
    found = tempfile.mkdtemp(prefix=f"local-{os.getpid()}-", dir=_MEMORY)
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


# -- a run ---------------------------------------------------------------------------------------------


class _LocalRun:
    """A query and its checkpoint; the manifest of the last epoch is all that it remembers."""

    _bounds = Epochs._bounds
    _port_bounds = Epochs._port_bounds

    def __init__(self, compiled: _Compiled, channels: int, seed: int, *, restless: bool) -> None:
        self.compiled, self.query, self.graph = compiled, compiled.query, compiled.graph
        self.restless = restless
        self.rng = np.random.default_rng(seed)
        self.exchanges = compiled.exchanges
        self.sinks = [memory() for _ in self.query.outputs]
        for each in self.exchanges.values():
            each.begin(self.rng)
        for each, sink in zip(compiled.deliveries, self.sinks, strict=True):
            each.sink = sink
        self.arrived: dict[str, list[_Arrived]] = {each.name: [] for each in self.query.streams}
        self.judged: dict[int, list[pa.Table]] = {}
        self.ran = self.rescaled = self.moved = self.partly_late = 0
        self.open(channels)

    def open(self, channels: int) -> None:
        """Begin from the files of the checkpoint, as a start of the product does."""
        compiled = self.compiled
        folder = Checkpoint(compiled.root, compiled.id)
        self.checkpoint = folder.claim(self.query.fingerprint(), repr(self.query), compiled.notes)
        self.last = self.checkpoint.latest()
        begins = Begins(None if self.last is None else self.last.epoch_id, hold=self.checkpoint.hold)
        for each in self.graph.outlets:
            each.delivery.prepare(each.schema, begins)
        stages, options = compiled.subqueries.stages, SimpleNamespace(resources=None, tolerances=(1.2,) * 3)
        self.rescaling = Rescaling(
            runners=self.graph.stages,
            routers=Routers(self.checkpoint.routers),
            partitioning=str(self.rng.choice(list(PARTITIONINGS))),
            resources=tuple(_resources(each, options) for each in stages),
            frequent={each.number: FrequentKeys() for each in stages},
            costs={each.number: LearntCosts() for each in stages},
            most_bytes=int(self.rng.choice([1, 1000, 10**9])),
        )
        self.works = RunSetup(
            arrivals=SimpleNamespace(streams=self.query.streams),
            graph=self.graph,
            checkpoint=self.checkpoint,
            rescaling=self.rescaling,
            late={},
            rejects={},
            missed={},
            judged={},
            merging="transparent",
            finished=None,
        )
        wanted = tuple(1 if is_single(each) else channels for each in stages)
        steady = SteadyTime(2**62, clock=lambda: 0.0)
        self.planner = Planner(self.graph, self.checkpoint, wanted, self.rescaling, time.time, steady)
        if self.last is not None:
            self._resume(self.last)
            self.planner.match(self.last)

    def _resume(self, last: Manifest) -> None:
        self.planner.resume(last)
        for number, record in enumerate(last.stages):
            self.rescaling.frequent[number].resume(record.keys)
        for number, plan in enumerate(last.plan.stages):
            self.rescaling.costs[number].resume(plan.costs, self.rescaling.routers)

    def reopen(self, channels: int) -> None:
        """End the run and begin it again from its files."""
        for each in self.graph.outlets:
            each.delivery.close()
        self.checkpoint.release()
        self.open(channels)

    # Epochs.

    def epoch(self, number: int, tables: Mapping[str, pa.Table]) -> None:
        """Run an epoch over the rows of each stream."""
        if self.restless and number:
            self._wish()
        self._happen(EpochId(number), tables)

    def end(self) -> None:
        """Everything has ended; at times sources promise so before, and then nothing is left to deliver."""
        last = self.last
        if last is None or all(each.newest is None for each in last.frontiers.values()):
            return
        # A row may have a partner among the last rows of the other side for as long as there may be others.
        waits = any(getattr(each.stage.operator, "last", None) is not None for each in self.graph.stages)
        promised = self.restless and not waits and self.rng.random() < 0.5
        if promised:
            self._happen(EpochId(last.epoch_id.epoch + 1), {}, least=_NEVER_MORE)
        held = [each.table().num_rows for each in self.sinks]
        assert self.last is not None
        self._happen(EpochId(self.last.epoch_id.epoch, drain=True), {})
        if promised:
            left = [each.table().num_rows for each in self.sinks]
            assert left == held, (
                f"after a promise of no more rows {held} rows were delivered, and then {left}"
            )

    def _happen(self, epoch_id: EpochId, tables: Mapping[str, pa.Table], *, least: int | None = None) -> None:
        plan = self.planner.plan(epoch_id, self.last, "")
        plan = replace(plan, stages=tuple(map(self._any_form, range(len(plan.stages)), plan.stages)))
        before = self.last or Manifest(epoch_id, plan)
        epoch, manifest = self._attempt(epoch_id, plan, before, tables, least)
        if self.restless and self.rng.random() < 0.2:
            epoch, manifest = self._attempt(epoch_id, plan, before, tables, least)
        self._check_frontiers(manifest, epoch.intake.arrivals, least)
        self.checkpoint.commit(manifest)
        self.last = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
        assert self.last == manifest, "a manifest is not what its file says"
        epoch.clean_up()
        self.checkpoint.collect(orphans=bool(self.rng.random() < 0.1))
        self.rescaling.settle(plan.stages)
        self.planner.ended()
        for name, each in epoch.intake.arrivals.items():
            self.arrived[name].append(each)
        for stage, rows in epoch.intake.judged:
            self.judged.setdefault(stage, []).append(rows)
        self.ran += 1
        self.rescaled += len(manifest.moved)
        self.moved += sum(each.rows for each in manifest.moved)
        self.partly_late += manifest.counts.partly_late

    def _check_frontiers(
        self, manifest: Manifest, arrivals: Mapping[str, _Arrived], least: int | None
    ) -> None:
        """A stream without a key promises nothing below its latest tuple minus the delay."""
        for stream in self.query.streams:
            if stream.key is None and least is None and stream.name in arrivals:
                every = [*self.arrived[stream.name], arrivals[stream.name]]
                latest = max(
                    (each.seen.latest for each in every if each.seen.latest is not None), default=None
                )
                promised = manifest.frontiers[stream.name].value
                assert promised == (None if latest is None else latest - stream.delay), stream

    def _attempt(
        self,
        epoch_id: EpochId,
        plan: Any,
        before: Manifest,
        tables: Mapping[str, pa.Table],
        least: int | None,
    ) -> tuple[_LocalEpoch, Manifest]:
        bounds = self._bounds(before)
        streams = {each.name: each for each in self.query.streams}
        arrivals = {
            name: _Arrived.of(streams[name], table, bounds.get(name), plan.now)
            for name, table in tables.items()
        }
        intake = _LocalInput(_Session(), arrivals, bounds, self.rescaling.routers)
        if least is not None:
            intake.notes = {name: SourceNote(least=least) for name in streams}
        intake.seen.update({name: each.seen for name, each in arrivals.items()})
        epoch = _LocalEpoch(self.works, epoch_id, plan, before, intake, Phases())
        epoch.written = self.compiled.written
        for number, each in self.compiled.probes.items():
            each.expect(before.stages[number].position.promise if before.stages else None)
        return epoch, epoch.run()

    # Any plan.

    def _wish(self) -> None:
        for runner in self.graph.stages:
            if runner.stage.host is not None:
                continue
            number, exchange = runner.number, runner.kernel.exchanges[0]
            if not is_single(runner.stage) and self.rng.random() < 0.5:
                hosts = bool(hosted_by(self.graph.stages, number))
                self.rescaling.ask(self.exchanges[number].wish(number, hosts=hosts))
            if runner.may_rebatch and self.rng.random() < 0.5:
                self.rescaling.offer(Rebatch(number, int(self.rng.integers(1, 6)), "any"))
            if exchange.groupings and self.rng.random() < 0.5:
                self.rescaling.offer(Regroup(number, str(self.rng.choice(exchange.groupings)), "any"))

    def _any_form(self, number: int, plan: StagePlan) -> StagePlan:
        runner = self.graph.stages[number]
        if runner.stage.host is not None:
            return plan
        forms = self.exchanges[number].forms
        if self.restless:
            return replace(plan, form=str(self.rng.choice(forms)))
        return plan if plan.form in forms else replace(plan, form=forms[0])

    # What it gave.

    def result(self, given: Given, *, whole: bool) -> LocalResult:
        """What all epochs gave, and what became of the given rows."""
        tables = [
            sink.table() if sink.table().num_columns else outlet.schema.empty_table()
            for sink, outlet in zip(self.sinks, self.graph.outlets, strict=True)
        ]
        parts: dict[str, dict[str, list[Any]]] = {"accepted": {}, "late": {}, "rejected": {}}
        for name, arrived in self.arrived.items():
            batches = [list(each) for each in given.get(name, ())]
            if whole:
                batches = [[row for each in batches for row in each]]
            for kind, held in parts.items():
                held[name] = [
                    row
                    for batch, each in zip(batches, arrived, strict=True)
                    for row, mine in zip(batch, _mask(each, kind), strict=True)
                    if mine
                ]
        judged = {stage: pa.concat_tables(rows) for stage, rows in self.judged.items()}
        return LocalResult(
            tables,
            **parts,
            judged=judged,
            partly_late=self.partly_late,
            epochs=self.ran,
            rescaled=self.rescaled,
            moved=self.moved,
        )


def _mask(arrived: _Arrived, kind: str) -> Any:
    if kind == "rejected":
        return ~arrived.fits
    return arrived.late if kind == "late" else arrived.fits & ~arrived.late
