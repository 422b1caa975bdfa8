"""The handle of a running query."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError, RunError
from penstock.runtime.epochs import Epochs
from penstock.runtime.live import LiveLine
from penstock.runtime.observation import Decision, StageChannels
from penstock.runtime.progress import EpochProgress
from penstock.runtime.records import Counts
from penstock.runtime.rescaling import Rescale
from penstock.runtime.spark.failures import raised

__all__ = ["HISTORY", "Rescaled", "Run"]

HISTORY = 1000
"""How many epochs `Run.progress` remembers."""


class Run:
    """A query that runs in the background until it is stopped, fails, or its bounded source ends."""

    def __init__(self, bounded: bool) -> None:  # noqa: FBT001 - set once, by the engine
        self._bounded = bounded
        self._history: deque[EpochProgress] = deque(maxlen=HISTORY)
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._started = threading.Event()
        self._busy = threading.Lock()
        self._error: BaseException | None = None
        self._epochs: Epochs
        self._query: StreamingQuery
        self._supervisor: threading.Thread

    def begin(
        self, epochs: Epochs, start: Callable[[Callable[[DataFrame, int], None]], StreamingQuery]
    ) -> None:
        """Start the streaming query and the thread that sees it through."""
        self._epochs = epochs
        self._query = start(self._epoch)
        self._started.set()
        self._supervisor = threading.Thread(target=self._supervise, name="penstock-run", daemon=True)
        self._supervisor.start()

    @property
    def progress(self) -> list[EpochProgress]:
        """The last epochs, oldest first."""
        return list(self._history)

    @property
    def counts(self) -> Counts:
        """Tuples and results since the checkpoint was made."""
        return self._epochs.last.total if self._epochs.last else Counts()

    @property
    def costs(self) -> dict[int, float]:
        """Measured seconds of a channel for each tuple, by the number of the stage."""
        stages = self._epochs.last.stages if self._epochs.last else ()
        return {number: stage.seconds / stage.tuples for number, stage in enumerate(stages) if stage.tuples}

    @property
    def channels(self) -> tuple[StageChannels, ...]:
        """Rows, cost, state and keys of every channel in the last epoch, and how even they are."""
        return self._epochs.observed()

    @property
    def decisions(self) -> list[Decision]:
        """What was rescaled, why, and what moved, oldest first."""
        return list(self._epochs.decisions)

    def rescale(
        self, stage: int, channels: int, partitioning: str | None = None, *, reason: str = "asked for"
    ) -> "Rescaled":
        """Run a stage on so many channels from the next epoch on; what must move, and only that, moves then.

        With the number that it has, its router is made anew from the frequencies of keys. Returns at once;
        ``wait`` of what is returned waits until all state is where it belongs.
        """
        return Rescaled(self, self._epochs.rescaling.ask(Rescale(stage, channels, partitioning, reason)))

    @property
    def running(self) -> bool:
        """Whether there may be more epochs."""
        return not self._done.is_set()

    def report(self, progress: EpochProgress) -> None:
        """Remember an epoch."""
        self._history.append(progress)

    def wait(self, timeout: float | None = None, *, live: bool | None = None) -> bool:
        """Wait until the run has ended, and raise what it failed with; False if the timeout came first.

        A bounded source ends by itself and every open window is delivered. Ctrl-C and SIGTERM stop
        the run after the epoch under way. `live` shows a line of progress on the terminal; by
        default, when standard error is one.
        """
        with _StopOnSignal(self._request_stop), LiveLine(self, shown=live):
            ended = self._wait(timeout)
        if ended and self._error is not None:
            raise self._error
        return ended

    def stop(self) -> None:
        """Finish the epoch under way, leave a clean checkpoint, and return when all is still."""
        self._request_stop()
        self._done.wait()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self, timeout: float | None) -> bool:
        # A plain wait would keep signal handlers from running until it returns.
        waited = 0.0
        while not self._done.wait(0.1):
            waited += 0.1
            if timeout is not None and waited >= timeout:
                return False
        return True

    def _request_stop(self) -> None:
        self._stopping.set()

    def _epoch(self, frame: DataFrame, epoch: int) -> None:
        """Called by Spark for every micro-batch."""
        with self._busy:
            if self._stopping.is_set():
                # Returning would let Spark commit an epoch that did not run.
                raise _Stopping
            try:
                self._started.wait()  # Spark may offer the first epoch before start() has returned
                self._epochs.run(frame, epoch, self._query)
            except BaseException as error:
                self._error = error
                raise

    def _supervise(self) -> None:
        """See the streaming query to its end, then drain what a bounded source left open."""
        try:
            while not self._query.awaitTermination(0.1):  # type: ignore[arg-type]
                if self._stopping.is_set():
                    with self._busy:
                        pass  # the epoch under way has ended
                    # Not under the lock: Spark waits for an epoch that it has offered meanwhile.
                    self._query.stop()
            if self._bounded and not self._stopping.is_set():
                self._epochs.drain()
        except BaseException as error:  # noqa: BLE001 - it is raised again by wait() and stop()
            self._failed(error)
        finally:
            self._done.set()

    def _failed(self, error: BaseException) -> None:
        """Prefer what the epoch raised over Spark's wrapping of it."""
        cause = self._error or raised(error)
        if self._error is None and self._stopping.is_set():
            return
        if isinstance(cause, PenstockError):
            self._error = cause
        else:
            self._error = RunError(f"the run failed: {cause}")
            self._error.__cause__ = cause


class Rescaled:
    """A rescale that was asked for."""

    def __init__(self, run: Run, done: threading.Event) -> None:
        self._run = run
        self._done = done

    @property
    def done(self) -> bool:
        """Whether all state is where it belongs."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for that; False if the timeout or the end of the run came first."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(0.05):
            if not self._run.running or (until is not None and time.monotonic() >= until):
                return self.done
        return True


class _Stopping(Exception):  # noqa: N818 - it is no error
    """An epoch was offered after stop() was asked for."""


class _StopOnSignal:
    """SIGINT and SIGTERM ask for a stop while the main thread waits."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._stop()
