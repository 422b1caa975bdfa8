"""`penstock cluster`: a Spark cluster on this machine for trials, until SIGTERM or Ctrl-C."""

import signal
import threading
from typing import Annotated

import typer

__all__ = ["cluster"]


def cluster(
    *,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Workers, each with an address of its own.")
    ] = 1,
    cores: Annotated[int, typer.Option(min=1, max=256, help="Cores of each worker.")] = 4,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of the master; 0 picks a free one.")
    ] = 7077,
) -> None:
    """Start a Spark master and workers on this machine, to try how executors come and go.

    Example: penstock cluster --workers 2 --cores 2
    """
    from penstock.errors import RunError  # noqa: PLC0415 -- Spark is slow to import
    from penstock.runtime.spark.standalone import EXECUTOR_MB, LocalCluster  # noqa: PLC0415

    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    with LocalCluster(workers, cores, port) as started:
        typer.echo(
            f"{started.master}: {workers} worker{'s' if workers != 1 else ''}, {cores} cores "
            "each; Ctrl-C ends it\n\n"
            f'  builder = SparkSession.builder.master("{started.master}").config("spark.executor.cores", 1)\n'
            f'  session = builder.config("spark.executor.memory", "{EXECUTOR_MB}m").getOrCreate()\n'
            f"  run = query.start(sink, session=session, executors=(1, {workers * cores}))"
        )
        while not ending.wait(0.5):
            if started.failed():
                raise RunError("a process of the cluster has ended; look at the machine's memory")
