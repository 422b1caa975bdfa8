"""Moves state to the channels that a new router gives it; what stays is not touched, byte for byte.

One Spark task for each channel that loses keys reads its segments, writes the rows that go as new segments
for their channels, and leaves a mask beside each segment that has lost rows. All names are unique to the
attempt, and nothing counts before the manifest of the epoch does, so a replay moves the same again.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from penstock.runtime.placing import Placed, Placing
from penstock.runtime.segments import PANE, Segment, masked, read, store
from penstock.runtime.storage import Location

__all__ = ["MARKS", "Departure", "MoveTask", "StageState", "move_state"]

MARKS = " marks"
"""How the part of segments ends that hold something about each row of another part, in its order."""

_RECEIPT = StructType([StructField("receipt", StringType())])


@dataclass(frozen=True)
class StageState:
    """The segments of a stage by channel, and where their rows belong."""

    channels: tuple[tuple[Segment, ...], ...]
    placing: Placing


@dataclass(frozen=True)
class Departure:
    """What a channel of a stage kept, and what went from it to other channels."""

    kept: tuple[Segment, ...]
    gone: tuple[tuple[int, Segment], ...]
    rows: int = 0
    keys: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Departure":
        """What plain values stand for."""
        kept = tuple(Segment(**each) for each in value.pop("kept"))
        gone = tuple((target, Segment(**each)) for target, each in value.pop("gone"))
        return cls(kept, gone, **value)


def move_state(
    session: SparkSession, task: "MoveTask", sources: Sequence[int]
) -> dict[int, tuple[Departure, ...]]:
    """Run the moves out of these channels; for each, what became of every stage's state."""
    frame = session.range(0, len(sources), 1, len(sources))
    found = frame.mapInArrow(_Mover(task, tuple(sources)), _RECEIPT).collect()
    receipts = [json.loads(row["receipt"]) for row in found]
    return {
        each["channel"]: tuple(Departure.from_json(stage) for stage in each["stages"]) for each in receipts
    }


@dataclass(frozen=True)
class MoveTask:
    """One epoch's moves of a stage and of those that run in its channels."""

    folder: Location
    label: str
    stages: tuple[StageState, ...]

    def work(self, channel: int) -> tuple[Departure, ...]:
        """Move what goes from one channel."""
        return tuple(
            self._leave(f"{self.label}-{place}-{channel}", state.channels[channel], state.placing, channel)
            for place, state in enumerate(self.stages)
        )

    def _leave(self, label: str, segments: tuple[Segment, ...], placing: Placing, channel: int) -> Departure:
        parts = list(dict.fromkeys(each.part for each in segments if not each.part.endswith(MARKS)))
        leavings = [self._leave_part(label, part, segments, placing, channel) for part in parts]
        return Departure(
            tuple(segment for each in leavings for segment in each.kept),
            tuple(pair for each in leavings for pair in each.gone),
            sum(each.rows for each in leavings),
            sum(each.keys for each in leavings),
        )

    def _leave_part(
        self, label: str, part: str, segments: tuple[Segment, ...], placing: Placing, channel: int
    ) -> Departure:
        own = [each for each in segments if each.part == part]
        marks = [each for each in segments if each.part == part + MARKS]
        marking = pa.concat_tables([read(self.folder, each) for each in marks]) if marks else None
        kept: list[Segment] = []
        gone: list[tuple[int, Segment]] = []
        staying: list[Any] = []
        going: dict[int, list[Any]] = {}
        hashes: list[Any] = []
        rows = start = 0
        for segment in own:
            table = read(self.folder, segment)
            placed = placing.place(part, table, channel)
            if placed.stays.all() and not len(placed.rows):
                kept.append(segment)
            else:
                if placed.stays.any():
                    kept.append(masked(self.folder, segment, placed.stays))
                # Nodes can be formed anew from panes; they would claim to cover what others have in panes.
                if segment.length <= 1:
                    gone += self._store(label, segment, table, placed)
                    rows += len(placed.rows)
                    hashes += [placed.hashes[placed.rows]] if placed.hashes is not None else []
            if marking is not None:
                piece = marking.slice(start, segment.rows)
                staying.append(piece.filter(pa.array(placed.stays)))
                for target, at in _by_target(placed):
                    going.setdefault(target, []).append(piece.take(pa.array(at)))
            start += segment.rows
        if not gone and len(kept) == len(own) and all(map(Segment.__eq__, kept, own)):
            return Departure((*own, *marks), ())
        if marking is not None:
            kept += self._store_marks(label, part, staying)
            for target, pieces in going.items():
                gone += [(target, each) for each in self._store_marks(label, part, pieces)]
        keys = len(np.unique(np.concatenate(hashes))) if hashes else 0
        return Departure(tuple(kept), tuple(gone), rows, keys)

    def _store(self, label: str, segment: Segment, table: Any, placed: Placed) -> list[tuple[int, Segment]]:
        """The rows of a segment that go, in its order, one new segment for each channel."""
        stored = []
        for target, at in _by_target(placed):
            chosen = table.take(pa.array(at))
            first, end = _bounds(segment, chosen)
            stored.append(
                (
                    target,
                    store(
                        self.folder,
                        f"{label}-to-{target}",
                        chosen,
                        first=first,
                        end=end,
                        length=segment.length,
                        part=segment.part,
                    ),
                )
            )
        return stored

    def _store_marks(self, label: str, part: str, pieces: list[Any]) -> list[Segment]:
        table = pa.concat_tables(pieces)
        if not table.num_rows:
            return []
        return [store(self.folder, f"{label}-marks", table, first=0, end=0, part=part + MARKS)]


def _by_target(placed: Placed) -> Iterator[tuple[int, Any]]:
    """The rows that go to each channel, in their order."""
    if not len(placed.rows):
        return
    rows, targets = placed.rows, placed.targets.astype(np.int16)
    if (rows[1:] < rows[:-1]).any():
        ordered = np.argsort(rows, kind="stable")
        rows, targets = rows[ordered], targets[ordered]
    # Numbers of 16 bits are sorted by radix: linear, and several times faster than by comparison.
    order = np.argsort(targets, kind="stable")
    sizes = np.bincount(targets)
    found = np.flatnonzero(sizes)
    pieces = np.split(rows[order], np.cumsum(sizes[found])[:-1])
    yield from zip(found.tolist(), pieces, strict=True)


def _bounds(segment: Segment, chosen: Any) -> tuple[int, int]:
    """The panes that rows of windows span; of other state, the bounds of where they come from."""
    if PANE not in chosen.column_names:
        return segment.first, segment.end
    panes = chosen[PANE].to_numpy()
    return int(panes.min()), int(panes.max()) + segment.length


@dataclass(frozen=True)
class _Mover:
    """What Spark ships to the workers: the task, told its channel by the partition it runs on."""

    task: MoveTask
    sources: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        context = TaskContext.get()
        assert context is not None
        channel = self.sources[context.partitionId()]
        began = time.perf_counter()
        stages = [asdict(each) for each in self.task.work(channel)]
        receipt = {"channel": channel, "stages": stages, "seconds": time.perf_counter() - began}
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(receipt)])], names=["receipt"])
