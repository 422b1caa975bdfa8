"""Gates and streams as the directory knows them; time is an argument.

What must survive a restart is written before anyone hears of it; frontiers are measured again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadMessage, NoGate, TooMany
from penstock.ingest.directory.lease import Lease
from penstock.ingest.directory.store import DirectoryStore, Numbers
from penstock.ingest.wire.flight import Address
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["Admit", "GateMode", "KnownReader", "RegisteredGate", "StreamRecord", "StreamRegistry"]

_LOGGER = logging.getLogger("penstock.controller")
MAX_STREAMS: Final = 100_000
MAX_READERS: Final = 1000

Admit = Callable[[Mapping[str, Mapping[str, Any] | None], float], Mapping[str, str | None]]
"""Chooses gates for streams with their metadata; None for a stream whose gate is being started."""


class GateMode(StrEnum):
    """What a gate is used for; one that only registered is active."""

    FREE = "free"
    """It is there and gets no streams until it is needed."""
    STARTING = "starting"
    ACTIVE = "active"
    DRAINING = "draining"
    """It gets no streams and is stopped when all that it holds is read; until then it may be used again."""
    CLOSING = "closing"
    """It takes no rows any more."""
    STOPPING = "stopping"
    """It holds nothing that anybody needs and has been told to end."""


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream: its gate, its metadata, and what was last seen of it.

    >>> StreamRecord("reports/v1", "a:1").seen("a:1", 100, 77).frontier
    77
    """

    stream: str
    gate: str
    metadata: Mapping[str, Any] | None = None
    frontier: int | None = None
    high: int = 0
    empty: bool = False
    """Whether its gate was last seen to hold none of its rows any more."""

    def seen(self, gate: str, high: int, frontier: int | None) -> "StreamRecord":
        """The record after one more look; what gates that the stream has left still hold changes nothing."""
        if high <= self.high and gate != self.gate:
            return self
        known = [each for each in (self.frontier, frontier) if each is not None]
        return replace(self, high=max(self.high, high), frontier=max(known) if known else None)


@dataclass(frozen=True, slots=True)
class RegisteredGate:
    """A gate: what it said about itself, and when it was last heard of, in seconds since 1970."""

    address: str
    info: Mapping[str, Any]
    seen: float


@dataclass(frozen=True, slots=True)
class KnownReader:
    """A reader of an inlet: whether it was forgotten, when it was last heard of, and its rows."""

    inlet: str
    reader: str
    forgotten: bool = False
    seen: float | None = None
    rows: int = 0
    run: str | None = None
    """What people call it, if it has said so."""


def _is_address(gate: str) -> bool:
    try:
        Address.parse(gate)
    except BadMessage as error:
        _LOGGER.warning("a gate that was registered is left out: %s", error)
        return False
    return True


