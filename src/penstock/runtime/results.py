"""`Run.results`: an iterator over the results of a run, as its channels finish or as epochs are committed.

What is read and not yet taken is limited: a run waits for a slow reader, and does not wait for one that has
closed the iterator.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from penstock.connect import EpochId

__all__ = ["MOST_HELD", "ResultBatch", "ResultBuffer", "ResultReaders", "ResultStream"]

MOST_HELD = 64 * 2**20
"""The bytes of results that may wait for a reader before the run waits for it."""

_LONG = 10.0


@dataclass(frozen=True)
class ResultBatch:
    """Some results of an epoch: those of one window from one channel.

    Results without windows, such as those of joins, come in a batch for each channel and epoch.
    """

    epoch: EpochId
    rows: pa.Table

    def __repr__(self) -> str:
        return f"ResultBatch({self.epoch}, {self.rows.num_rows:,} rows)"


class ResultBuffer:
    """What a run has given and a reader has not taken: a `Receiver` of a merger."""

    def __init__(
        self,
        disorder: int | None,
        *,
        committed: bool,
        hurried: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        self.disorder = disorder
        self._committed = committed
        self._hurried = hurried
        self._warn = warn
        self._batches: deque[ResultBatch] = deque()
        self._pending: list[ResultBatch] = []
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None

    def give(self, epoch: EpochId, rows: pa.Table) -> None:
        """Take results; wait if the reader has as much as it may have."""
        batch = ResultBatch(epoch, rows)
        if self._committed:
            self._pending.append(batch)
        else:
            self._put(batch)

    def committed(self) -> None:
        """The epoch is committed."""
        pending, self._pending = self._pending, []
        for batch in pending:
            self._put(batch)

    def take(self) -> ResultBatch | None:
        """The next results, once there are any; None at the end."""
        with self._changed:
            while not self._batches and not self._ended:
                self._changed.wait()
            if self._batches:
                batch = self._batches.popleft()
                self._bytes -= batch.rows.nbytes
                self._changed.notify_all()
                return batch
            if self._error is not None:
                raise self._error
            return None

    def end(self, error: BaseException | None) -> None:
        """The run has ended."""
        with self._changed:
            self._ended, self._error = True, self._error or error
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._batches.clear()
            self._ended, self._error, self._bytes = True, None, 0
            self._changed.notify_all()

    def _put(self, batch: ResultBatch) -> None:
        waited = 0.0
        with self._changed:
            while self._bytes >= MOST_HELD and not self._ended and not self._hurried():
                waited += 0.0 if self._changed.wait(0.1) else 0.1
                if waited >= _LONG:
                    self._warn(
                        f"{self._bytes:,} bytes of results() wait to be read, and the run waits for it"
                    )
                    waited = -float("inf")
            if not self._ended:
                self._batches.append(batch)
                self._bytes += batch.rows.nbytes
                self._changed.notify_all()


class ResultStream(Iterator[ResultBatch]):
    """The results of a run one after another; it ends with the run, and raises the error of a failed one."""

    def __init__(self, buffer: ResultBuffer, closed: Callable[[], None]) -> None:
        self._buffer = buffer
        self._closed = closed

    def __next__(self) -> ResultBatch:
        batch = self._buffer.take()
        if batch is None:
            raise StopIteration
        return batch

    def close(self) -> None:
        """Take no more; the run goes on without this reader."""
        self._closed()
        self._buffer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Whoever leaves a loop over results early must not hold up the run.
        self.close()


class ResultReaders:
    """Everybody who reads the results of a run, by output; epochs and readers come from several threads."""

    def __init__(self) -> None:
        self._buffers: list[tuple[int, ResultBuffer]] = []
        self._outputs: set[int] = set()
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None

    def add(self, output: int, buffer: ResultBuffer) -> ResultStream:
        """A new reader; it gets the results of the epochs that begin from now on."""
        with self._changed:
            self._outputs.add(output)
            self._buffers.append((output, buffer))
            if self._ended:
                buffer.end(self._error)
            self._changed.notify_all()
        return ResultStream(buffer, lambda: self._remove(buffer))

    def of(self, output: int) -> list[ResultBuffer]:
        """The readers of an output."""
        with self._changed:
            return [each for place, each in self._buffers if place == output]

    def awaited(self, outputs: int) -> bool:
        """Whether one of the outputs has never had a reader."""
        with self._changed:
            return len(self._outputs) < outputs

    def wait(self, timeout: float) -> None:
        """Wait for a change."""
        with self._changed:
            self._changed.wait(timeout)

    def committed(self) -> None:
        """An epoch is committed."""
        with self._changed:
            buffers = [each for _, each in self._buffers]
        for each in buffers:
            each.committed()

    def end(self, error: BaseException | None) -> None:
        """The run has ended."""
        with self._changed:
            self._ended, self._error = True, error
            for _, each in self._buffers:
                each.end(error)

    def _remove(self, buffer: ResultBuffer) -> None:
        with self._changed:
            self._buffers = [(place, each) for place, each in self._buffers if each is not buffer]
