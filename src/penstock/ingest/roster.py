"""Gates and streams as the directory knows them: who is there, who is where, how fast; time is an argument.

What a restart must not lose is written before it is told to anyone; rates and frontiers are measured anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadMessage, NoGate, TooMany
from penstock.ingest.assignment import GateLoad, assign, average_rate
from penstock.ingest.directory_store import DirectoryStore
from penstock.ingest.stream_record import StreamRecord
from penstock.ingest.wire import inlet_of

__all__ = ["Gate", "Roster"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: what it said of itself, and when it was last heard of, in seconds since 1970."""

    address: str
    info: Mapping[str, Any]
    seen: float


MAX_STREAMS: Final = 100_000


class Roster:
    """The state of a directory; the caller sees to it that only one thread is inside at a time."""

    def __init__(self, folder: Path | None, away_seconds: float, now: float) -> None:
        self._store = DirectoryStore(folder)
        self._away_seconds = away_seconds
        # A directory that was away has not heard of its gates either: they count as there at first.
        self._gates = {
            gate: Gate(gate, {"draining": draining}, now) for gate, draining in self._store.gates()
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
        self._gates[gate] = Gate(gate, info, now)

    def is_away(self, gate: str, now: float) -> bool:
        """Whether a gate is unknown or has been silent for too long."""
        known = self._gates.get(gate)
        return known is None or now - known.seen > self._away_seconds

    def gates(self) -> list[Gate]:
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
            # None is there; a stream that had a gate waits for it, since nobody else could say more.
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
        """Assign streams to a gate; the gates they were at, with their streams, are to be told."""
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
        """Write where streams are, then know it; metadata of None leaves what was known."""
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
