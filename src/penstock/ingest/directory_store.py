"""What a directory must not forget, in one SQLite file: gates, streams, and who holds rows of which."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["DirectoryStore"]

FILE: Final = "directory.sqlite"
TABLES: Final = """
CREATE TABLE IF NOT EXISTS gates (gate TEXT PRIMARY KEY, draining INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS streams (stream TEXT PRIMARY KEY, gate TEXT NOT NULL, metadata TEXT);
CREATE TABLE IF NOT EXISTS holders (stream TEXT NOT NULL, gate TEXT NOT NULL, PRIMARY KEY (stream, gate));
"""


class DirectoryStore:
    """The file; every method is one transaction, and on disk when it returns.

    The caller sees to it that only one thread is inside at a time.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        target = ":memory:" if folder is None else str(folder / FILE)
        self._base = sqlite3.connect(target, check_same_thread=False)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.executescript(TABLES)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

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
        with self._base:
            self._base.execute("INSERT OR REPLACE INTO gates VALUES (?, ?)", (gate, draining))

    def put_streams(self, streams: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> None:
        """Remember streams, where they are, and that those gates may hold rows of theirs."""
        rows = [(stream, gate, None if said is None else json.dumps(said)) for stream, gate, said in streams]
        with self._base:
            self._base.executemany("INSERT OR REPLACE INTO streams VALUES (?, ?, ?)", rows)
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", [row[:2] for row in rows])

    def put_holders(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Remember that gates hold rows of streams."""
        with self._base:
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", pairs)

    def forget_gate(self, gate: str) -> None:
        """Forget a gate and what it held; its streams are found another when they are next asked for."""
        with self._base:
            self._base.execute("DELETE FROM gates WHERE gate = ?", (gate,))
            self._base.execute("DELETE FROM holders WHERE gate = ?", (gate,))

    def forget_streams(self, streams: Iterable[str]) -> None:
        """Forget streams."""
        names = [(stream,) for stream in streams]
        with self._base:
            self._base.executemany("DELETE FROM streams WHERE stream = ?", names)
            self._base.executemany("DELETE FROM holders WHERE stream = ?", names)
