"""A standalone Spark cluster on this machine from the installed package: one master, one-core executors."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.runtime.spark.session import SETTINGS, spark_session
from penstock.runtime.spark.standalone import LocalCluster, executor_settings, lean_java
from penstock_lab.bench.quota import capped_python
from penstock_lab.bench.waiting import wait_until

__all__ = ["standalone_cluster"]

_JAVA = "spark.driver.extraJavaOptions"
_PATIENCE_S = 300


@contextmanager
def standalone_cluster(
    executors: int, *, workers: int = 1, settings: Mapping[str, str] | None = None, share: float = 1.0
) -> Iterator[SparkSession]:
    """A session on that many executors of one core each, all registered; ends the processes it started.

    Executors are shared evenly by the workers, each with an address of its own: Spark takes them for hosts.
    The Python of each executor has `share` of a core, so that several of them run at once on few cores.
    """
    if SparkSession.getActiveSession() is not None:
        raise RunError(
            "a Spark session runs in this process already; measure a cluster in a process of its own"
        )
    with ExitStack() as stack:
        if share < 1:
            stack.enter_context(capped_python(share))
        cluster = stack.enter_context(LocalCluster(workers, -(-executors // workers)))
        every = {
            **executor_settings(executors),
            _JAVA: f"{SETTINGS[_JAVA]} {lean_java()}",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{_PATIENCE_S}s",
            **(settings or {}),
        }
        session = spark_session(cluster.master, every)
        try:
            _wait_until_there(session, executors)
            yield session
        finally:
            session.stop()


def _wait_until_there(session: SparkSession, executors: int) -> None:
    context = session.sparkContext._jsc.sc()  # noqa: SLF001 -- PySpark does not tell the executors
    # The driver is among them.
    if not wait_until(lambda: context.getExecutorMemoryStatus().size() - 1 >= executors, _PATIENCE_S):
        raise RunError(
            f"fewer than {executors} executors after {_PATIENCE_S} s; look at the machine's memory"
        )
