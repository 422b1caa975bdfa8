"""Readies a Python worker of Spark: it does not walk its whole heap after every task, nor warn without need.

A worker that is used again collects garbage after each task. It looks at every object of every module that
is loaded, about 140,000 of them: 50 ms of processor time, for a task that may take five. Objects that are
frozen are left out of that. When a task begins, the collection after the one before it has just been made,
so that nothing is garbage and freezing keeps none alive.

What a later task loads is frozen then too; but only a few times, since what is frozen and becomes garbage in
a cycle stays in memory for good. In a session of Penstock's own, workers are forked with nearly all of it
frozen (`daemon.py`); in one that a user brings, this does the same.

Rows that come over Flight lie where the message has them, at any multiple of 8 bytes. Arrow warns of that for
processors that cannot read such numbers; those that it is built for can.
"""

import gc
import os
from typing import Final

from pyspark import TaskContext

__all__ = ["freeze_worker"]

_AT: Final = (2, 4, 16)
"""Before which tasks of a worker it is done: the first one still loads modules."""

_tasks = 0


def freeze_worker() -> None:
    """Call this when a task begins; on the driver it does nothing."""
    global _tasks  # noqa: PLW0603 -- a worker has one heap
    if TaskContext.get() is None:
        return
    _tasks += 1
    os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")
    if _tasks in _AT:
        gc.freeze()
