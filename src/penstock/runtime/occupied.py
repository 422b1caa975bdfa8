"""How long a thread has occupied its place: wall time without that in which it waited for a processor.

On a busy machine wall time grows with what others do. This clock does not: it counts what the thread computed
and what it waited for by itself, such as a network. Linux tells the difference; elsewhere it is wall time.
"""

import os
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

__all__ = ["Occupied"]

_TOLD = "/proc/thread-self/schedstat"
_NANO = 1e9


class Occupied:
    """The clock of the thread that makes it, in seconds; close it after use.

    >>> with Occupied() as clock:
    ...     clock() <= clock()
    True
    """

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(_TOLD, os.O_RDONLY)

    def __call__(self) -> float:
        """The present time; only differences mean something."""
        return time.perf_counter() - self._waited()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)

    def _waited(self) -> float:
        """Seconds in which the thread could have run and had no processor."""
        if self._file is None:
            return 0.0
        # Nanoseconds on a processor, nanoseconds in its queue, time slices.
        return int(os.pread(self._file, 128, 0).split()[1]) / _NANO
