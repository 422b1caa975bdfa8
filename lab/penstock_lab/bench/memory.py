"""Peak resident memory and processor time of this process and everything it started."""

import threading
import time
from typing import Self

import psutil

__all__ = ["Usage", "used_cpu_s"]


def used_cpu_s() -> float:
    """Processor seconds of this process and those that it started, as far as they are still running."""
    found = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it ended between the listing and the reading
            continue
        found += times.user + times.system
    return found


class Usage:
    """A context manager that samples the process tree: the JVM and the Python workers are in it.

    Memory is the sum of resident sets, so pages that forked workers share count once for each. A process
    counts from its second sample on: between fork and exec a child of the JVM shows the whole heap as its
    own. Processor time is what each process used up to its last sample: one that lives for less than
    `interval` seconds is missed. A sample costs one scan of the process table, a few milliseconds, which do
    not count.
    """

    def __init__(self, interval: float = 0.1) -> None:
        self._interval = interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="usage", daemon=True)
        self._root = psutil.Process()
        self._before: dict[psutil.Process, float] = {}
        self._latest: dict[psutil.Process, float] = {}
        self._peak_bytes = 0
        self._sampling_s = 0.0

    @property
    def peak_mb(self) -> float:
        """The largest sum of resident sets seen, in MB."""
        return self._peak_bytes / 2**20

    @property
    def cpu_s(self) -> float:
        """User and system seconds that the tree used inside the `with` block."""
        used = sum(used - self._before.get(process, 0.0) for process, used in self._latest.items())
        return used - self._sampling_s

    def __enter__(self) -> Self:
        self._sample()
        # A process that started before the block counts from here; one that starts inside counts from zero.
        self._before = dict(self._latest)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._done.wait(self._interval):
            self._sample()
            self._sampling_s = time.thread_time()

    def _sample(self) -> None:
        resident = 0
        for process in (self._root, *self._root.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    if process in self._latest:
                        resident += process.memory_info().rss
            except psutil.Error:  # it ended between the listing and the reading
                continue
            # Of this process there is a finer figure than that of the process table, 10 ms.
            used = time.process_time() if process == self._root else times.user + times.system
            self._latest[process] = used
        self._peak_bytes = max(self._peak_bytes, resident)
