"""The process that Spark forks its Python workers from, with all that a worker imports in it already.

Spark's own daemon forks first, and each worker imports for itself: about a second of processor time before
its first row, and again for every worker that takes the place of a lost one. Two libraries start a thread
when they are imported: Arrow's allocator (jemalloc) and numpy's linear algebra (OpenBLAS). Both take care of
forks themselves, and nothing uses them before the fork.
"""

import gc
import sys
import traceback

import duckdb  # noqa: F401 -- here to be loaded, as those below
import pyspark.worker  # noqa: F401
from pyspark import daemon

import penstock.operators
import penstock.runtime.spark.entries  # noqa: F401

__all__: list[str] = []


class _Told:
    """Prints why a worker ended; one that only lost its driver has nothing to say."""

    @staticmethod
    def print_exc() -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = _Told  # type: ignore[assignment, attr-defined]
    # Workers share the memory of these objects as long as no collector of garbage writes to them.
    gc.freeze()
    daemon.manager()
