"""The two places where Penstock asks more of Spark than its public API offers.

1. A combine on the map side whose result goes to channels of our choice. Spark plans an
   aggregation as partial, exchange, final, and its exchange cannot be told where to send a key, so
   an aggregation followed by routing shuffles twice. `declare_grouped` lets the planner believe
   that equal keys are together already; it then aggregates within each partition, which is exactly
   a combine, and the one exchange left is ours.
2. Looking at an epoch before its channels run. The frontier decides which windows close, and it is
   known when the map side has seen every row. `run_map_side` runs the stages up to the exchange and
   returns the observed metrics; the channels then start from the shuffled rows.

Both are plain calls on classes of Spark 4.3, kept in this file alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

__all__ = ["Shuffled", "declare_grouped", "run_map_side"]


@dataclass(frozen=True)
class Shuffled:
    """The rows behind an exchange, what was observed on the way there, and how to let them go."""

    rows: DataFrame
    observed: tuple[Any, ...]
    session: SparkSession
    shuffle: int

    def release(self) -> None:
        """Delete the shuffle files now instead of when the JVM happens to collect garbage."""
        cleaner = self.session.sparkContext._jsc.sc().cleaner()  # noqa: SLF001
        if cleaner.isDefined():
            cleaner.get().doCleanupShuffle(self.shuffle, False)


def declare_grouped(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same rows, said to be partitioned by `keys`; an aggregation by them stays within partitions."""
    session = frame.sparkSession
    jvm = session._jvm  # noqa: SLF001
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    output = execution.analyzed().output()
    rows = execution.toRdd()
    by_name = {output.apply(place).name(): output.apply(place) for place in range(output.size())}
    wanted = session._jvm.PythonUtils.toSeq([by_name[key] for key in keys])  # type: ignore[union-attr]  # noqa: SLF001
    physical = jvm.org.apache.spark.sql.catalyst.plans.physical  # type: ignore[union-attr]
    partitioning = physical.HashPartitioning(wanted, rows.getNumPartitions())
    nothing = _object(jvm, "scala.None$")
    relation = jvm.org.apache.spark.sql.execution.LogicalRDD(  # type: ignore[union-attr]
        output,
        rows,
        partitioning,
        _object(jvm, "scala.collection.immutable.Nil$"),
        False,
        nothing,
        session._jsparkSession,  # noqa: SLF001
        nothing,
        nothing,
        False,
    )
    dataset = _object(jvm, "org.apache.spark.sql.classic.Dataset$")
    return DataFrame(dataset.ofRows(session._jsparkSession, relation), session)  # noqa: SLF001


def run_map_side(frame: DataFrame, metrics: str) -> Shuffled | None:
    """Run everything up to the frame's last exchange and give the metrics observed under a name.

    None when there is nothing to run: an empty epoch of some sources has no partitions at all.
    """
    session = frame.sparkSession
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    rows = execution.toRdd()
    dependency = _shuffle_of(rows)
    if not dependency.rdd().getNumPartitions():
        return None
    context = session.sparkContext._jsc.sc()  # noqa: SLF001
    context.submitMapStage(dependency).get()
    collector = _object(session._jvm, "org.apache.spark.sql.execution.CollectMetricsExec$")  # noqa: SLF001
    observed = collector.collect(execution.executedPlan()).apply(metrics)
    values = tuple(observed.get(place) for place in range(observed.size()))
    created = session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False)  # noqa: SLF001
    return Shuffled(DataFrame(created, session), values, session, dependency.shuffleId())


def _shuffle_of(rows: Any) -> Any:
    """The nearest shuffle behind an RDD; between them lie only narrow, one-to-one steps."""
    dependency = rows.dependencies().head()
    while dependency.getClass().getSimpleName() != "ShuffleDependency":
        dependency = dependency.rdd().dependencies().head()
    return dependency


def _object(jvm: Any, name: str) -> Any:
    """A Scala singleton."""
    return jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
