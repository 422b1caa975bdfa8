"""The channels of windows whose results are delivered early, or corrected when late tuples come.

Panes stay until their windows are final. Partials that went into delivered results are apart from those that
did not: without early results the state is what was delivered of closed windows; with them, rows wait in a
second table until the next delivery.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.operators.aggregated import CHANGE
from penstock.operators.kernel import Channel
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.kernel import WindowKernel, WindowProgress, complete, of_pieces
from penstock.operators.windows.revising import INSERT, RETRACT, UPDATE, replaced, revised, touched
from penstock.operators.windows.sliding import Partials, close_windows, extents
from penstock.routing import PaneWindows
from penstock.state.pane_table import PANE, Piece
from penstock.state.segments import Segment

__all__ = ["RevisingKernel"]


@dataclass(frozen=True)
class RevisingKernel(WindowKernel):
    """Windows that are corrected for some time, or delivered early."""

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Deliver what is new of windows that are not final, and what differs from what was delivered."""
        (rows,) = channel.new
        before, after = (WindowProgress.of(each) for each in (channel.before, channel.after))
        opened = [each.open(channel.store, self, self._kept_from(before.final)) for each in self.pane_tables]
        state, kept = opened[0], self._kept_from(after.final)
        raw, tables = (rows, []) if channel.form == "rows" else (None, [] if rows is None else [rows])
        if self.early is not None:
            if not after.delivers(before):
                fresh = self.form(raw) if raw is not None else tables[0] if tables else None
                return (*state.close(None, kept), *opened[1].close(fresh, kept))
            tables += opened[1].every()
        added = _distinct(raw, tables)
        first = min([*added[:1].tolist(), *([] if state.first is None else [state.first])], default=None)
        work = [each for windows in self.windows for each in self._work(windows, first, added, before, after)]
        pieces = [state.pieces(*extents(windows, numbers)) for windows, numbers, _ in work]
        fresh = None
        held = state.held([piece for each in pieces for piece in each])
        if held or raw is not None or tables:
            block = self._block([*(table for _, table in held), *tables], raw)
            lengths = block.marked(0, [*(length for length, _ in held), *(0 for _ in tables)])
            for (windows, numbers, whole), own in zip(work, pieces, strict=True):
                for each in self._changes(block, lengths, windows, numbers, own, whole=whole):
                    channel.emit(each)
            fresh = block.rows.at(np.flatnonzero(lengths == 0))
            fresh = block.table(fresh if kept is None else fresh.at(np.flatnonzero(fresh.pane >= kept)))
        return tuple(state.close(fresh, kept, complete(first, before.closed, after.closed)))

    def _work(
        self,
        windows: PaneWindows,
        first: int | None,
        added: NDArray[np.int64],
        before: WindowProgress,
        after: WindowProgress,
    ) -> list[tuple[PaneWindows, range, bool]]:
        """Ranges of windows to look at, and whether they are delivered whole for the first time."""
        low = None if before.final is None else windows.first_with(before.final)
        if self.early is not None:
            return [(windows, each, False) for each in touched(windows, added, low, None)]
        closing = self._closing(windows, first, before.closed, after.closed)
        work = [(windows, closing, True)] if closing else []
        if before.closed is None:
            return work
        delivered = touched(windows, added, low, windows.first_with(before.closed))
        return [*((windows, each, False) for each in delivered), *work]

    def _changes(  # noqa: PLR0913 -- what is read of which windows
        self,
        block: PaneBlock,
        lengths: NDArray[Any],
        windows: PaneWindows,
        numbers: range,
        pieces: list[Piece],
        *,
        whole: bool,
    ) -> Iterator[Any]:
        """The rows that bring what was delivered of some windows to what holds now."""
        read = of_pieces(block.rows, lengths, pieces)
        if whole:
            rows = self._some(block, read | (lengths == 0))
            for each in close_windows(windows, numbers.start, numbers.stop, rows, block.merges):
                yield self._finished(block, windows, each, INSERT)
            return
        keys = np.zeros(int(block.rows.key.max()) + 1, np.bool_)
        keys[block.rows.key[lengths == 0]] = True
        mine = keys[block.rows.key]
        old, new = self._some(block, mine & read), self._some(block, mine & (read | (lengths == 0)))
        found = revised(windows, numbers, old, new, block.merges)
        if found is None:
            return
        if len(found.added.window):
            yield self._finished(block, windows, found.added, INSERT)
        if len(found.old.window):
            gone = self._finished(block, windows, found.old, RETRACT)
            come = self._finished(block, windows, found.new, UPDATE)
            pairs = replaced(gone, come, apart={CHANGE})
            if pairs.num_rows:
                yield pairs

    def _some(self, block: PaneBlock, chosen: NDArray[np.bool_]) -> Partials:
        """Some rows of a block, in an order in which they can be merged."""
        rows = block.rows.at(np.flatnonzero(chosen))
        return rows.by_pane() if self.ordered else rows


def _distinct(raw: Any, tables: list[Any]) -> NDArray[np.int64]:
    """The panes of some rows, ascending."""
    panes = [each[PANE].to_numpy() for each in ([] if raw is None else [raw]) + tables]
    return np.unique(np.concatenate(panes)) if panes else np.empty(0, np.int64)
