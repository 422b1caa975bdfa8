"""A standalone Spark cluster on this machine for trials: a master and workers, from the installed package."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyspark

from penstock.errors import RunError
from penstock.runtime.spark.session import PRELOADED

__all__ = ["EXECUTOR_MB", "OVERHEAD_MB", "LocalCluster", "executor_settings", "lean_java"]

EXECUTOR_MB = 512
"""The heap of an executor of one core."""

OVERHEAD_MB = 384
"""What Spark reserves beside the heap: a tenth of an executor's memory, and at least this much."""

_PATIENCE_S = 300
_PAUSE_S = 0.1
# Many JVMs start at once on few cores, and user code runs in Python anyway.
_LEAN = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass
class LocalCluster:
    """A master and workers with `cores` cores each, as a context manager that ends what it started.

    Each worker has an address of its own, so that Spark takes them for hosts. Port 0 picks a free one.
    """

    workers: int = 1
    cores: int = 4
    port: int = 0
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _processes: list["subprocess.Popen[bytes]"] = field(default_factory=list, init=False)

    @property
    def master(self) -> str:
        """The address for `SparkSession.builder.master`."""
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self._stack.close)
            self._begin()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def failed(self) -> bool:
        """Whether one of its processes has ended."""
        return any(each.poll() is not None for each in self._processes)

    def _begin(self) -> None:
        self.port = self.port or _free_port()
        if _listens(self.port):
            raise RunError(f"port {self.port} is taken; give another one, or 0 for any that is free")
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._start("org.apache.spark.deploy.master.Master", *place, "--port", str(self.port))
        if not _wait_until(lambda: self.failed() or _listens(self.port)) or self.failed():
            raise RunError(
                f"no Spark master listens on port {self.port}; look at the machine's load, and whether there "
                "is a Java"
            )
        memory = f"{self.cores * (EXECUTOR_MB + OVERHEAD_MB)}m"
        for number in range(1, self.workers + 1):
            place = ["--host", f"127.0.0.{number}", "--webui-port", "0"]
            share = ["--cores", str(self.cores), "--memory", memory, self.master]
            self._start("org.apache.spark.deploy.worker.Worker", *place, *share)

    def _start(self, *command: str) -> None:
        home = Path(pyspark.__file__).parent
        path = os.pathsep.join(each for each in sys.path if each)
        process = subprocess.Popen(  # noqa: S603 -- Spark's own launcher
            [home / "bin" / "spark-class", *command],
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_NO_DAEMONIZE": "1",
                "SPARK_DAEMON_JAVA_OPTS": lean_java(),
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": path,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)


def executor_settings(executors: int) -> dict[str, str]:
    """Settings of a session with at most so many executors of one core each."""
    return {
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.executor.extraJavaOptions": lean_java(),
        "spark.cores.max": str(executors),
        # Any executor may take any channel: waiting for a nearer one only leaves cores idle.
        "spark.locality.wait": "0s",
        **PRELOADED,
    }


def lean_java() -> str:
    """Options of masters, workers and executors: the driver's from the environment hold for them, too."""
    return f"{_LEAN} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()


def _wait_until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
