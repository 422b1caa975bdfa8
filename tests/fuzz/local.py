"""A whole query without Spark: the product's own graph, planner, epochs, tasks and records in one process.

Three things stand in for Spark: the certified translation tells types in place of its analyzer, DuckDB makes
rows of arrays, and the tasks of a job run here one after another. Now and then a run dies before its epoch
counts, and the next one replays it.
"""

import atexit
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import cloudpickle

from distribution.drawing import any_requests
from fuzz.local_explode import exploding
from fuzz.local_jobs import Jobs, any_sizes
from fuzz.local_rows import Given, Reader, Rows
from fuzz.local_types import NeedsSpark, Typed
from penstock.compile import cut, is_single, optimise
from penstock.connect import ResultFormat, SourceContext, memory
from penstock.control.rescale import Rescale
from penstock.functions import SqlSetting
from penstock.operators.exchange import TIME
from penstock.query import Query, Relation, RunOptions, Stream
from penstock.query.run_options import DEALINGS
from penstock.routing import PARTITIONINGS
from penstock.runtime import engine
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.dataflow.ways import ToStage, Way
from penstock.runtime.delivering import OpenSink
from penstock.runtime.graph import build
from penstock.runtime.records import Manifest
from penstock.state import Location
from scratch import MEMORY

__all__ = ["Given", "LocalResult", "NeedsSpark", "run_local"]

MOST_CHANNELS = 4
_ENDS = 0.5
"""The share of epochs after which a run that is resumed ends."""


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
    zone: str = "UTC",
    on_error: str = "fail",
) -> LocalResult:
    """Run a query over rows, epoch after epoch, and drain it.

    The streams of the query need no source: rows come from `epochs`; a stream without an entry has none. The
    i-th list of each stream is its part of epoch i. With `whole` all rows come in one epoch. With `rescale`,
    before an epoch and at random from `seed`, state moves to any layout of any number of channels, rows are
    sent in any form by any number of tasks, tasks run twice, and epochs are replayed by a run that begins
    again. With `resume` the run ends after some epochs and before the drain, and begins again from the files
    of its checkpoint, at another number of channels. The order in which rows reach a channel is always
    random. `zone` is the session's time zone, `on_error` as in `Query.start`.

    What the product refuses is raised as it raises it: an error of `penstock.errors` when the query is
    compiled, RunError where a value cannot be evaluated. What only Spark can evaluate raises NeedsSpark.
    """
    compiled = _compiled(query, strategy, zone)
    given = Rows.of(compiled.query.streams, epochs, whole=whole)
    try:
        run = _LocalRun(compiled, given, channels, seed, restless=rescale, on_error=on_error)
        for number in range(given.epochs):
            if resume and number and run.rng.random() < _ENDS:
                run.begin(int(run.rng.integers(1, MOST_CHANNELS + 1)))
            run.epoch()
        if resume:
            run.begin(int(run.rng.integers(1, MOST_CHANNELS + 1)))
        run.end()
        return run.result()
    finally:
        shutil.rmtree(compiled.root.path, ignore_errors=True)


# -- a query -------------------------------------------------------------------------------------------


class _Probe(Way):
    """Looks at every result of a stage: none may be earlier than was promised before the epoch."""

    def chosen(self, table: pa.Table) -> pa.Table:
        """No rows; results take the other ways."""
        promise = getattr(self, "promise", None)
        if promise is not None:
            earliest = pc.min(table[TIME]).as_py()
            assert earliest >= promise, f"a result of {earliest} after a promise of {promise}"
        return table.slice(0, 0)

    def expect(self, promise: int | None) -> None:
        """What was promised before the next epoch."""
        object.__setattr__(self, "promise", promise)


class _Compiled:
    """A query ready to run, any number of times, one after another: nothing in it changes but its sinks."""

    def __init__(self, given: Relation | Query, strategy: str, zone: str) -> None:
        self.given, self.strategy, self.zone = given, strategy, zone
        self.query = optimise(given if isinstance(given, Query) else Query((given,))).query
        self.subqueries = cut(self.query, strategy, SqlSetting(zone=zone))
        self.root = Location.of(f"{_folder()}/{uuid4().hex}")
        self.checkpoint = _Mortal(self.root, "local")
        self.deliveries = [
            OpenSink(
                memory(), f"local-{place}", str(place), self.root / "results" / str(place), each.order, None
            )
            for place, each in enumerate(self.query.outputs)
        ]
        between = ResultFormat(self.checkpoint.between, "parquet")
        graph = build(Typed.after, self.subqueries, self.deliveries, between, self.checkpoint.routers)
        for way in graph.spark_ways:
            columns = [] if way.exchange is None else [each.sql for each in way.exchange.columns]
            raise NeedsSpark("; ".join([*map(str, way.steps), *columns]))
        self.notes = [engine._note(each).to_json() for each in graph.stages]
        shipped = cloudpickle.loads(cloudpickle.dumps(graph.compiled))
        self.probes = {
            each.number: _Probe(None, None, ToStage())
            for each in graph.stages
            if each.stage.operator.why_last() is None
        }
        ways = {number: (*shipped.ways.get(number, ()), probe) for number, probe in self.probes.items()}
        self.graph = replace(graph, compiled=replace(shipped, ways={**shipped.ways, **ways}))


