"""Gates and streams as the directory knows them; time is an argument.

What must survive a restart is written before anyone hears of it; rates and frontiers are measured again.
"""

import heapq
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock import durable
from penstock.durable import Step
from penstock.errors import BadMessage, NoGate, TooMany
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["GateLoad", "RegisteredGate", "StreamRecord", "StreamRegistry", "assign", "average_rate"]


@dataclass(frozen=True, slots=True)
class GateLoad:
    """What a gate has already: streams, and the sum of their expected rates in rows per second."""

    gate: str
    streams: int
    rate: float


def assign(rates: Mapping[str, float | None], loads: Sequence[GateLoad], average: float) -> dict[str, str]:
    """The gate of every stream, given the rates expected of them; O((n + gates) log gates) besides sorting.

    A stream goes to the gate with the lowest expected rate, those with the highest rate first. One of unknown
    rate counts as the average of the others (000, section 2.4).

    Equal rates go by the number of streams, then by address, so that the same question has the same answer.

    >>> loads = [GateLoad("a:1", 2, 30.0), GateLoad("b:1", 1, 10.0)]
    >>> assign({"r/1": 15.0, "r/2": 40.0, "r/3": None}, loads, average=5.0)
    {'r/2': 'b:1', 'r/1': 'a:1', 'r/3': 'a:1'}
    """
    heap = [(load.rate, load.streams, load.gate) for load in loads]
    heapq.heapify(heap)
    chosen = {}
    expected = {stream: average if rate is None else rate for stream, rate in rates.items()}
    for stream in sorted(expected, key=lambda each: (-expected[each], each)):
        rate, streams, gate = heap[0]
        chosen[stream] = gate
        heapq.heapreplace(heap, (rate + expected[stream], streams + 1, gate))
    return chosen


def average_rate(rates: Sequence[float]) -> float:
    """The rate of a stream that nothing is known of; 1 row per second before anything is known at all.

    >>> average_rate([10.0, 30.0]), average_rate([])
    (20.0, 1.0)
    """
    return sum(rates) / len(rates) if rates else 1.0


SMOOTHING: Final = 0.3


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream: its gate, its metadata, and what was last seen of it; `rate` is in rows per second, smoothed.

    >>> record = StreamRecord("reports/v1", "a:1").seen("a:1", 100, None, now=10.0)
    >>> record.seen("a:1", 300, 77, now=12.0).rate
    100.0
    """

    stream: str
    gate: str
    metadata: Mapping[str, Any] | None = None
    rate: float | None = None
    frontier: int | None = None
    high: int = 0
    looked: float | None = None

    def expected_rate(self) -> float | None:
        """The rate to expect: the measured one, else the declared one."""
        if self.rate is not None:
            return self.rate
        declared = (self.metadata or {}).get("expected_rate")
        return float(declared) if isinstance(declared, int | float) else None

    def seen(self, gate: str, high: int, frontier: int | None, now: float) -> "StreamRecord":
        """The record after one more look; gates that the stream has left do not count for its rate."""
        if high <= self.high and gate != self.gate:
            return self
        rate, rows = self.rate, max(high - self.high, 0)
        if self.looked is not None and now > self.looked:
            latest = rows / (now - self.looked)
            rate = latest if rate is None else rate + SMOOTHING * (latest - rate)
        known = [each for each in (self.frontier, frontier) if each is not None]
        latest_frontier = max(known) if known else None
        return replace(self, high=self.high + rows, rate=rate, looked=now, frontier=latest_frontier)


@dataclass(frozen=True, slots=True)
class RegisteredGate:
    """A gate: what it said about itself, and when it was last heard of, in seconds since 1970."""

    address: str
    info: Mapping[str, Any]
    seen: float


MAX_STREAMS: Final = 100_000


_FILE: Final = "directory.sqlite"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS gates (gate TEXT PRIMARY KEY, draining INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS streams (stream TEXT PRIMARY KEY, gate TEXT NOT NULL, metadata TEXT);
CREATE TABLE IF NOT EXISTS holders (stream TEXT NOT NULL, gate TEXT NOT NULL, PRIMARY KEY (stream, gate));
"""


