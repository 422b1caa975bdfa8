"""Readies a Python worker of Spark: it does not walk its whole heap after every task, nor warn without need.

A worker that is used again collects garbage after each task. It looks at every object of every module that
is loaded, about 140,000 of them: 50 ms of processor time, for a task that may take five. Objects that are
frozen are left out of that. When a task begins, the collection after the one before it has just been made,
so that nothing is garbage and freezing keeps none alive.

What a later task loads is frozen then too; but only a few times, since what is frozen and becomes garbage in
a cycle stays in memory for good. In a session of Penstock's own, workers are forked with nearly all of it
frozen (`daemon.py`); in one that a user brings, this does the same.

Memory that a task frees is kept for the next batch, up to a bound. By default the C library gives every
array of 128 kB or more back to the system, and Arrow's allocator soon does the same; to get it again costs a
fault for each page, which was a third of the processor time of a task that reads.

Rows that come over Flight lie where the message has them, at any multiple of 8 bytes. Arrow warns of that for
processors that cannot read such numbers; those that it is built for can.
"""

import ctypes
import gc
import os
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

__all__ = ["freeze_worker"]

_AT: Final = (2, 4, 16)
"""Before which tasks of a worker it is done: the first one still loads modules."""

_KEPT: Final = 256 * 2**20
"""Free bytes that a worker keeps."""
_LARGEST: Final = 32 * 2**20
"""Larger arrays are given back at once; it is the most that the C library takes for this setting."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of settings in malloc.h

_tasks = 0


def freeze_worker() -> None:
    """Call this when a task begins; on the driver it does nothing."""
    global _tasks  # noqa: PLW0603 -- a worker has one heap
    if TaskContext.get() is None:
        return
    _tasks += 1
    os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")
    if _tasks == 1:
        _keep_memory()
    if _tasks in _AT:
        gc.freeze()


def _keep_memory() -> None:
    """Let arrays of numpy and Arrow share a heap that keeps what is freed, where the C library is GNU's."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _KEPT):
        pa.set_memory_pool(pa.system_memory_pool())