_last: list[_Compiled] = []


def _compiled(query: Relation | Query, strategy: str, zone: str) -> _Compiled:
    """The query compiled; the last one is kept, since a query is run in several ways one after another."""
    if not (_last and _last[0].given is query and (_last[0].strategy, _last[0].zone) == (strategy, zone)):
        with exploding():
            _last[:] = [_Compiled(query, strategy, zone)]
    return _last[0]


@cache
def _folder() -> str:
    """Where the checkpoints of this process are."""
    found = tempfile.mkdtemp(prefix=f"local-{os.getpid()}-", dir=MEMORY)
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


class _Died(BaseException):
    """A run ends without a word before its epoch counts."""


class _Mortal(Checkpoint):
    """A checkpoint whose run may die when an epoch is done and has not happened yet."""

    dies: Callable[[], bool] = staticmethod(bool)

    def commit(self, manifest: Manifest) -> None:
        """As always, unless the run dies; a manifest is what its file says."""
        assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest
        if _Mortal.dies():
            raise _Died
        super().commit(manifest)


# -- a run ---------------------------------------------------------------------------------------------


class _LocalRun:
    """A query and its checkpoint; what the checkpoint holds is all that it remembers from epoch to epoch."""

    def __init__(
        self, compiled: _Compiled, rows: Rows, channels: int, seed: int, *, restless: bool, on_error: str
    ) -> None:
        self.on_error = on_error
        self.compiled, self.graph, self.rows, self.restless = compiled, compiled.graph, rows, restless
        self.streams = {each.name: each for each in compiled.query.streams}
        self.rng = np.random.default_rng(seed)
        self.sinks = [memory() for _ in compiled.query.outputs]
        for each, sink in zip(compiled.deliveries, self.sinks, strict=True):
            each.sink = sink
        self.fits: dict[str, list[Any]] = {name: [] for name in self.streams}
        self.latest: dict[str, int] = {}
        self.ran = self.rescaled = self.moved = 0
        self.checkpoint: Checkpoint | None = None
        self.begin(channels)

    def begin(self, channels: int) -> None:
        """Begin from the files of the checkpoint, as the engine does, when an earlier run has ended."""
        compiled, rng = self.compiled, self.rng
        if self.checkpoint is not None:
            for each in compiled.deliveries:
                each.close()
            self.checkpoint.release()
        self.checkpoint = compiled.checkpoint.claim(
            compiled.query.fingerprint(), repr(compiled.query), compiled.notes
        )
        hosts = sum(each.host is None for each in compiled.subqueries.stages)
        options = RunOptions(
            channels=max(1, channels * hosts),
            partitioning=str(rng.choice(list(PARTITIONINGS))),
            dealing=[None, *DEALINGS][rng.integers(len(DEALINGS) + 1)],
            most_moved=int(rng.choice([1, 1000, 10**9])),
            control="off",
            on_error=self.on_error,
        )
        claimed = engine.Claimed(compiled.query, compiled.subqueries, options, self.checkpoint, self.graph)
        with self.checkpoint.owned():
            self.epochs = claimed.epochs(
                engine._Nodes(int(rng.integers(1, 4)), live=False),
                self._opened,
                self._jobs,
                report=lambda _: None,
            )

    def _opened(self, stream: Stream, folder: Location) -> Reader:
        context = SourceContext(
            session=None, name=stream.name, schema=stream.schema, time=stream.time, folder=folder
        )
        source = self.rows.sources[stream.name]
        source.open(context)
        return Reader(source, context)

    def _jobs(self, compiled: Any) -> Jobs:
        return Jobs(compiled, self.rng, self.restless)

    # Epochs.

    def epoch(self) -> None:
        """The next epoch."""
        if self.restless and self.epochs.last is not None:
            self._wish()
        self._happen("next")

    def end(self) -> None:
        """Everything has ended; at times sources promise so before, and then nothing is left to deliver."""
        last = self.epochs.last
        if last is None or all(each.newest is None for each in last.frontiers.values()):
            return
        # A row may have a partner among the last rows of the other side for as long as there may be others.
        waits = any(getattr(each.stage.operator, "last", None) is not None for each in self.graph.stages)
        promised = self.restless and not waits and self.rng.random() < 0.5
        if promised:
            Reader.promises = True
            try:
                self._happen("next")
            finally:
                Reader.promises = False
        held = [each.table().num_rows for each in self.sinks]
        self._happen("drain")
        left = [each.table().num_rows for each in self.sinks]
        assert left == held or not promised, (
            f"after a promise of no more rows {held} rows were delivered, and then {left}"
        )

    def _happen(self, verb: str) -> None:
        """Run the next epoch, or the drain; if the run dies, another one begins and replays it."""
        before = self.epochs.last
        for number, probe in self.compiled.probes.items():
            probe.expect(None if before is None else self._promise(number, before))
        _Mortal.dies = staticmethod(lambda: self.restless and self.rng.random() < 0.15)
        while self.epochs.last == before:
            with any_sizes(self.rng) if self.restless else ExitStack():
                try:
                    assert getattr(self.epochs, verb)() is not False, "rows are left and none are read"
                except _Died:
                    self.begin(int(self.rng.integers(1, MOST_CHANNELS + 1)))
        assert self.epochs.last is not None
        self._look_at(self.epochs.last)

    def _promise(self, number: int, before: Manifest) -> int | None:
        """The event time below which a stage gives no more results.

        One that passes rows on gives what comes: all that is not too late for what follows it.
        """
        if self.graph.stages[number].stage.operator.passing:
            return self.epochs._port_bounds(before)[number, 0]
        return before.stages[number].position.promise

    def _look_at(self, manifest: Manifest) -> None:
        """What an epoch tells of itself is what follows from its rows."""
        self.ran += 1
        self.rescaled += len(manifest.moved)
        self.moved += sum(each.rows for each in manifest.moved)
        epoch = manifest.epoch_id.epoch
        reads = [] if manifest.epoch_id.drain else self.rows.read_in(epoch)
        unfit = 0
        for stream in reads:
            fits = self.rows.fits(stream, epoch, manifest.plan.now)
            self.fits[stream.name].append(fits)
            unfit += int((~fits).sum())
            times = [self.latest.get(stream.name), self.rows.latest(stream, epoch, fits)]
            known = [each for each in times if each is not None]
            self.latest |= {stream.name: max(known)} if known else {}
            if stream.key is None:
                # A stream without a key promises nothing below its latest tuple minus the delay.
                promised = manifest.frontiers[stream.name].value
                assert promised == (self.latest[stream.name] - stream.delay if known else None), stream
        rows = sum(len(self.rows.given[each.name][epoch]) for each in reads)
        assert manifest.counts.rows == rows, manifest.counts
        # Rows for which a function raises before any stage are among them.
        refused = manifest.counts.rejected - unfit
        assert refused == 0 or (refused > 0 and self.on_error == "set aside"), manifest.counts

    # Any plan.

    def _wish(self) -> None:
        requests = self.epochs.requests
        for number, steering in requests.steering.items():
            single, keys = is_single(self.graph.stages[number].stage), self._some_keys(steering)
            channels = int(self.rng.integers(1, MOST_CHANNELS + 1))
            for wish in any_requests(self.rng, steering, number, keys, channels, single=single):
                if isinstance(wish, Rescale):
                    requests.ask(wish)
                else:
                    requests.offer(wish)

    def _some_keys(self, steering: Any) -> Any:
        """Some of the keys that the run knows, by their hashes."""
        if not hasattr(steering, "frequent"):
            return np.zeros(0, np.uint64)
        known = steering.frequent.known().hashes
        return np.unique(self.rng.choice(known, 3)) if len(known) else known

    # What it gave.

    def result(self) -> LocalResult:
        """What all epochs gave, and what became of the given rows."""
        tables = [
            sink.table() if sink.table().num_columns else outlet.schema.empty_table()
            for sink, outlet in zip(self.sinks, self.graph.outlets, strict=True)
        ]
        parts: dict[str, dict[str, list[Any]]] = {
            kind: {name: [] for name in self.streams} for kind in ("accepted", "late", "rejected")
        }
        for stream in self.rows.streams:
            late = _by_epoch(self.epochs.works.late[stream.name].folder)
            for epoch, fits in enumerate(self.fits[stream.name]):
                values = self.rows.sources[stream.name].batches[epoch].to_pylist()
                missing = Counter(map(repr, late.pop(epoch, pa.table({})).to_pylist()))
                for row, value, fit in zip(self.rows.given[stream.name][epoch], values, fits, strict=True):
                    kind = "rejected" if not fit else "late" if missing[repr(value)] else "accepted"
                    missing[repr(value)] -= kind == "late"
                    parts[kind][stream.name].append(row)
                assert not +missing, f"these rows are late and were never given: {+missing}"
            assert not late, "rows are late in epochs that had none"
        judged = {number: _by_epoch(files.folder) for number, files in self.epochs.works.judged.items()}
        last = self.epochs.last
        return LocalResult(
            tables,
            **parts,
            judged={stage: pa.concat_tables(each.values()) for stage, each in judged.items() if each},
            partly_late=0 if last is None else last.total.partly_late,
            epochs=self.ran,
            rescaled=self.rescaled,
            moved=self.moved,
        )


def _by_epoch(folder: Location) -> dict[int, pa.Table]:
    """The rows that were set aside in a folder, by epoch."""
    found: dict[int, list[pa.Table]] = {}
    for name in sorted(each for each in folder.names() if each.endswith(".parquet")):
        with folder.input(name) as file:
            found.setdefault(int(name.split("-")[0]), []).append(pq.ParquetFile(file).read())
    return {epoch: pa.concat_tables(tables) for epoch, tables in found.items()}
