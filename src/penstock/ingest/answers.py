"""The answers on one open push: written by a thread of their own, so no slow client holds up the log."""

import threading
from collections.abc import Callable
from typing import Any

from penstock.ingest.wire import as_json

__all__ = ["Answers"]


class Answers:
    """Gathers answers and sends those that wait as one message; at most two wait for each stream.

    A later acknowledgement of a stream takes the place of an earlier one, since it says more; so does a later
    refusal, wait or redirection.
    """

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write
        self._acknowledged: dict[str, dict[str, Any]] = {}
        self._others: dict[str | None, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self.broken = False
        self._thread = threading.Thread(target=self._run, name="penstock-answers", daemon=True)
        self._thread.start()

    def acknowledge(self, stream: str, upto: int, credit: int) -> None:
        """Say that all rows below `upto` are durable and how many bytes may be on their way."""
        answer = {"stream": stream, "acknowledged": upto, "credit": credit}
        with self._changed:
            self._acknowledged[stream] = answer
            self._changed.notify()

    def say(self, stream: str | None, answer: dict[str, Any]) -> None:
        """Send something else about a stream; None where the stream could not be told."""
        with self._changed:
            self._others[stream] = {"stream": stream, **answer}
            self._changed.notify()

    def close(self) -> None:
        """Send what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while answers := self._take():
            if self.broken:
                continue
            try:
                self._write(as_json(answers[0] if len(answers) == 1 else {"answers": answers}))
            except Exception:  # noqa: BLE001 -- a client that is gone fails in many ways, and all mean the same
                self.broken = True

    def _take(self) -> list[dict[str, Any]]:
        with self._changed:
            while not (self._acknowledged or self._others or self._closed):
                self._changed.wait()
            answers = [*self._acknowledged.values(), *self._others.values()]
            self._acknowledged, self._others = {}, {}
        return answers
