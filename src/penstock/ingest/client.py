"""The client: rows of one stream into the system, each held until it is durable, in order and none twice."""

from functools import partial
from typing import Self

from penstock.ingest.rows import Rows
from penstock.ingest.standing import Standing

__all__ = ["Client"]


class Client(Standing):
    """Pushes the rows of one stream to the gate at `address`, or to the one that the controller there names.

    Rows are buffered, sent in batches and held until a gate has acknowledged them: then they are on its disk.
    When a gate dies, what it did not acknowledge is sent again; when it sends the stream elsewhere, the
    client goes there. Safe to use from several threads; rows have the order in which `push` took them.

    A new client goes on after the last row that the gates hold (`resume="acknowledged"`): `sequence` then
    says which row is to come next. Who can read the input again from any row gives that number instead:
    rows that were stored before are then recognised by it and not stored twice.
    """

    def _begin(self) -> None:
        self._opened = self._open()
        self._lane = self._opened.lane

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(stream={self.stream!r}, gate={self.gate!r}, sequence={self.sequence})"

    def push(self, rows: Rows, *, timeout: float | None = None) -> None:
        """Take rows in: a RecordBatch, a Table or a list of dicts.

        Waits while the buffer is full. With a `timeout` in seconds it raises BufferFull after that long, and
        then none of the rows was taken.
        """
        parts = self._pushing.parts(rows)
        if timeout is not None and len(parts) > 1:
            raise self._pushing.too_large(len(parts))
        for part in parts:
            with self._lane.changed:
                if not self._lane.changed.wait_for(partial(self._pushing.has_room, part), timeout):
                    assert timeout is not None, "without a timeout the wait ends only with room"
                    raise self._pushing.no_room(part, timeout)
                self._pushing.offer(part)

    def promise(self, frontier: int) -> None:
        """Promise that no later row has a time below this one, in microseconds since 1970."""
        with self._lane.changed:
            self._pushing.promise(frontier)

    def flush(self, timeout: float | None = None) -> None:
        """Send what is buffered and wait until all that was pushed before is acknowledged."""
        with self._lane.changed:
            done = self._pushing.hurry()
            if not self._lane.changed.wait_for(done, timeout):
                assert timeout is not None, "without a timeout the wait ends only with the acknowledgement"
                raise self._pushing.not_acknowledged(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush, then let go of the stream; after an error or a timeout too. Safe to call twice."""
        if self._lane.closed:
            return
        try:
            self.flush(timeout)
        finally:
            self._pushing.close()
