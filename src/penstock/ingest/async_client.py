"""The client for asyncio: the same stream, the same promises, and no call that blocks the loop."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Self

import pyarrow as pa

from penstock.ingest.rows import Rows
from penstock.ingest.standing import Standing

__all__ = ["AsyncClient"]


class AsyncClient(Standing):
    """`Client` for asyncio, with the same arguments; opened by `async with` or by `await client.open()`."""

    def _begin(self) -> None:
        self._changed = asyncio.Event()

    async def open(self) -> Self:
        """Ask where the stream goes on; needed once, before all else."""
        if self._opened is None:
            loop = asyncio.get_running_loop()
            # Resuming asks a gate, which takes a call over the network.
            pushing = await asyncio.to_thread(self._open)
            with pushing.lane.changed:
                pushing.lane.watchers.append(lambda: _tell(loop, self._changed))
            self._opened = pushing
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient(stream={self._stream!r})"

    async def push(self, rows: Rows, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Take rows in; waits while the buffer is full, for at most `timeout` seconds."""
        pushing = self._pushing
        parts = pushing.parts(rows)
        if timeout is not None and len(parts) > 1:
            raise pushing.too_large(len(parts))
        for part in parts:
            if not await self._until(partial(self._taken, part), timeout):
                assert timeout is not None, "without a timeout the wait ends only with room"
                raise pushing.no_room(part, timeout)

    async def promise(self, frontier: int) -> None:
        """Promise that no later row has a time below this one, in microseconds since 1970."""
        with self._pushing.lane.changed:
            self._pushing.promise(frontier)

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Send what is buffered and wait until all that was pushed before is acknowledged."""
        pushing = self._pushing
        with pushing.lane.changed:
            done = pushing.hurry()
        if not await self._until(done, timeout):
            assert timeout is not None, "without a timeout the wait ends only with the acknowledgement"
            raise pushing.not_acknowledged(timeout)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Flush, then let go of the stream; after an error or a timeout too. Safe to call twice."""
        if self._opened is None or self._opened.lane.closed:
            return
        try:
            await self.flush(timeout)
        finally:
            await asyncio.to_thread(self._opened.close)

    def _taken(self, part: list[pa.RecordBatch]) -> bool:
        if not self._pushing.has_room(part):
            return False
        self._pushing.offer(part)
        return True

    async def _until(self, done: Callable[[], bool], timeout: float | None) -> bool:  # noqa: ASYNC109
        """Wait until `done`, asked with the lock held and again after every change, says so."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    with self._pushing.lane.changed:
                        if done():
                            return True
                    await self._changed.wait()
        except TimeoutError:
            return False


def _tell(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    # The loop may have been closed under a client that nobody closed.
    if not loop.is_closed():
        loop.call_soon_threadsafe(changed.set)
