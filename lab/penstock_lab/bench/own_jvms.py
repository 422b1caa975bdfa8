"""A process and a JVM for each streaming engine, as somebody who runs one of them has.

In one JVM what one engine does shows in the figures of the other: tumbling windows of Penstock took 4.5
processor seconds there and 3.9 here. A session that is there already (a test, a notebook) is shared instead.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Self

from pyspark.sql import SparkSession

from penstock_lab.bench.cost import Cost
from penstock_lab.bench.session import measuring_session

__all__ = ["OwnJvms"]


class OwnJvms:
    """Runs what is measured in the process of its engine, which lives until the end of a `with` block."""

    def __init__(self, *, quick: bool = False) -> None:
        self._quick = quick
        self._shared = SparkSession.getActiveSession()
        self._processes: dict[str, ProcessPoolExecutor] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def cost(self, engine: str, work: Callable[[SparkSession], Cost]) -> Cost:
        """What some work took in the session of an engine."""
        if self._shared is not None:
            return work(self._shared)
        if engine not in self._processes:
            process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            self._processes[engine] = self._open.enter_context(process)
        return self._processes[engine].submit(_in_session, work, quick=self._quick).result()


def _in_session(work: Callable[[SparkSession], Cost], *, quick: bool) -> Cost:
    return work(measuring_session(quick=quick))
