"""The handle of a running query.

The logger `penstock.run` gets one line for each epoch and each decision (INFO), for what needs
attention (WARNING), and for a failure (ERROR).
"""

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from penstock.checks import flag, whole_number
from penstock.control.observation import StageChannels
from penstock.control.outcomes import Outcome
from penstock.control.rescale import Rescale
from penstock.control.ruling import Ruling
from penstock.errors import BadOption, RunError
from penstock.query import PartitioningName
from penstock.query.qos import most_disorder
from penstock.runtime.epochs import Epochs
from penstock.runtime.observation import Decision
from penstock.runtime.progress import EpochProgress, LiveLine, ResultLatency
from penstock.runtime.records import Counts
from penstock.runtime.results import ResultBuffer, ResultReaders, ResultStream
from penstock.runtime.spark.failures import raised

__all__ = ["HISTORY", "Rescaled", "Run"]

_log = logging.getLogger("penstock.run")

HISTORY = 1000
"""The number of epochs that `Run.progress` remembers."""

_LOOK_S = 0.05
"""How long a run waits until it asks again sources that had nothing new."""

MOST_WARNINGS = 100
"""The number of warnings that `Run.warnings` remembers."""


class Run:
    """A query that runs in the background until it is stopped, fails, or its bounded source ends."""

    def __init__(  # noqa: PLR0913 -- what a run is told of its query
        self,
        *,
        bounded: bool,
        close: Callable[[], None],
        name: str | None = None,
        outputs: int = 1,
        unkept: bool = False,
        disorder: float | None = None,
    ) -> None:
        self.readers = ResultReaders()
        self._outputs = outputs
        self._unkept = unkept
        self._wanted = disorder
        self._disorder: int | None = None
        self._bounded = bounded
        self._close = close
        self._name = name
        self._logged: Decision | None = None
        self._history: deque[EpochProgress] = deque(maxlen=HISTORY)
        self._warnings: deque[tuple[str, str | None]] = deque(maxlen=MOST_WARNINGS)
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._epochs: Epochs
        self._thread: threading.Thread

    def __repr__(self) -> str:
        state = "running" if self.running else "failed" if self._error is not None else "ended"
        epochs = f"epoch {self._history[-1].epoch:,}" if self._history else "no epoch yet"
        counts, warnings = self.counts, [each for each, stream in self._warnings if not self._came(stream)]
        return (
            f"Run {self._name or 'without a name'}: {state}, {epochs}, {counts.rows:,} tuples, "
            f"{counts.results:,} results, {counts.late:,} late, {counts.rejected:,} rejected"
            f"{f'; warning: {warnings[-1]}' if warnings else ''}"
        )

    def begin(self, epochs: Epochs) -> None:
        """Start the thread that runs one epoch after another."""
        self._epochs = epochs
        self._thread = threading.Thread(target=self._loop, name="penstock-run", daemon=True)
        self._thread.start()

    @property
    def progress(self) -> list[EpochProgress]:
        """The last epochs, oldest first."""
        return list(self._history)

    @property
    def warnings(self) -> list[str]:
        """What needs attention, such as rows that were rejected, oldest first."""
        return [each for each, _ in self._warnings]

    @property
    def counts(self) -> Counts:
        """Counts of tuples and results since the checkpoint was made."""
        return self._epochs.last.total if self._epochs.last else Counts()

    @property
    def costs(self) -> dict[int, float]:
        """Channel seconds per tuple, by the number of the stage, as measured in the last epochs."""
        stages = self._epochs.last.stages if self._epochs.last else ()
        costs = {number: stage.recent.each for number, stage in enumerate(stages)}
        return {number: each for number, each in costs.items() if each is not None}

    @property
    def channels(self) -> tuple[StageChannels, ...]:
        """Rows, cost, state and keys of every channel in the last epoch with input, and how even they are."""
        return self._epochs.shown()

    @property
    def decisions(self) -> list[Decision]:
        """What was changed, why, and what moved, oldest first."""
        return list(self._epochs.decisions)

    @property
    def rulings(self) -> list[Ruling]:
        """What policies decided after the last epochs, and why some of it is held back, oldest first.

        With ``control="observe"`` all of it is held back. What is carried out is among `decisions` once its
        epoch has run.
        """
        return list(self._epochs.control.rulings)

    @property
    def outcomes(self) -> list[Outcome]:
        """What changes by policies brought, next to what they were predicted to bring, oldest first."""
        return list(self._epochs.control.controller.outcomes.done)

    @property
    def latency(self) -> ResultLatency | None:
        """How old the last results were when they were delivered; None if there is none to measure."""
        meter = self._epochs.meter
        return None if meter is None else meter.summary(list(meter.last))

    @property
    def disorder(self) -> int | None:
        """How far results were out of order at most, in batches; None if all left with their epochs."""
        return self._disorder

    def results(
        self, disorder: float | None = None, *, output: int = 0, committed: bool = False
    ) -> ResultStream:
        """Iterate over results as channels finish, from the next epoch that begins; it ends with the run.

        Each `ResultBatch` has the rows that one channel has of one window. Of two batches that are out of
        order, the later one comes at most `disorder` batches after the other: 0, the default, is in order,
        ``math.inf`` as channels finish. The order is that of windows, and across epochs it holds anyway.

        Results come before their epoch is committed: if the run is killed then, the next run gives the rows
        of that epoch again, with the same `ResultBatch.epoch`. With `committed` they come after the commit,
        and in order. To miss no result, start the query without a sink: such a run waits until all outputs
        are read. A reader that stops taking holds up the run, until it closes the iterator or lets go of it.
        """
        place = whole_number("output", output, 0, self._outputs - 1, BadOption)
        flag("committed", committed, BadOption)
        given = disorder if disorder is not None else 0 if committed else self._wanted
        most = most_disorder(0 if given is None else given)
        if committed and most != 0:
            raise BadOption(
                f"results(disorder={given}, committed=True); committed epochs are in order: leave one out"
            )
        buffer = ResultBuffer(most, committed=committed, hurried=self._stopping.is_set, warn=self.warn)
        return self.readers.add(place, buffer)

    def rescale(
        self,
        stage: int,
        channels: int,
        partitioning: PartitioningName | None = None,
        *,
        reason: str = "asked for",
    ) -> "Rescaled":
        """Run a stage on this number of channels from the next epoch on; only state that has to move moves.

        With its present number of channels, the stage gets a new router made from the frequencies of keys.
        The call returns at once; ``wait`` of the returned value waits until all state has moved. A request
        that cannot be met raises ``BadRescale`` here, and the run continues as before.
        """
        wish = Rescale(stage, channels, partitioning, reason)
        return Rescaled(self, wish, self._epochs.requests.ask(wish))

    @property
    def running(self) -> bool:
        """Whether there may be more epochs."""
        return not self._done.is_set()

    def report(self, progress: EpochProgress) -> None:
        """Remember an epoch and log it."""
        self._history.append(progress)
        if progress.disorder is not None:
            self._disorder = max(self._disorder or 0, progress.disorder)
        _log.info("%s", _LogLine(self._name, progress))
        for warning in progress.warnings:
            self.warn(f"epoch {progress.epoch}: {warning}")
        for decision in self._new_decisions():
            _log.info("%s", _LogLine(self._name, decision))

    def warn(self, warning: str, stream: str | None = None) -> None:
        """Remember a warning and log it; one about the start of a stream is over with its first tuple."""
        self._warnings.append((warning, stream))
        _log.warning("%s", f"{self._name}: {warning}" if self._name else warning)

    def _came(self, stream: str | None) -> bool:
        """Whether a tuple of the stream has come."""
        last = self._epochs.last if hasattr(self, "_epochs") else None
        known = None if last is None else last.frontiers.get(stream or "")
        return known is not None and known.newest is not None

    def _new_decisions(self) -> list[Decision]:
        """The decisions since the last epoch, oldest first."""
        found: list[Decision] = []
        for each in reversed(self._epochs.decisions):
            if each is self._logged:
                break
            found.append(each)
        if found:
            self._logged = found[0]
        return found[::-1]

    def wait(self, timeout: float | None = None, *, live: bool | None = None) -> bool:
        """Wait until the run has ended, and raise its error if it failed; False if the timeout came first.

        A bounded source ends by itself, and every open window is delivered. Ctrl-C and SIGTERM stop
        the run after the current epoch. `live` shows a line of progress on the terminal; the default
        is to do so if standard error is a terminal.
        """
        if self._unkept and self.readers.awaited(self._outputs):
            raise RunError(
                "the run has no sink and waits for a reader of its results; call results() for each output "
                "and read it, or give start() a sink"
            )
        with _StopOnSignal(self._request_stop), LiveLine(self, shown=live):
            ended = self._wait(timeout)
        if ended and self._error is not None:
            raise self._error
        return ended

    def stop(self) -> None:
        """Finish the current epoch, leave a clean checkpoint, and return when nothing runs any more."""
        self._request_stop()
        self._done.wait()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self, timeout: float | None) -> bool:
        # A plain wait would block signal handlers until it returns.
        waited = 0.0
        while not self._done.wait(0.1):
            waited += 0.1
            if timeout is not None and waited >= timeout:
                return False
        return True

    def _request_stop(self) -> None:
        self._stopping.set()

    def _loop(self) -> None:
        """One epoch after another, to the end of the sources; then drain what bounded ones left open."""
        try:
            while self._wait_for_readers() and not self._stopping.is_set():
                if self._epochs.next():
                    self._rest()
                elif self._bounded and self._epochs.ended:
                    self._epochs.works.checkpoint.hold()
                    self._epochs.drain()
                    break
                else:
                    self._stopping.wait(_LOOK_S)
        except BaseException as error:  # noqa: BLE001 - it is raised again by wait() and stop()
            self._failed(error)
        finally:
            self._close_sinks()
            if self._error is not None:
                _log.error("%s: %s", self._name or "run", self._error)
                _log.debug("%s: how it failed", self._name or "run", exc_info=self._error)
            self._done.set()
            self.readers.end(self._error)

    def _rest(self) -> None:
        """Wait between two epochs as long as the pace asks for."""
        if self._epochs.pacer is not None:
            self._epochs.pacer.rest(self._stopping.wait)

    def _wait_for_readers(self) -> bool:
        """Without a sink, nothing happens before somebody reads; false if the run is to stop."""
        while self._unkept and self.readers.awaited(self._outputs):
            if self._stopping.is_set():
                return False
            self.readers.wait(0.1)
        return True

    def _close_sinks(self) -> None:
        try:
            self._epochs.control.close()
            self._close()
        except BaseException as error:  # noqa: BLE001 - it is raised again by wait() and stop()
            if self._error is None:
                self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._error = raised(error)


class Rescaled:
    """A rescale that was requested."""

    def __init__(self, run: Run, wish: Rescale, done: threading.Event) -> None:
        self._run = run
        self._wish = wish
        self._done = done

    def __repr__(self) -> str:
        state = "done" if self.done else "under way" if self._run.running else "not done when the run ended"
        by = f" by {self._wish.partitioning}" if self._wish.partitioning else ""
        return f"Rescaled stage {self._wish.stage} to {self._wish.channels} channels{by}: {state}"

    @property
    def done(self) -> bool:
        """Whether all state has moved."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all state has moved; False if the timeout or the end of the run came first."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(0.05):
            if not self._run.running or (until is not None and time.monotonic() >= until):
                return self.done
        return True


class _LogLine:
    """A log line that becomes text only if a handler wants it."""

    def __init__(self, name: str | None, value: EpochProgress | Decision) -> None:
        self._name = name
        self._value = value

    def __str__(self) -> str:
        return f"{self._name}: {self._value}" if self._name else str(self._value)


class _StopOnSignal:
    """Let SIGINT and SIGTERM request a stop while the main thread waits."""

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
