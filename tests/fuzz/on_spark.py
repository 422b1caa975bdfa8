"""A whole query on Spark, with the interface of `local`: any channels, rescales, a stop and a resume."""

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock as ps
from fuzz.local import MOST_CHANNELS, Given, LocalResult
from penstock.connect.sources.rows import rows as given_rows
from penstock.distribution.distribution import Change
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.query import Derived, Query, Relation, Stream, derived
from penstock.routing import PARTITIONINGS
from scratch import MEMORY
from sessions import interpret, quick_session

__all__ = ["each_on_spark", "fast_session", "run_on_spark"]

T = TypeVar("T")
U = TypeVar("U")


def fast_session() -> SparkSession:
    """A session on a JVM that compiles little; it generates no code."""
    return interpret(quick_session("local[2]"))


def each_on_spark(function: Callable[[T], U], given: Iterable[T], *, threads: int = 3) -> Iterator[U]:
    """The function of each, several at once: a small epoch waits more than it computes."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, given)


def run_on_spark(
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
    session: SparkSession | None = None,
) -> LocalResult:
    """Run a query over rows until its sources end; arguments and result are those of `run_local`.

    With `rescale` a policy asks for other channels after epochs, at random from `seed`. With `resume` the run
    is stopped after its first epoch and started again, at another number of channels.
    """
    read = _Read.of(query if isinstance(query, Query) else Query((query,)), epochs, whole=whole)
    sinks = [ps.memory() for _ in read.query.outputs]
    rng, asks = Random(f"{seed} on spark"), _Asks(seed, restless=rescale)
    stages = sum(isinstance(each, Derived) and each.stateful for each in read.query.relations)
    folder = tempfile.mkdtemp(prefix="spark-", dir=MEMORY)
    # Two runs that start at once in one session would see each other's views.
    own = interpret((session or fast_session()).newSession())
    own.conf.set("spark.sql.session.timeZone", zone)
    try:
        moves: list[Any] = []
        for stop_after in [0, None] if resume else [None]:
            asks.stop_after = stop_after
            run = read.query.start(
                *sinks,
                checkpoint=folder,
                # A run shares its channels out to its stages.
                channels=max(1, channels * stages),
                session=own,
                strategy=strategy,
                control="off",
                on_error=on_error,
                policy=asks.after,
                most_moved=rng.choice([1, 1000, 10**9]),
                partitioning=rng.choice(list(PARTITIONINGS)),
            )
            asks.begin(run)
            run.wait(live=False)
            moves += run.decisions
            channels = rng.randint(1, MOST_CHANNELS)
        return read.result([each.table() for each in sinks], _Ended(Path(folder), read.query, run, moves))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Asks:
    """A policy that asks for any layout at random, and stops its run after an epoch."""

    seed: int
    restless: bool
    stop_after: int | None = None
    _run: Any = None
    _begun: threading.Event = field(default_factory=threading.Event)

    def begin(self, run: Any) -> None:
        """Of which run it is; the first epoch may have ended before."""
        self._run = run
        self._begun.set()

    def after(self, seen: ps.Observation) -> list[Any]:
        """What to ask for after an epoch."""
        if seen.epoch == self.stop_after:
            self._begun.wait()
            self._run._request_stop()
        chance = Random(f"{self.seed} {seen.epoch}")
        return (
            [wish for stage in seen.stages for wish in self._wishes(chance, stage)] if self.restless else []
        )

    def _wishes(self, chance: Random, stage: Any) -> list[Any]:
        found: list[Any] = []
        if stage.rescalable and chance.random() < 0.6:
            partitioning = chance.choice(list(PARTITIONINGS)) if stage.router else None
            found.append(ps.Rescale(stage.stage, chance.randint(1, MOST_CHANNELS), partitioning))
        if stage.splits and len(stage.known.hashes) and chance.random() < 0.5:
            keys = chance.sample(list(stage.known.hashes), min(2, len(stage.known.hashes)))
            split = SubKeyPlan(tuple(SplitKey(int(key), 0.5, chance.randint(2, 16)) for key in keys))
            found.append(Change(stage.stage, "sub-keys", chance.choice([split, None]), "any"))
        if stage.batched is not None and chance.random() < 0.5:
            found.append(Change(stage.stage, "batch", chance.randint(1, 5), "any"))
        return found


@dataclass(frozen=True)
class _Read:
    """A query whose streams have sources, and the rows that were given to each stream."""

    query: Query
    given: dict[str, list[list[Any]]]

    @classmethod
    def of(cls, query: Query, epochs: Given, *, whole: bool) -> "_Read":
        given: dict[str, list[list[Any]]] = {}
        made: dict[Relation, Relation] = {}

        def over(relation: Relation) -> Relation:
            if relation not in made and isinstance(relation, Stream):
                batches = [list(each) for each in epochs.get(relation.name, ())] or [[]]
                given[relation.name] = [[row for each in batches for row in each]] if whole else batches
                source = given_rows(given[relation.name]).conform(relation.name, relation.schema)
                made[relation] = replace(relation, source=source)
            elif relation not in made:
                assert isinstance(relation, Derived)
                made[relation] = derived(relation.operator, [over(each) for each in relation.inputs])
            return made[relation]

        return cls(Query(tuple(over(each) for each in query.outputs)), given)

    def result(self, tables: list[pa.Table], run: "_Ended") -> LocalResult:
        """What became of the given rows."""
        parts: dict[str, dict[str, list[Any]]] = {"accepted": {}, "late": {}, "rejected": {}}
        for stream in self.query.streams:
            name, columns = stream.name, stream.schema.columns
            rows = [row for batch in self.given[name] for row in batch]
            plain = [row for batch in stream.source.batches for row in batch.to_pylist()]
            late = Counter(map(repr, run.late(stream)))
            needed = [each.name for each in columns if each.name == stream.time or not each.nullable]
            for held in parts.values():
                held[name] = []
            for row, values in zip(rows, plain, strict=True):
                kind = "accepted"
                if any(values[each] is None for each in needed):
                    kind = "rejected"
                elif late[repr(values)]:
                    late[repr(values)] -= 1
                    kind = "late"
                parts[kind][name].append(row)
        return LocalResult(
            tables=tables,
            **parts,
            judged=run.judged(),
            partly_late=run.run.counts.partly_late,
            epochs=len(run.run.progress),
            rescaled=len(run.moves),
            moved=sum(each.rows for each in run.moves),
        )


@dataclass(frozen=True)
class _Ended:
    """A run that has ended: its checkpoint, and what it told."""

    folder: Path
    query: Query
    run: ps.Run
    moves: list[Any]

    def late(self, stream: Stream) -> list[dict[str, Any]]:
        """The rows of a stream that came too late."""
        own = self.folder / "late" / stream.name if len(self.query.streams) > 1 else self.folder / "late"
        return [row for table in _tables(own) for row in table.to_pylist()]

    def judged(self) -> dict[int, pa.Table]:
        """The rows that stages found to be too late, by stage."""
        folders = {each.name: _tables(each) for each in (self.folder / "late").glob("into-stage-*")}
        return {
            int(name.removeprefix("into-stage-")): pa.concat_tables(tables)
            for name, tables in folders.items()
            if tables
        }


def _tables(folder: Path) -> list[pa.Table]:
    """The Parquet files of a folder, without those of folders in it."""
    return [pq.read_table(each) for each in sorted(folder.glob("*.parquet")) if not each.name.startswith("_")]