class StreamRegistry:
    """The state of a directory; the caller makes sure that one thread at a time uses it."""

    def __init__(
        self,
        store: DirectoryStore | Path | None,
        away_seconds: float,
        now: float,
        lease: Lease | None = None,
    ) -> None:
        self._store = store if isinstance(store, DirectoryStore) else DirectoryStore(store, lease)
        self._away_seconds = away_seconds
        # A directory that was away has not heard of its gates either: they count as there at first.
        self._gates = {
            gate: RegisteredGate(gate, {"draining": draining}, now)
            for gate, draining in self._store.gates()
            if _is_address(gate)
        }
        self._streams = {each[0]: StreamRecord(*each) for each in self._store.streams()}
        self._holders: dict[str, set[str]] = {}
        for stream, gate in self._store.holders():
            self._holders.setdefault(stream, set()).add(gate)
        self._numbers = self._store.numbers()
        self._logs = self._store.logs()
        self._modes = {gate: GateMode(mode) for gate, mode in self._store.states().items()}
        self.declared_version = 0
        """Changes with every change of a stream's metadata, or of which streams there are."""
        self._gone: set[str] = set()
        self._forgotten = set(self._store.forgotten())
        runs = self._store.runs()
        self._readers = {
            each[:2]: KnownReader(*each, run=runs.get(each[:2])) for each in self._store.readers()
        }
        self._kept_out = self._store.kept_out()
        for stream, numbers in self._numbers.items():
            if stream in self._streams:
                self._streams[stream] = replace(self._streams[stream], high=numbers.high)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @property
    def term(self) -> str | None:
        """The term of this controller as gates hear it."""
        return None if self._store.lease is None else self._store.lease.term

    def check(self) -> None:
        """Raise if another controller has taken over."""
        self._store.check()

    def register(self, gate: str, info: Mapping[str, Any], now: float) -> None:
        """A gate says that it is there, and whether it is draining."""
        if info.get("log"):
            self._register_log(gate, str(info["log"]), now)
        known, draining = self._gates.get(gate), bool(info.get("draining"))
        if known is None or bool(known.info.get("draining")) != draining:
            self._store.put_gate(gate, draining=draining)
        self._gates[gate] = RegisteredGate(gate, info, now)

    def _register_log(self, gate: str, log: str, now: float) -> None:
        """Learn which log a gate has: the one it had, one that moved here, or a new one."""
        before = self._logs.get(log)
        if before == gate:
            return
        if before is not None and self._takes_rows(before, now):
            raise BadMessage(
                f"gate {gate} has the log of gate {before}, which is there: one folder is a copy of the "
                "other; stop one of the two and give it a folder of its own"
            )
        lost = [each for each, place in self._logs.items() if place == gate]
        if lost:
            _LOGGER.warning(
                "gate %s has come with another log (%s, before %s): its folder was emptied or replaced. Its "
                "streams continue after the highest known numbers; readers that miss rows say so",
                gate,
                log,
                ", ".join(lost),
            )
        self._store.put_log(log, gate, before)
        self._logs[log] = gate
        self._forgotten -= {gate, log}
        if before is not None:
            _LOGGER.info("the log of gate %s is now at gate %s", before, gate)
            self._gates.pop(before, None)
            for holders in self._holders.values():
                if before in holders:
                    holders.discard(before)
                    holders.add(gate)
            for stream, record in self._streams.items():
                if record.gate == before:
                    self._streams[stream] = replace(record, gate=gate)

    def forgotten(self) -> list[str]:
        """The gates and logs that were forgotten and have not come back."""
        return sorted(self._forgotten)

    # ---- numbers and producers -------------------------------------------------------------------------

    def high(self, stream: str) -> int:
        """The number after the last row that was ever seen of a stream, at a gate or by a reader."""
        return self._numbers.get(stream, Numbers()).high

    def producer(self, stream: str) -> int:
        """The newest producer of a stream."""
        return self._numbers.get(stream, Numbers()).producer

    def claim(self, streams: Iterable[str], least: Mapping[str, int]) -> dict[str, int]:
        """New producers of streams, above all that were given and at least those that gates know."""
        claimed = {each: max(self.producer(each) + 1, least.get(each, 0)) for each in streams}
        self._put_numbers({each: Numbers(self.high(each), producer) for each, producer in claimed.items()})
        return claimed

    def raise_highs(self, highs: Mapping[str, int]) -> None:
        """Rows up to these numbers were there."""
        news = {stream: high for stream, high in highs.items() if high > self.high(stream)}
        if news:
            self._put_numbers({each: Numbers(high, self.producer(each)) for each, high in news.items()})

    def _put_numbers(self, numbers: Mapping[str, Numbers]) -> None:
        self._store.put_numbers(numbers)
        self._numbers.update(numbers)

    # ---- readers ---------------------------------------------------------------------------------------

    def reader_at(
        self, inlet: str, reader: str, upto: Mapping[str, int], now: float, run: str | None = None
    ) -> None:
        """A reader has come so far; a new one is known from now on, over restarts."""
        known = self._readers.get((inlet, reader))
        if known is None and len(self._readers) >= MAX_READERS:
            raise TooMany(f"{MAX_READERS:,} readers are known, the limit; forget some that do not come back")
        if known is None or known.forgotten:
            self._store.put_reader(inlet, reader, forgotten=False)
        called = known.run if run is None and known is not None else run
        if run is not None and (known is None or known.run != run):
            self._store.put_run(inlet, reader, run)
        self._readers[inlet, reader] = KnownReader(inlet, reader, False, now, sum(upto.values()), called)
        self.raise_highs(upto)

    def forget_reader(self, inlet: str, reader: str) -> None:
        """Gates need not wait for a reader any more."""
        if (inlet, reader) not in self._readers:
            known = ", ".join(
                f"{each.inlet}:{each.reader}" + ("" if each.run is None else f" ({each.run})")
                for each in self.readers()
            )
            raise BadMessage(f"no reader {reader!r} of inlet {inlet!r}; the readers are: {known or 'none'}")
        self._store.put_reader(inlet, reader, forgotten=True)
        self._readers[inlet, reader] = KnownReader(inlet, reader, forgotten=True)

    def readers(self, *, forgotten: bool = False) -> list[KnownReader]:
        """The readers that gates keep rows for, or those that were forgotten."""
        return [
            self._readers[each]
            for each in sorted(self._readers)
            if self._readers[each].forgotten == forgotten
        ]

    # ---- gates and streams -----------------------------------------------------------------------------

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

    def where(
        self, asked: Mapping[str, Mapping[str, Any] | None], now: float, admit: Admit | None = None
    ) -> dict[str, str]:
        """The gate of each stream; a new one, or one whose gate is away, is assigned.

        `admit` chooses; what it leaves out goes to the gate with the fewest streams.
        """
        if len(self._streams) + sum(each not in self._streams for each in asked) > MAX_STREAMS:
            raise TooMany(
                f"{MAX_STREAMS:,} streams are known, the limit of a directory; `forget` some that ended"
            )
        stays = {each: self._streams[each].gate for each in asked if self._stays(each, now)}
        coming = {each: asked[each] or self.metadata(each) for each in asked if each not in stays}
        admitted = admit(coming, now) if admit is not None and coming else {}
        self._put([(each, gate, asked[each]) for each, gate in admitted.items() if gate is not None])
        stays |= {each: gate for each, gate in admitted.items() if gate is not None}
        waiting = [each for each, gate in admitted.items() if gate is None]
        if waiting:
            raise NoGate(f"a gate is being started for {waiting[0]!r}; ask again")
        moved = self._spread([each for each in coming if each not in admitted], now)
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
        if not self.accepts(to, now):
            raise NoGate(f"gate {to} takes no streams: it is draining or free; give another one")
        leaving: dict[str, list[str]] = {}
        for stream in streams:
            record = self._streams.get(stream)
            if record is None:
                raise BadMessage(f"no stream {stream!r} is known; `streams` lists those that are")
            if record.gate != to:
                leaving.setdefault(record.gate, []).append(stream)
        self._put([(each, to, None) for group in leaving.values() for each in group])
        leaving.pop("", None)
        return leaving

    def gate_of(self, stream: str) -> str | None:
        """Where a stream is; None if it is not known."""
        record = self._streams.get(stream)
        return None if record is None else record.gate

    def present(self) -> list[StreamRecord]:
        """The streams that have a gate and have not gone, by id."""
        return [each for each in self.streams() if each.gate and each.stream not in self._gone]

    def went(self, stream: str, *, gone: bool) -> None:
        """A stream has no client any more, or one again: it then enters as a new one, where it is best."""
        if gone:
            self._gone.add(stream)
        else:
            self._gone.discard(stream)

    def knows(self, stream: str) -> bool:
        """Whether a stream was ever declared, admitted or seen."""
        return stream in self._streams

    def metadata(self, stream: str) -> Mapping[str, Any] | None:
        """What is declared of a stream."""
        record = self._streams.get(stream)
        return None if record is None else record.metadata

    def declare(self, stream: str, metadata: Mapping[str, Any]) -> None:
        """Remember what is declared of a stream, also before it has a gate."""
        record = self._streams.get(stream)
        if record is None and len(self._streams) >= MAX_STREAMS:
            raise TooMany(
                f"{MAX_STREAMS:,} streams are known, the limit of a directory; `forget` some that ended"
            )
        if record is None or record.metadata != metadata:
            self._put([(stream, record.gate if record else "", metadata)])

    def mode(self, gate: str) -> GateMode | None:
        """What a gate is used for; None if it is neither registered nor managed."""
        return self._modes.get(gate, GateMode.ACTIVE if gate in self._gates else None)

    def keep_out(self, gate: str, why: str | None) -> None:
        """Use a gate no more before this is taken back with None; over restarts."""
        self._store.put_kept_out(gate, why)
        self._kept_out.pop(gate, None)
        if why is not None:
            self._kept_out[gate] = why

    def kept_out(self, gate: str) -> str | None:
        """Why a gate is not to be used; None if it may be."""
        return self._kept_out.get(gate)

    def all_kept_out(self) -> list[str]:
        """The gates that are not to be used."""
        return list(self._kept_out)

    def set_mode(self, gate: str, mode: GateMode | None) -> None:
        """Remember it; None forgets it."""
        stored = None if mode is GateMode.ACTIVE else mode
        if self._modes.get(gate) != stored:
            self._store.put_state(gate, stored)
        if stored is None:
            self._modes.pop(gate, None)
        else:
            self._modes[gate] = stored

    def observe(self, gate: str, index: pa.Table) -> None:
        """Take in what has changed of an inlet at a gate; streams unknown so far are those of this gate."""
        columns = [index[each].to_pylist() for each in ("stream", "high", "frontier", "low")]
        # Of several ranges of a stream the last one is the furthest.
        ranges = sorted(zip(*columns, strict=True), key=lambda each: each[:2])
        changed = {stream: (high, frontier) for stream, high, frontier, _ in ranges}
        empty = {stream: low == high for stream, high, _, low in ranges}
        self.raise_highs({stream: high for stream, (high, _) in changed.items()})
        self._put([(stream, gate, None) for stream in changed if stream not in self._streams])
        found = [(stream, gate) for stream in changed if gate not in self._holders.get(stream, ())]
        if found:
            self._store.put_holders(found)
        for stream, gate_too in found:
            self._holders.setdefault(stream, set()).add(gate_too)
        for stream, record in self._streams.items():
            if stream in changed:
                seen = record.seen(gate, *changed[stream])
                own = empty[stream] if record.gate == gate else seen.empty
                self._streams[stream] = replace(seen, empty=own)

    def forget_gate(self, gate: str) -> None:
        """Forget a gate for good, and that it ever held anything; readers that miss its rows name it.

        Of a gate that has come back with another log, only the logs that it had before are forgotten.
        """
        own = self._gates[gate].info.get("log") if gate in self._gates else None
        lost = [log for log, place in self._logs.items() if place == gate and log != own]
        self._store.forget_logs(lost)
        self._forgotten.update(lost)
        self._logs = {log: place for log, place in self._logs.items() if log not in lost}
        if own is not None and lost:
            return
        self._store.forget_logs([own] if own else [])
        self._forgotten.update([own] if own else [])
        self._store.forget_gate(gate)
        self._forgotten.add(gate)
        self._logs = {log: place for log, place in self._logs.items() if place != gate}
        self._gates.pop(gate, None)
        for holders in self._holders.values():
            holders.discard(gate)

    def forget_streams(self, streams: Sequence[str]) -> None:
        """Forget streams; one that comes back continues after its last number."""
        self._store.forget_streams(streams)
        self.declared_version += 1
        for stream in streams:
            self._streams.pop(stream, None)
            self._holders.pop(stream, None)
            self._gone.discard(stream)

    def _stays(self, stream: str, now: float) -> bool:
        record = self._streams.get(stream)
        return record is not None and stream not in self._gone and self.accepts(record.gate, now)

    def accepts(self, gate: str, now: float) -> bool:
        """Whether a gate is there and may get streams."""
        return self._takes_rows(gate, now) and self.mode(gate) is GateMode.ACTIVE

    def _takes_rows(self, gate: str, now: float) -> bool:
        return not self.is_away(gate, now) and not self._gates[gate].info.get("draining")

    def _spread(self, streams: Sequence[str], now: float) -> dict[str, str]:
        """A gate for each stream, the one with the fewest; without a gate one waits for that which it had."""
        held = Counter(each.gate for each in self._streams.values())
        heap = [
            (held[each.address], each.address) for each in self.gates() if self.accepts(each.address, now)
        ]
        heapify(heap)
        found = {}
        for stream in streams:
            known = self._streams.get(stream)
            if heap:
                count, found[stream] = heap[0]
                heapreplace(heap, (count + 1, found[stream]))
            elif known is not None and known.gate:
                found[stream] = known.gate  # no other gate has its rows
            else:
                raise NoGate("no gate is there to take a stream; start one: penstock gate --controller …")
        return found

    def _put(self, streams: list[tuple[str, str, Mapping[str, Any] | None]]) -> None:
        """Write where streams are, then remember it; metadata of None keeps what was known."""
        if not streams:
            return
        records = []
        for stream, gate, metadata in streams:
            record = self._streams.get(stream) or StreamRecord(stream, gate, high=self.high(stream))
            records.append(replace(record, gate=gate, metadata=metadata or record.metadata))
        self._store.put_streams([(each.stream, each.gate, each.metadata) for each in records])
        for record in records:
            before = self._streams.get(record.stream)
            if before is None or before.metadata != record.metadata:
                self.declared_version += 1
            self._streams[record.stream] = record
            self._gone.discard(record.stream)
            if record.gate:
                self._holders.setdefault(record.stream, set()).add(record.gate)