class DirectoryStore:
    """What a directory must not forget, in one SQLite file; every method is one durable transaction.

    The caller makes sure that one thread at a time uses it.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        target = ":memory:" if folder is None else str(folder / _FILE)
        self._base = sqlite3.connect(target, check_same_thread=False)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """What is done inside of this block is durable after it, whole or not at all."""
        durable.reached(Step.CONTROLLER, "before")
        with self._base:
            yield
        durable.reached(Step.CONTROLLER, "after")

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
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", [row[:2] for row in rows])

    def put_holders(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Remember that gates hold rows of streams."""
        with self._transaction():
            self._base.executemany("INSERT OR IGNORE INTO holders VALUES (?, ?)", pairs)

    def forget_gate(self, gate: str) -> None:
        """Forget a gate and what it held; its streams get another when they are next asked for."""
        with self._transaction():
            self._base.execute("DELETE FROM gates WHERE gate = ?", (gate,))
            self._base.execute("DELETE FROM holders WHERE gate = ?", (gate,))

    def forget_streams(self, streams: Iterable[str]) -> None:
        """Forget streams."""
        names = [(stream,) for stream in streams]
        with self._transaction():
            self._base.executemany("DELETE FROM streams WHERE stream = ?", names)
            self._base.executemany("DELETE FROM holders WHERE stream = ?", names)


