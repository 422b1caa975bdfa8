"""What a gate does with each batch: take it, know it again, let it wait, redirect it or refuse it.

A batch is answered when it is durable, and every batch is answered. Rows in memory are bounded for each
stream and in all.
"""

import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadMessage, GateError, LogFull, NotAllowed, SequenceGap, TooLarge, TooMany
from penstock.ingest.call import Call
from penstock.ingest.flow import Flow
from penstock.ingest.group_commit import Entry
from penstock.ingest.inlets import Inlets
from penstock.ingest.limits import Limits
from penstock.ingest.log import Log
from penstock.ingest.metadata import Metadata
from penstock.ingest.pressure import LATER, reason_to_wait
from penstock.ingest.record import checksum
from penstock.ingest.sequencing import judge
from penstock.ingest.wire import Push

__all__ = ["Intake"]

_PATIENCE: Final = 0.2
"""Seconds that a push is held up for room in memory before its client is told to wait."""


class Intake:
    """All streams of a gate between their clients and the log."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        self.flows: dict[str, Flow] = {}
        self.counts: Counter[str] = Counter()
        self.pending_bytes = 0
        self.draining = False
        self.drained_to: str | None = None
        self.trouble: str | None = None
        self.room = threading.Condition(threading.RLock())
        self.log = Log(folder, limits, self._durable, self._failed)
        self.inlets = Inlets(self.log.catalogue)

    def push(self, call: Call, message: Push, batch: pa.RecordBatch) -> None:
        """Take a batch or answer why not."""
        try:
            flow = self._enter(call, message, batch)
            self._judged(call, flow, message, batch)
        except SequenceGap as gap:
            call.answers.say(
                message.stream, {**refusal(gap), "expected": self.flows[message.stream].expected}
            )
        except GateError as error:
            self.counts["refused"] += 1
            call.answers.say(message.stream, refusal(error))
        except OSError as error:
            with self.room:
                self._let_wait(call, Flow(message.stream, self.log.next(message.stream)), LATER, _full(error))

    def leave(self, call: Call) -> None:
        """End a push: return when all that it handed in is answered."""
        with self.room:
            self.room.wait_for(lambda: not call.waiting)
            for stream in call.streams:
                self.flows[stream].hearers.discard(call)
                if self.flows[stream].call is call:
                    self.flows[stream].call = None
        call.answers.close()

    def close(self) -> None:
        """Make everything taken durable and answered, then close the log."""
        self.log.close()

    def _enter(self, call: Call, message: Push, batch: pa.RecordBatch) -> Flow:
        flow = self.flows.get(message.stream)
        if flow is None or message.stream not in call.streams:
            flow = self._admit(call, message)
        self._check(message, batch)
        if message.declare is not None:
            self._declare(flow, message.declare)
        return flow

    def _check(self, message: Push, batch: pa.RecordBatch) -> None:
        size, rows = batch.get_total_buffer_size(), batch.num_rows
        if size > self.limits.message_bytes or rows > self.limits.message_rows:
            raise TooLarge(
                f"a batch of {rows:,} rows in {size:,} bytes of stream {message.stream!r}; at most "
                f"{self.limits.message_rows:,} rows in {self.limits.message_bytes:,} bytes: send fewer"
            )
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise BadMessage(
                f"the rows of stream {message.stream!r} are no sound Arrow batch: {error}"
            ) from None

    def _admit(self, call: Call, message: Push) -> Flow:
        stream = message.stream
        if not call.may_push(stream):
            raise NotAllowed(
                f"this token may not push to stream {stream!r}; use one whose push rights cover it"
            )
        self.inlets.check(stream, call.schema)
        with self.room:
            if len(call.streams) >= self.limits.streams_per_client:
                raise TooMany(
                    f"stream {stream!r} would be number {len(call.streams) + 1} of this push; at most "
                    f"{self.limits.streams_per_client} are taken: open another connection"
                )
            if stream not in self.flows and len(self.flows) >= self.limits.streams:
                raise TooMany(
                    f"the gate has {len(self.flows)} streams, its limit; send {stream!r} to another gate"
                )
            call.streams.add(stream)
            if stream not in self.flows:
                self.flows[stream] = Flow(stream, self.log.next(stream))
            return self.flows[stream]

    def _declare(self, flow: Flow, declared: dict[str, Any]) -> None:
        metadata = Metadata.of(declared)
        if self.log.catalogue.declared.get(flow.stream) != metadata.given():
            self.log.catalogue.declare(flow.stream, metadata.given())

    def _judged(self, call: Call, flow: Flow, message: Push, batch: pa.RecordBatch) -> None:
        """Serialise outside the lock what will most likely be taken; look again if another came between."""
        while True:
            skip = judge(flow.expected, message.sequence, batch.num_rows, connect=message.connect).skip
            part = batch.slice(skip) if skip else batch
            payload = part.serialize() if part.num_rows else b""
            total = checksum(payload)
            with self.room:
                roomy = self.room.wait_for(lambda: self._has_room(len(payload)), _PATIENCE)  # noqa: B023 -- called at once
                verdict = judge(flow.expected, message.sequence, batch.num_rows, connect=message.connect)
                if verdict.skip != skip:
                    continue
                flow.call = call
                if self._turned_away(call, flow, message, len(payload), gap=verdict.gap, roomy=roomy):
                    return
                self.counts["duplicates"] += skip
                if part.num_rows:
                    first = message.sequence + skip
                    self._take(
                        flow, Entry(flow.stream, first, part.num_rows, message.frontier, payload, total, call)
                    )
                else:
                    flow.promise(message.frontier)
                    if flow.pending:
                        flow.hearers.add(call)
                    self._settle(flow)
                    call.answers.acknowledge(flow.stream, flow.durable, self._credit(flow))
                return

    def _has_room(self, size: int) -> bool:
        return not self.pending_bytes or self.pending_bytes + size <= self.limits.gate_bytes

    def _turned_away(  # noqa: PLR0913 -- what is known of the batch
        self, call: Call, flow: Flow, message: Push, size: int, *, gap: bool, roomy: bool
    ) -> bool:
        """Whether the batch was answered with a wait or a redirection; raises if it would leave a hole."""
        if message.connect and not self.draining:
            flow.redirected_to = None
        target = self.drained_to if self.draining else flow.redirected_to
        if target:
            flow.redirect(target)
            return True
        if gap and not flow.told_to_wait:
            raise SequenceGap(
                f"stream {flow.stream!r}: row {message.sequence} came where {flow.expected} was expected; "
                f"send again from {flow.expected}"
            )
        if message.connect and message.sequence > flow.expected:
            flow.begin(message.sequence)
        reason = reason_to_wait(self, flow, size, roomy=roomy) if size else None
        if reason or gap:
            seconds, error = reason or (flow.told_to_wait, LogFull("rows before these have to wait"))
            self._let_wait(call, flow, seconds, error)
        return bool(reason or gap)

    def _let_wait(self, call: Call, flow: Flow, seconds: float, error: GateError) -> None:
        flow.told_to_wait = seconds
        self.counts["waits"] += 1
        answer = {"acknowledged": flow.durable, "credit": 0, "wait": seconds}
        call.answers.say(flow.stream, {**answer, "reason": type(error).__name__, "message": str(error)})

    def _take(self, flow: Flow, entry: Entry) -> None:
        flow.told_to_wait = 0.0
        flow.take(entry.sequence + entry.rows, entry.size)
        entry.tag.waiting += 1
        self.pending_bytes += entry.size
        self.log.append(entry)

    def _credit(self, flow: Flow) -> int:
        return max(self.limits.stream_bytes - flow.pending_bytes, 0)

    def _durable(self, entries: list[Entry]) -> None:
        with self.room:
            self.trouble = None
            for entry in entries:
                flow = self._leave(entry)
                flow.store(entry)
                self.counts["rows"] += entry.rows
                self.counts["bytes"] += entry.size
                self.counts["batches"] += 1
                for call in {entry.tag, *flow.hearers}:
                    call.answers.acknowledge(flow.stream, flow.durable, self._credit(flow))
                self._settle(flow)
            self.room.notify_all()

    def _failed(self, error: Exception, entries: list[Entry]) -> None:
        """Answer with a wait: nothing of these, nor of those that wait behind them, is in the file."""
        full = _full(error)
        with self.room:
            self.trouble = str(full)
            self.counts["failed writes"] += 1
            for entry in reversed([*entries, *self.log.take_back()]):
                flow = self._leave(entry)
                flow.expected, flow.promised = entry.sequence, None
                self._let_wait(entry.tag, flow, LATER, full)
                self._settle(flow)
            self.room.notify_all()

    def _settle(self, flow: Flow) -> None:
        """With nothing on its way, a frontier holds and a redirection is told."""
        if not flow.pending:
            flow.hearers.clear()
            if flow.promised is not None:
                self.log.promise(flow.stream, flow.promised)
            flow.tell()

    def _leave(self, entry: Entry) -> Flow:
        flow = self.flows[entry.stream]
        flow.pending -= 1
        flow.pending_bytes -= entry.size
        self.pending_bytes -= entry.size
        entry.tag.waiting -= 1
        return flow


def _full(error: Exception) -> LogFull:
    return LogFull(f"the log cannot be written ({error}); rows wait until it can: make room on the disk")


def refusal(error: GateError) -> dict[str, Any]:
    """The answer that refuses a batch."""
    return {"refused": type(error).__name__, "message": str(error)}
