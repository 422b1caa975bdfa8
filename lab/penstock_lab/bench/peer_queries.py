"""The queries that `penstock bench peers` runs in every engine, streaming and batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock_lab.bench import engines, filter_engines, join_engines, results
from penstock_lab.bench.batch_engines import (
    duckdb_filter,
    duckdb_join,
    duckdb_windows,
    polars_filter,
    polars_windows,
)
from penstock_lab.bench.engines import WindowSpan
from penstock_lab.bench.results import Delivered

__all__ = ["BATCH", "STREAMING", "FilterQuery", "JoinQuery", "PeerJob", "PeerQuery", "WindowQuery"]

STREAMING = ("penstock", "spark", "spark-tuned")
BATCH = ("duckdb", "polars")

Peer = TypeVar("Peer")


@dataclass(frozen=True)
class PeerJob:
    """One run of a streaming engine: a folder for each stream, where to write, files of a stream an epoch."""

    sources: tuple[Path, ...]
    place: Path
    files_per_epoch: int

    @property
    def output(self) -> Path:
        """Where the results go."""
        return self.place / "out"


class PeerQuery(ABC):
    """One query, said in every engine."""

    @abstractmethod
    def run(self, engine: str, spark: SparkSession, job: PeerJob) -> None:
        """Run a job to its end in one of the `STREAMING` engines."""

    @abstractmethod
    def batch(self, engine: str, sources: tuple[Path, ...], output: Path) -> Callable[[], None]:
        """The same in one of the `BATCH` engines, as work that another process can do."""

    @abstractmethod
    def delivered(self, output: Path, settled_us: int | None) -> Delivered:
        """What was delivered; only what Spark delivers by a moment of event time if that is given."""


@dataclass(frozen=True)
class FilterQuery(PeerQuery):
    """Half of the rows, and a computed column."""

    def run(self, engine: str, spark: SparkSession, job: PeerJob) -> None:
        """A job over one stream."""
        peers = (filter_engines.PENSTOCK, filter_engines.SPARK, filter_engines.SPARK_TUNED)
        (source,) = job.sources
        _of(engine, peers).run(spark, filter_engines.FilterJob(source, job.place, job.files_per_epoch))

    def batch(self, engine: str, sources: tuple[Path, ...], output: Path) -> Callable[[], None]:
        """The same expressions, which all engines understand."""
        (source,) = sources
        make = {"duckdb": duckdb_filter, "polars": polars_filter}[engine]
        return make(source, output, filter_engines.KEPT, filter_engines.SCALED)

    def delivered(self, output: Path, settled_us: int | None) -> Delivered:  # noqa: ARG002 -- none waits
        """All rows."""
        return results.projected_delivered(output)


@dataclass(frozen=True)
class WindowQuery(PeerQuery):
    """Count, mean and maximum for each window and key."""

    span: WindowSpan

    def run(self, engine: str, spark: SparkSession, job: PeerJob) -> None:
        """A job over one stream."""
        peers = (engines.PENSTOCK, engines.SPARK_WINDOW, engines.SPARK_TUNED)
        _of(engine, peers).run(spark, self.job(job))

    def job(self, job: PeerJob) -> engines.Job:
        """The job as the engines of windows know it."""
        (source,) = job.sources
        return engines.Job(source, job.output, job.place / "state", self.span, job.files_per_epoch)

    def batch(self, engine: str, sources: tuple[Path, ...], output: Path) -> Callable[[], None]:
        """All windows, also those that are open at the end of the input."""
        (source,) = sources
        make = {"duckdb": duckdb_windows, "polars": polars_windows}[engine]
        return make(source, output, self.span.size, self.span.slide)

    def delivered(self, output: Path, settled_us: int | None) -> Delivered:
        """All windows, or those that end by then."""
        return results.delivered(output, settled_us)


@dataclass(frozen=True)
class JoinQuery(PeerQuery):
    """Pairs of calls of one phone in two networks within a time."""

    within_s: int

    def run(self, engine: str, spark: SparkSession, job: PeerJob) -> None:
        """A job over two streams."""
        peers = (join_engines.PENSTOCK, join_engines.SPARK, join_engines.SPARK_TUNED)
        north, south = job.sources
        whole = join_engines.JoinJob(north, south, job.place, "inner", job.files_per_epoch, self.within_s)
        _of(engine, peers).run(spark, whole)

    def batch(self, engine: str, sources: tuple[Path, ...], output: Path) -> Callable[[], None]:
        """A hash join by phone, with the time as a further condition."""
        assert engine == "duckdb", (
            "Polars joins by a range of times only as a filter behind all pairs of keys"
        )
        north, south = sources
        return duckdb_join(north, south, output, "inner", self.within_s, join_engines.METRES_APART)

    def delivered(self, output: Path, settled_us: int | None) -> Delivered:  # noqa: ARG002 -- no pair waits
        """All pairs."""
        return results.pairs_delivered(output, None)


def _of(engine: str, peers: tuple[Peer, ...]) -> Peer:
    return dict(zip(STREAMING, peers, strict=True))[engine]
