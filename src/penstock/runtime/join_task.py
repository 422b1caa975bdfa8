"""The channel kernel of joins: new rows of both sides and segments in, pairs and new segments out."""

import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.compile import JoinPlan
from penstock.joins import Frontiers, Pair, Within, step
from penstock.runtime.exits import Exit, OpenExits
from penstock.runtime.join_state import Keeping
from penstock.runtime.key_counts import KeyCounts, count_keys
from penstock.runtime.receipts import Receipt
from penstock.runtime.segments import Segment
from penstock.runtime.storage import Location

__all__ = ["SIDE", "SLOT", "JoinTask"]

SIDE, SLOT = "_ps_side", "_ps_slot{}"


@dataclass(frozen=True)
class JoinTask:
    """One epoch's work for every channel of a join.

    `before` and `after` are the frontiers of the two sides around the epoch.
    """

    plan: JoinPlan
    folder: Location
    label: str
    state: tuple[tuple[Segment, ...], ...]
    before: Frontiers
    after: Frontiers
    exits: tuple[Exit, ...]

    def work(self, channel: int, new: Any) -> tuple[Receipt, dict[int, Any]]:
        """The kernel proper, from new rows (None if there are none) to a receipt."""
        began = time.perf_counter()
        segments = self.state[channel]
        if new is None and not segments:
            return Receipt(channel, (), ()), {}
        rows = Pair(self._side(new, 0), self._side(new, 1))
        keeping = Pair(self._keeping(channel, 0, "left"), self._keeping(channel, 1, "right"))
        kept = Pair(
            keeping.left.load(segments, self._alive_from(self.before.right)),
            keeping.right.load(segments, self._alive_from(self.before.left)),
        )
        files = OpenExits(self.exits)
        remains = step(
            self.plan.join,
            Pair(kept.left.held(), kept.right.held()),
            rows,
            self.before,
            self.after,
            lambda table: files.write(self.plan.result(table)),
        )
        left = keeping.left.save(kept.left, rows.left, remains.left)
        right = keeping.right.save(kept.right, rows.right, remains.right)
        received = 0 if new is None else new.num_rows
        receipt = Receipt(
            channel,
            (*left, *right),
            files.close(),
            received=received,
            tuples=received,
            seconds=time.perf_counter() - began,
            keys=self._keys(rows),
        )
        return receipt, files.onward()

    def _keys(self, rows: Pair[Any]) -> KeyCounts:
        names = list(self.plan.join.left.keys)
        both = pa.concat_tables([rows.left.select(names), rows.right.select(names)])
        return count_keys(both.columns, both.num_rows)

    def _keeping(self, channel: int, side: int, part: str) -> Keeping:
        last = not isinstance(self.plan.join.bound, Within)
        return Keeping(
            self.folder,
            f"{self.label}-{channel}",
            part,
            self.plan.side_schema(side),
            marked=last or self.plan.join.keeps_unmatched[side],
        )

    def _alive_from(self, frontier: int | None) -> int | None:
        """The time before which rows of a side had left when the epoch began."""
        bound = self.plan.join.bound
        return frontier - bound.distance if frontier is not None and isinstance(bound, Within) else None

    def _side(self, new: Any, side: int) -> Any:
        schema = self.plan.side_schema(side)
        if new is None:
            return schema.empty_table()
        sent = new.select([SLOT.format(slot) for slot in self.plan.slots[side]])
        rows = sent.filter(pc.equal(new[SIDE], side)).combine_chunks()
        return pa.Table.from_arrays(rows.columns, schema=schema) if rows.num_rows else schema.empty_table()
