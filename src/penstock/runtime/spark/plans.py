# ruff: noqa: SLF001 -- this file is about PySpark's private parts
"""The places where Penstock needs more of Spark than its public API offers; four shape every run.

1. One compiled loop from the source to the partials. The frame that `foreachBatch` receives is an
   RDD of finished rows, so whatever an epoch does with it starts by reading them again.
   `planned_rows` starts from the physical plan behind that RDD instead: scan, prefix and combine
   become one generated function, and no row is ever built between them.
2. Only the columns that a query reads. The physical plan of 1 reads every column of its source. Where this is
   a columnar file, `planned_files` starts from the relation behind the scan instead, and Spark leaves out
   the rest.
3. A combine on the map side whose result goes to channels of our choice. Spark plans an aggregation
   as partial, exchange, final. That exchange offers no choice of where a key goes, so an
   aggregation followed by routing shuffles twice. `run_map_side` folds the two halves into one that
   makes no demand on its input. It aggregates within each partition, which is exactly a combine, and
   the only exchange left is ours.
4. Observing an epoch before its channels run. The frontier decides which windows close, and it is
   known when the map side has seen every row. `run_map_side` runs the Spark stages up to the exchange
   and returns the observed metrics; the channels then start from the shuffled rows.

All are plain calls on classes of Spark 4.3, and only this file makes them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import BadPath

__all__ = [
    "Observed",
    "Shuffled",
    "branches",
    "check_filesystem",
    "files_gone",
    "files_of",
    "files_taken",
    "from_plan",
    "observed_by",
    "planned_branches",
    "planned_files",
    "planned_rows",
    "run_map_side",
]

_COLUMNAR = ("Parquet", "ORC")

Observed = Mapping[str, tuple[int | None, ...]]
"""Integers by the name of the observation."""


@dataclass(frozen=True)
class Shuffled:
    """The rows behind an exchange, the observations on the way there, and how to release the rows."""

    rows: DataFrame
    observed: Observed
    session: SparkSession
    shuffle: int

    def release(self) -> None:
        """Delete the shuffle files now, not when the JVM happens to collect garbage."""
        cleaner = self.session.sparkContext._jsc.sc().cleaner()
        if cleaner.isDefined():
            cleaner.get().doCleanupShuffle(self.shuffle, False)


def planned_rows(frame: DataFrame, query: StreamingQuery) -> DataFrame:
    """The rows of the current epoch, as a plan that is compiled together with what is built on it.

    This is the frame itself if the user's DataFrame keeps state of its own: Spark has prepared that state
    for one execution, the frame's.
    """
    physical = _physical(query)
    return frame if physical is None else from_plan(frame, physical)


def planned_files(frame: DataFrame, query: StreamingQuery) -> list[tuple[Any, DataFrame]]:
    """The branches of the current epoch that read Parquet or ORC files, each with its rows.

    They are the rows of `planned_rows`, as a plan from which Spark drops columns that nobody reads. In text
    files these decide whether a record is malformed, so only columnar formats are here.
    """
    session = frame.sparkSession
    spark = _spark(session)
    found = []
    written = query._jsq.streamingQuery().lastExecution().analyzed()
    for branch in _flattened(written.children().head()):
        bounded = _bounded(spark, branch)
        if bounded is not None:
            rows = spark.dataset.ofRows(session._jsparkSession, bounded)
            found.append((branch, DataFrame(rows, session)))
    return found


def _flattened(logical: Any) -> list[Any]:
    """The branches of a union of unions."""
    if logical.getClass().getSimpleName() != "Union":
        return [logical]
    children = logical.children()
    return [each for place in range(children.size()) for each in _flattened(children.apply(place))]


def _bounded(spark: "_Spark", node: Any) -> Any:
    """Projections of the files of an epoch, which are no longer a stream; None if it is anything else."""
    kind = node.getClass().getSimpleName()
    if kind == "LogicalRelation":
        relation = node.relation()
        files = relation.getClass().getSimpleName() == "HadoopFsRelation"
        if not files or relation.fileFormat().toString() not in _COLUMNAR:
            return None
        return node.copy(relation, node.output(), node.catalogTable(), False, spark.none)
    if kind != "Project":
        return None
    child = _bounded(spark, node.child())
    return None if child is None else node.withNewChildren(spark.sequences.toSeq([child]))


def branches(query: StreamingQuery) -> list[Any] | None:
    """The plans of the branches of a union in the current epoch, None if they are not available."""
    physical = _physical(query)
    return None if physical is None else _branches(physical)


def planned_branches(query: StreamingQuery) -> list[Any]:
    """The plans of the branches, also if they cannot be run: for what they say about the epoch."""
    return _branches(query._jsq.streamingQuery().lastExecution().sparkPlan())


def files_of(physical: Any) -> list[str]:
    """The URIs of the files that a plan reads."""
    scans = _file_scans(physical)
    # Spark lists a file twice if another one has a name with an escaped character, such as %20.
    return list(dict.fromkeys(file for each in scans for file in each.relation().location().inputFiles()))


def files_taken(physical: Any) -> tuple[int, int]:
    """The number of files that a plan reads, and their bytes."""
    places = [scan.relation().location() for scan in _file_scans(physical)]
    return sum(len(each.inputFiles()) for each in places), sum(each.sizeInBytes() for each in places)


def files_gone(physical: Any) -> list[str]:
    """The files of a stream that Spark planned to read and did not find, which it leaves out in silence."""
    gone: set[str] = set()
    for scan in _file_scans(physical):
        place = scan.relation().location()
        # The paths of a stream are its files of this epoch; those of other relations may be folders.
        if scan.stream().isDefined() and place.rootPaths().size() != place.allFiles().size():
            found = place.allFiles()
            known = {found.apply(number).getPath().toString() for number in range(found.size())}
            gone |= set(place.rootPaths().mkString("\n").splitlines()) - known
    return sorted(gone)


def _file_scans(physical: Any) -> list[Any]:
    leaves = physical.collectLeaves()
    scans = [leaves.apply(place) for place in range(leaves.size())]
    return [scan for scan in scans if scan.getClass().getSimpleName() == "FileSourceScanExec"]


def _branches(physical: Any) -> list[Any]:
    if not physical.getClass().getSimpleName().startswith("Union"):
        return [physical]
    children = physical.children()
    return [children.apply(place) for place in range(children.size())]


def from_plan(frame: DataFrame, physical: Any) -> DataFrame:
    """The rows of a physical plan of the epoch that `frame` belongs to."""
    session = frame.sparkSession
    spark = _spark(session)
    # A stand-in for the logical side, which the planner asks only for its columns.
    logical = spark.local_relation(physical.output(), spark.nil, False, spark.none)
    leaf = spark.query_stage(logical, physical)
    return DataFrame(spark.dataset.ofRows(session._jsparkSession, leaf), session)


def _physical(query: StreamingQuery) -> Any:
    """The physical plan of the current epoch; None if it keeps state of its own."""
    execution = query._jsq.streamingQuery().lastExecution()
    return None if execution.numStateStores() else execution.sparkPlan()


def run_map_side(frame: DataFrame, metrics: Iterable[str], *, combining: bool) -> Shuffled | None:
    """Run everything up to the frame's last exchange, and return the integers observed on the way.

    `metrics` name observations of one struct each. With `combining`, the last aggregation before the
    exchange happens within each partition. The result is None if there is nothing to run: with some
    sources an empty epoch has no partitions at all.
    """
    session = frame.sparkSession
    spark = _spark(session)
    # Plan nodes take the session from the thread that makes them, and the draining thread has none.
    spark.sessions.setActiveSession(session._jsparkSession)
    planned = frame._jdf.queryExecution().sparkPlan()
    if combining:
        planned = _in_place(spark, spark.whole_aggregation.apply(planned))
    exchange = spark.preparing.prepareExecutedPlan(session._jsparkSession, planned)
    dependency = exchange.shuffleDependency()
    if not dependency.rdd().getNumPartitions():
        return None
    context = session.sparkContext._jsc.sc()
    context.submitMapStage(dependency).get()
    observed = _observed(spark.collecting.collect(exchange), metrics)
    created = session._jsparkSession.internalCreateDataFrame(exchange.execute(), exchange.schema(), False)
    return Shuffled(DataFrame(created, session), observed, session, dependency.shuffleId())


def observed_by(frame: DataFrame, metrics: Iterable[str]) -> Observed:
    """The integers that a collected frame observed."""
    return _observed(frame._jdf.queryExecution().observedMetrics(), metrics)


def _observed(collected: Any, metrics: Iterable[str]) -> Observed:
    """The observations; Spark leaves out those behind a condition that it proves to be never true."""
    return {
        name: _numbers(collected.apply(name).getStruct(0).mkString(","))
        for name in metrics
        if collected.contains(name)
    }


def _numbers(observed: str) -> tuple[int | None, ...]:
    return tuple(None if value == "null" else int(value) for value in observed.split(","))


def _in_place(spark: "_Spark", node: Any) -> Any:
    """The physical plan, with its topmost aggregation freed of its required partitioning.

    The plan has no aggregation if Spark has found out that there are no rows.
    """
    if node.children().isEmpty():
        return node
    child = node.children().head()
    if node.getClass().getSimpleName().endswith("AggregateExec"):
        return node.copy(
            spark.none,
            node.isStreaming(),
            node.numShufflePartitions(),
            node.groupingExpressions(),
            node.aggregateExpressions(),
            node.aggregateAttributes(),
            node.initialInputBufferOffset(),
            node.resultExpressions(),
            child,
        )
    return node.withNewChildren(spark.sequences.toSeq([_in_place(spark, child)]))


@dataclass(frozen=True)
class _Spark:
    """Classes and singletons of the JVM; a lookup takes one call for every part of the name."""

    none: Any
    nil: Any
    dataset: Any
    preparing: Any
    collecting: Any
    whole_aggregation: Any
    sequences: Any
    sessions: Any
    local_relation: Any
    query_stage: Any


def _spark(session: SparkSession) -> _Spark:
    return _found(session._jvm)


@lru_cache(maxsize=1)
def _found(jvm: Any) -> _Spark:
    sql = jvm.org.apache.spark.sql
    return _Spark(
        none=_singleton(jvm, "scala.None$"),
        nil=_singleton(jvm, "scala.collection.immutable.Nil$"),
        dataset=_singleton(jvm, "org.apache.spark.sql.classic.Dataset$"),
        preparing=_singleton(jvm, "org.apache.spark.sql.execution.QueryExecution$"),
        collecting=_singleton(jvm, "org.apache.spark.sql.execution.CollectMetricsExec$"),
        whole_aggregation=_singleton(jvm, "org.apache.spark.sql.execution.CombineAdjacentAggregation$"),
        sequences=jvm.PythonUtils,
        sessions=jvm.SparkSession,
        local_relation=sql.catalyst.plans.logical.LocalRelation,
        query_stage=sql.execution.adaptive.LogicalQueryStage,
    )


def check_filesystem(session: SparkSession, uri: str) -> None:
    """Check that Spark itself has a file system for a place; Hadoop comes without those of object stores."""
    hadoop: Any = session._jvm.org.apache.hadoop  # type: ignore[union-attr]
    try:
        hadoop.fs.Path(uri).getFileSystem(session._jsc.hadoopConfiguration())
    except Py4JJavaError as error:
        version = hadoop.util.VersionInfo.getVersion()
        raise BadPath(
            f"Spark has no file system for {uri}: {str(error.java_exception).splitlines()[0]}; for S3 give a "
            f"session with spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}, or a local path"
        ) from error


def _singleton(jvm: Any, name: str) -> Any:
    return jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
