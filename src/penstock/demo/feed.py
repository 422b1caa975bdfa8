"""A thread that writes the city's minutes as Parquet files into a folder, at a pace."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.demo.city import City

__all__ = ["CityFeed", "minute_file", "publish"]


def minute_file(folder: Path, minute: int) -> Path:
    """The file that holds one minute of the city."""
    return folder / f"minute-{minute:06d}.parquet"


def publish(table: pa.Table, path: Path) -> None:
    """Write a table so that no reader of the folder ever sees half of it.

    File readers skip names that begin with an underscore; the rename is atomic.
    """
    hidden = path.with_name(f"_{path.name}")
    pq.write_table(table, hidden)
    hidden.rename(path)


@dataclass
class CityFeed:
    """Writes the city's minutes 0, 1, … as files, one every `pace` seconds, for `minutes` or until stopped.

    The feed is at most `ahead` minutes ahead of what `release` has freed: a slow reader holds it up instead
    of filling the disk. Released files are deleted when they are `keep` minutes old.
    """

    city: City
    folder: Path
    pace: float = 0.15
    minutes: int | None = None
    ahead: int = 30
    keep: int = 120
    rows: int = field(default=0, init=False)
    written: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Prepare the thread; `start` runs it."""
        self._released = 0
        self._kept_from = 0
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="penstock-demo-feed", daemon=True)

    def start(self) -> None:
        """Start to write."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current file; safe to call twice."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def release(self, minute: int) -> None:
        """Say that every minute before this one has been read."""
        with self._changed:
            self._released = max(self._released, minute)
            self._changed.notify_all()

    @property
    def finished(self) -> bool:
        """Whether the last file is written; raises what the thread failed with, if it did."""
        if self._failure is not None:
            raise self._failure
        return self._thread.ident is not None and not self._thread.is_alive()

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while self._go_on(due):
                table = self.city.reports(self.written)
                publish(table, minute_file(self.folder, self.written))
                self.rows += table.num_rows
                self.written += 1
                self._forget()
                # After a delay the feed continues at its pace; it does not catch up in a burst.
                due = max(due + self.pace, time.monotonic())
        except BaseException as failure:  # noqa: BLE001 -- raised in the thread that asks `finished`
            self._failure = failure

    def _go_on(self, due: float) -> bool:
        """Wait until the next minute is due and there is room for it; False to stop."""
        if self.minutes is not None and self.written >= self.minutes:
            return False
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, timeout=max(due - time.monotonic(), 0.0))
            self._changed.wait_for(lambda: self._stopped or self.written < self._released + self.ahead)
            return not self._stopped

    def _forget(self) -> None:
        while self._kept_from < min(self._released, self.written - self.keep):
            minute_file(self.folder, self._kept_from).unlink(missing_ok=True)
            self._kept_from += 1