class StreamRegistry:
    """The state of a directory; the caller makes sure that one thread at a time uses it."""

    def __init__(self, folder: Path | None, away_seconds: float, now: float) -> None:
        self._store = DirectoryStore(folder)
        self._away_seconds = away_seconds
        # A directory that was away has not heard of its gates either: they count as there at first.
        self._gates = {
            gate: RegisteredGate(gate, {"draining": draining}, now) for gate, draining in self._store.gates()
        }
        self._streams = {each[0]: StreamRecord(*each) for each in self._store.streams()}
        self._holders: dict[str, set[str]] = {}
        for stream, gate in self._store.holders():
            self._holders.setdefault(stream, set()).add(gate)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def register(self, gate: str, info: Mapping[str, Any], now: float) -> None:
        """A gate says that it is there, and whether it is draining."""
        known, draining = self._gates.get(gate), bool(info.get("draining"))
        if known is None or bool(known.info.get("draining")) != draining:
            self._store.put_gate(gate, draining=draining)
        self._gates[gate] = RegisteredGate(gate, info, now)

    def is_away(self, gate: str, now: float) -> bool:
        """Whether a gate is unknown or has been silent for too long."""
        known = self._gates.get(gate)
        return known is None or now - known.seen > self._away_seconds

    def gates(self) -> list[RegisteredGate]:
        """All gates, by address."""
        return [self._gates[each] for each in sorted(self._gates)]

    def streams(self, inlet: str | None = None) -> list[StreamRecord]:
        """All streams, or those of an inlet, by id."""
        return [
            self._streams[each] for each in sorted(self._streams) if inlet is None or inlet_of(each) == inlet
        ]

    def inlets(self) -> list[str]:
        """All inlets of which a stream is known."""
        return sorted({inlet_of(each) for each in self._streams})

    def holders(self, stream: str) -> set[str]:
        """The gates that may hold rows of a stream."""
        return set(self._holders.get(stream, ()))

    def where(self, asked: Mapping[str, Mapping[str, Any] | None], now: float) -> dict[str, str]:
        """The gate of each stream; a new one, or one whose gate is away, is assigned."""
        if len(self._streams) + sum(each not in self._streams for each in asked) > MAX_STREAMS:
            raise TooMany(
                f"{MAX_STREAMS:,} streams are known, the limit of a directory; `forget` some that ended"
            )
        stays = {each: self._streams[each].gate for each in asked if self._stays(each, now)}
        rates = {each: self._expected(each, asked[each]) for each in asked if each not in stays}
        loads = self._loads(now)
        known = [rate for record in self._streams.values() if (rate := record.expected_rate()) is not None]
        if loads:
            moved = assign(rates, loads, average_rate(known))
        else:
            # No gate is there; a stream that had a gate waits for it, since no other gate has its rows.
            moved = {each: self._streams[each].gate for each in rates if each in self._streams}
            if len(moved) < len(rates):
                raise NoGate("no gate is there to take a stream; start one: penstock gate --controller …")
        self._put([(each, gate, asked[each]) for each, gate in moved.items()])
        changed = [
            (each, self._streams[each].gate, said) for each, said in asked.items() if each in stays and said
        ]
        self._put([each for each in changed if self._streams[each[0]].metadata != each[2]])
        return stays | moved

    def move(self, streams: Iterable[str], to: str, now: float) -> dict[str, list[str]]:
        """Assign streams to a gate; returns the gates they leave, with their streams."""
        if self.is_away(to, now):
            there = ", ".join(each.address for each in self.gates() if not self.is_away(each.address, now))
            raise NoGate(f"gate {to} is not there; the gates are: {there or 'none'}")
        leaving: dict[str, list[str]] = {}
        for stream in streams:
            record = self._streams.get(stream)
            if record is None:
                raise BadMessage(f"no stream {stream!r} is known; `streams` lists those that are")
            if record.gate != to:
                leaving.setdefault(record.gate, []).append(stream)
        self._put([(each, to, None) for group in leaving.values() for each in group])
        return leaving

    def observe(self, gate: str, inlet: str, index: pa.Table, now: float) -> None:
        """Take in what has changed of an inlet at a gate; streams unknown so far are those of this gate."""
        columns = [index[each].to_pylist() for each in ("stream", "high", "frontier")]
        # Of several ranges of a stream the last one is the furthest.
        ranges = sorted(zip(*columns, strict=True), key=lambda each: each[:2])
        changed = {stream: (high, frontier) for stream, high, frontier in ranges}
        self._put([(stream, gate, None) for stream in changed if stream not in self._streams])
        found = [(stream, gate) for stream in changed if gate not in self._holders.get(stream, ())]
        if found:
            self._store.put_holders(found)
        for stream, gate_too in found:
            self._holders.setdefault(stream, set()).add(gate_too)
        for stream, record in self._streams.items():
            if stream in changed:
                self._streams[stream] = record.seen(gate, *changed[stream], now)
            elif record.gate == gate and inlet_of(stream) == inlet:
                self._streams[stream] = record.seen(gate, record.high, None, now)

    def forget_gate(self, gate: str) -> None:
        """Forget a gate for good, and that it ever held anything."""
        self._store.forget_gate(gate)
        self._gates.pop(gate, None)
        for holders in self._holders.values():
            holders.discard(gate)

    def forget_streams(self, streams: Sequence[str]) -> None:
        """Forget streams."""
        self._store.forget_streams(streams)
        for stream in streams:
            self._streams.pop(stream, None)
            self._holders.pop(stream, None)

    def _stays(self, stream: str, now: float) -> bool:
        record = self._streams.get(stream)
        return record is not None and self._accepts(record.gate, now)

    def _accepts(self, gate: str, now: float) -> bool:
        return not self.is_away(gate, now) and not self._gates[gate].info.get("draining")

    def _expected(self, stream: str, metadata: Mapping[str, Any] | None) -> float | None:
        record = self._streams.get(stream)
        return (record or StreamRecord(stream, "", metadata)).expected_rate()

    def _loads(self, now: float) -> list[GateLoad]:
        there = [each.address for each in self.gates() if self._accepts(each.address, now)]
        rates: dict[str, list[float | None]] = {each: [] for each in there}
        for record in self._streams.values():
            if record.gate in rates:
                rates[record.gate].append(record.expected_rate())
        average = average_rate([rate for each in rates.values() for rate in each if rate is not None])
        return [
            GateLoad(gate, len(each), sum(average if rate is None else rate for rate in each))
            for gate, each in rates.items()
        ]

    def _put(self, streams: list[tuple[str, str, Mapping[str, Any] | None]]) -> None:
        """Write where streams are, then remember it; metadata of None keeps what was known."""
        if not streams:
            return
        records = []
        for stream, gate, metadata in streams:
            record = self._streams.get(stream) or StreamRecord(stream, gate)
            records.append(replace(record, gate=gate, metadata=metadata or record.metadata))
        self._store.put_streams([(each.stream, each.gate, each.metadata) for each in records])
        for record in records:
            self._streams[record.stream] = record
            self._holders.setdefault(record.stream, set()).add(record.gate)
