"""What a directory must not forget, in one SQLite file that one directory writes.

    directory-000000000003-000001.sqlite    of the third term, its first generation

A generation is a file that does not change and a log beside it that only grows; when that is long, the next
one takes its place. So a successor can copy both while they are written to, whatever state their writer is
in. It begins its term first, then copies: what is committed later is never told (`lease.py`).
"""

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock import durable
from penstock.durable import Purpose
from penstock.ingest.directory.lease import Lease

__all__ = ["DirectoryStore", "Numbers"]

_FIRST: Final = "directory.sqlite"
"""As it was called before there were terms."""
_MOST_LOG: Final = 16 << 20
_TIMES: Final = 4
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS gates (gate TEXT PRIMARY KEY, draining INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS streams (stream TEXT PRIMARY KEY, gate TEXT NOT NULL, metadata TEXT);
CREATE TABLE IF NOT EXISTS holders (stream TEXT NOT NULL, gate TEXT NOT NULL, PRIMARY KEY (stream, gate));
CREATE TABLE IF NOT EXISTS numbers (
  stream TEXT PRIMARY KEY, high INTEGER NOT NULL, producer INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS logs (log TEXT PRIMARY KEY, gate TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS forgotten (gate TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS states (gate TEXT PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS readers (
  inlet TEXT NOT NULL, reader TEXT NOT NULL, forgotten INTEGER NOT NULL, PRIMARY KEY (inlet, reader)
);
CREATE TABLE IF NOT EXISTS runs (
  inlet TEXT NOT NULL, reader TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (inlet, reader)
);
CREATE TABLE IF NOT EXISTS kept_out (gate TEXT PRIMARY KEY, why TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was given of a stream's numbers: rows below `high` were there, and `producer` is the newest.

    Both only grow, also when the stream is forgotten: no number ever names two rows.
    """

    high: int = 0
    producer: int = 0


class DirectoryStore:
    """What a directory must not forget, in one SQLite file; every method is one durable transaction.

    The caller makes sure that one thread at a time uses it.
    """

    def __init__(self, folder: Path | None, lease: Lease | None = None) -> None:
        self._folder, self._generation = folder, 0
        self.lease = lease
        if folder is None:
            self._base = _opened(":memory:")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.lease = lease or Lease.take(folder, "")
            self.lease.start()
            _copy_newest(folder, self._path)
            self._base = _opened(str(self._path))
            self._forget_files()
        self._base.executescript(_TABLES)

    def close(self) -> None:
        """Close the file, and let the next controller begin; safe to call twice."""
        self._base.close()
        lease, self.lease = self.lease, None
        if lease is not None:
            lease.release()

    def check(self) -> None:
        """Raise if another controller has taken over."""
        if self.lease is not None:
            self.lease.check()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """What is done inside of this block is durable after it, whole or not at all, and may be told."""
        durable.reached(Purpose.CONTROLLER, "before")
        with self._base:
            yield
        self.check()
        durable.reached(Purpose.CONTROLLER, "after")
        if self._folder is not None and self._is_long():
            self._next_generation()

    def _is_long(self) -> bool:
        """Whether the log has become several times as long as what it is a log of."""
        log = _log_of(self._path).stat().st_size
        return log > _MOST_LOG and log > _TIMES * self._path.stat().st_size

    def _next_generation(self) -> None:
        """Go on in a new file without a log."""
        before, after = self._path, self._at(self._generation + 1)
        fresh = _fresh(after)
        durable.delete(fresh, Purpose.CONTROLLER)
        self._base.execute("VACUUM INTO ?", (str(fresh),))
        _name_durably(fresh, after)
        self._base.close()
        self._generation += 1
        self._base = _opened(str(after))
        _remove(before)

    def _forget_files(self) -> None:
        """Delete the files of earlier terms, whose writers give no answers any more."""
        assert self._folder is not None, "files are in a folder"
        for each in [*self._folder.glob("directory*.sqlite*")]:
            if not each.name.startswith(self._path.name):
                durable.delete(each, Purpose.CONTROLLER)

    @property
    def _path(self) -> Path:
        return self._at(self._generation)

    def _at(self, generation: int) -> Path:
        assert self._folder is not None, "files are in a folder"
        assert self.lease is not None, "who has a folder has a lease"
        return self._folder / f"directory-{self.lease.number:012d}-{generation:06d}.sqlite"

    def gates(self) -> list[tuple[str, bool]]:
        """All gates: address, and whether it is draining."""
        rows = self._base.execute("SELECT gate, draining FROM gates").fetchall()
        return [(gate, bool(draining)) for gate, draining in rows]

    def streams(self) -> list[tuple[str, str, dict[str, Any] | None]]:
        """All streams: id, gate, metadata."""
        rows = self._base.execute("SELECT stream, gate, metadata FROM streams").fetchall()
        return [(stream, gate, None if said is None else json.loads(said)) for stream, gate, said in rows]

    def holders(self) -> list[tuple[str, str]]:
        """Pairs of a stream and a gate that it was ever sent to."""
        return self._base.execute("SELECT stream, gate FROM holders").fetchall()

    def put_gate(self, gate: str, *, draining: bool) -> None:
        """Remember a gate."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO gates VALUES (?, ?)", (gate, draining))

    def put_streams(self, streams: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> None:
        """Remember streams, where they are, and that those gates may hold rows of them."""
        rows = [(stream, gate, None if said is None else json.dumps(said)) for stream, gate, said in streams]
        with self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO streams VALUES (?, ?, ?)", rows)
            held = [row[:2] for row in rows if row[1]]
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", held)

    def states(self) -> dict[str, str]:
        """The states of gates that are not simply there."""
        return dict(self._base.execute("SELECT gate, state FROM states").fetchall())

    def put_state(self, gate: str, state: str | None) -> None:
        """Remember the state of a gate, or forget it with None."""
        with self._transaction():
            if state is None:
                self._base.execute("DELETE FROM states WHERE gate = ?", (gate,))
            else:
                self._base.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (gate, state))

    def put_holders(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Remember that gates hold rows of streams."""
        with self._transaction():
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", pairs)

    def forget_logs(self, logs: Iterable[str]) -> None:
        """Forget logs that were lost."""
        names = [(log,) for log in logs]
        with self._transaction():
            self._base.executemany("DELETE FROM logs WHERE log = ?", names)
            self._base.executemany("INSERT OR IGNORE INTO forgotten VALUES (?)", names)

    def forget_gate(self, gate: str) -> None:
        """Forget a gate and what it held; its streams get another when they are next asked for."""
        with self._transaction():
            self._base.execute("DELETE FROM gates WHERE gate = ?", (gate,))
            self._base.execute("DELETE FROM holders WHERE gate = ?", (gate,))
            self._base.execute("DELETE FROM logs WHERE gate = ?", (gate,))
            self._base.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (gate,))

    def forgotten(self) -> list[str]:
        """The gates and logs that were forgotten and have not come back."""
        return [gate for (gate,) in self._base.execute("SELECT gate FROM forgotten").fetchall()]

    def logs(self) -> dict[str, str]:
        """The gate of each log."""
        return dict(self._base.execute("SELECT log, gate FROM logs").fetchall())

    def put_log(self, log: str, gate: str, moved_from: str | None) -> None:
        """Remember at which gate a log is, and that all rows of it moved there with it."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (log, gate))
            self._base.execute("DELETE FROM forgotten WHERE gate IN (?, ?)", (gate, log))
            if moved_from is not None:
                self._base.execute(
                    "UPDATE OR REPLACE holders SET gate = ? WHERE gate = ?", (gate, moved_from)
                )
                self._base.execute("UPDATE streams SET gate = ? WHERE gate = ?", (gate, moved_from))
                self._base.execute("DELETE FROM gates WHERE gate = ?", (moved_from,))

    def numbers(self) -> dict[str, Numbers]:
        """What was given of the numbers of every stream."""
        rows = self._base.execute("SELECT stream, high, producer FROM numbers").fetchall()
        return {stream: Numbers(high, producer) for stream, high, producer in rows}

    def put_numbers(self, numbers: Mapping[str, Numbers]) -> None:
        """Remember what was given of the numbers of streams."""
        rows = [(stream, each.high, each.producer) for stream, each in numbers.items()]
        with self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO numbers VALUES (?, ?, ?)", rows)

    def readers(self) -> list[tuple[str, str, bool]]:
        """All readers: inlet, name, and whether it was forgotten."""
        rows = self._base.execute("SELECT inlet, reader, forgotten FROM readers").fetchall()
        return [(inlet, reader, bool(forgotten)) for inlet, reader, forgotten in rows]

    def put_reader(self, inlet: str, reader: str, *, forgotten: bool) -> None:
        """Remember a reader, or that it was forgotten: gates that are away have to hear of it too."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?)", (inlet, reader, forgotten))

    def runs(self) -> dict[tuple[str, str], str]:
        """What people call readers, by inlet and name."""
        rows = self._base.execute("SELECT inlet, reader, run FROM runs").fetchall()
        return {(inlet, reader): run for inlet, reader, run in rows}

    def put_run(self, inlet: str, reader: str, run: str) -> None:
        """Remember what people call a reader."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (inlet, reader, run))

    def kept_out(self) -> dict[str, str]:
        """The gates that are not to be used, and why."""
        return dict(self._base.execute("SELECT gate, why FROM kept_out").fetchall())

    def put_kept_out(self, gate: str, why: str | None) -> None:
        """Remember that a gate is not to be used, or with None that it may be."""
        with self._transaction():
            self._base.execute("DELETE FROM kept_out WHERE gate = ?", (gate,))
            if why is not None:
                self._base.execute("INSERT INTO kept_out VALUES (?, ?)", (gate, why))

    def forget_streams(self, streams: Iterable[str]) -> None:
        """Forget streams."""
        names = [(stream,) for stream in streams]
        with self._transaction():
            self._base.executemany("DELETE FROM streams WHERE stream = ?", names)
            self._base.executemany("DELETE FROM holders WHERE stream = ?", names)


def _opened(target: str) -> sqlite3.Connection:
    base = sqlite3.connect(target, check_same_thread=False)
    # Without memory that processes share, and with a log that is not written back: others may copy it.
    base.execute("PRAGMA locking_mode = EXCLUSIVE")
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA wal_autocheckpoint = 0")
    base.execute("PRAGMA synchronous = FULL")
    return base


def _copy_newest(folder: Path, path: Path) -> None:
    """Copy the newest state of earlier terms, if there is one, under a name of our own."""
    fresh = _fresh(path)
    while True:
        found = sorted(each for each in folder.glob("directory-*.sqlite") if each != path)
        found = found or [each for each in [folder / _FIRST] if each.exists()]
        if not found:
            return
        for each in (fresh, _log_of(fresh)):
            durable.delete(each, Purpose.CONTROLLER)
        # The log first: while its writer ends in order, the log goes when the file has all of it.
        with suppress(FileNotFoundError):
            shutil.copyfile(_log_of(found[-1]), _log_of(fresh))
        try:
            shutil.copyfile(found[-1], fresh)
        except FileNotFoundError:
            continue  # the next generation has taken its place
        break
    base = _opened(str(fresh))
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()
    durable.delete(_log_of(fresh), Purpose.CONTROLLER)
    _name_durably(fresh, path)


def _name_durably(fresh: Path, path: Path) -> None:
    durable.sync(fresh, Purpose.CONTROLLER)
    durable.rename(fresh, path, Purpose.CONTROLLER)
    durable.sync_folder(path.parent, Purpose.CONTROLLER)


def _fresh(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _remove(path: Path) -> None:
    for each in (path, _log_of(path)):
        durable.delete(each, Purpose.CONTROLLER)
