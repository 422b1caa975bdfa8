"""A standalone Spark cluster on this machine from the installed package: one master, one-core executors."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.runtime.spark.session import SETTINGS, spark_session
from penstock_lab.bench.waiting import free_port, listens, wait_until

__all__ = ["standalone_cluster"]

_JAVA = "spark.driver.extraJavaOptions"
_PATIENCE_S = 300
_EXECUTOR_MB = 512
# Spark reserves a tenth of an executor's memory, and at least this much, for what is not heap.
_OVERHEAD_MB = 384
# Many JVMs start at once on few cores, and user code runs in Python anyway.
_LEAN = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@contextmanager
def standalone_cluster(
    executors: int, *, workers: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on that many executors of one core each, all registered; ends the processes it started.

    Executors are shared evenly by the workers, each with an address of its own: Spark takes them for hosts.
    """
    if SparkSession.getActiveSession() is not None:
        raise RunError(
            "a Spark session runs in this process already; measure a cluster in a process of its own"
        )
    with ExitStack() as stack:
        port = free_port()
        master = f"spark://127.0.0.1:{port}"
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        _start(stack, "org.apache.spark.deploy.master.Master", *place, "--port", str(port))
        if not wait_until(lambda: listens(port), _PATIENCE_S):
            raise RunError(
                f"no Spark master listens on port {port} after {_PATIENCE_S} s; look at the machine's load"
            )
        cores = -(-executors // workers)
        share = ["--cores", str(cores), "--memory", f"{cores * (_EXECUTOR_MB + _OVERHEAD_MB)}m", master]
        for number in range(1, workers + 1):
            place = ["--host", f"127.0.0.{number}", "--webui-port", "0"]
            _start(stack, "org.apache.spark.deploy.worker.Worker", *place, *share)
        every = {
            "spark.executor.cores": "1",
            "spark.executor.memory": f"{_EXECUTOR_MB}m",
            "spark.driver.extraJavaOptions": f"{SETTINGS[_JAVA]} {_LEAN}",
            "spark.executor.extraJavaOptions": _lean(),
            "spark.cores.max": str(executors),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{_PATIENCE_S}s",
            # Any executor may take any channel: waiting for a nearer one only leaves cores idle.
            "spark.locality.wait": "0s",
            **(settings or {}),
        }
        session = spark_session(master, every)
        stack.callback(session.stop)
        _wait_until_there(session, executors)
        yield session


def _lean() -> str:
    """Options of masters, workers and executors: the driver's from the environment hold for them, too."""
    return f"{_LEAN} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()


def _start(stack: ExitStack, *command: str) -> None:
    home = Path(pyspark.__file__).parent
    path = os.pathsep.join(each for each in sys.path if each)
    process = subprocess.Popen(  # noqa: S603 -- Spark's own launcher
        [home / "bin" / "spark-class", *command],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_JAVA_OPTS": _lean(),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": path,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)


def _wait_until_there(session: SparkSession, executors: int) -> None:
    context = session.sparkContext._jsc.sc()  # noqa: SLF001 -- PySpark does not tell the executors
    # The driver is among them.
    if not wait_until(lambda: context.getExecutorMemoryStatus().size() - 1 >= executors, _PATIENCE_S):
        raise RunError(
            f"fewer than {executors} executors after {_PATIENCE_S} s; look at the machine's memory"
        )
