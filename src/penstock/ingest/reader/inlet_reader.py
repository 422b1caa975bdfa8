"""How far an inlet can be read, epoch after epoch, and which gate gives which rows of an epoch to which task.

Everything follows from offsets: the rows between two offsets are the same however often they are asked for,
whichever gates hold them by then. A stream with a hole, because a gate with acknowledged rows of it is away,
waits at the hole; all others continue.
"""

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import GateAway
from penstock.ingest.reader.coverage import Pieces, Ranges, pieces, reached
from penstock.ingest.reader.gate_reader import Part, Wanted
from penstock.ingest.reader.gate_watch import GateWatch, HeldRanges
from penstock.ingest.reader.offsets import Offsets
from penstock.ingest.wire.protocol import Committed

__all__ = ["InletReader", "Waiting", "fair_shares", "split_into_tasks"]


def fair_shares(wanted: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """How many rows each stream may have, `limit` in total or as many as are wanted.

    Max-min fair: streams that want less than an equal share get all they want, the others share the rest.

    >>> fair_shares(np.array([1, 10, 100]), 31).tolist()
    [1, 10, 20]
    """
    if int(wanted.sum()) <= limit:
        return wanted.copy()
    ascending = np.sort(wanted)
    below = np.concatenate(([0], np.cumsum(ascending)[:-1]))
    # The level if the k smallest get all they want; the first that holds is the one.
    levels = (limit - below) // np.arange(len(wanted), 0, -1)
    level = int(levels[np.argmax(levels < ascending)])
    shares = np.minimum(wanted, level)
    # What division leaves goes to the longest backlogs, so that no stream starves under a very small limit.
    left = limit - int(shares.sum())
    longest = np.argsort(shares - wanted, kind="stable")[:left]
    shares[longest] += 1
    return shares


def split_into_tasks(
    given: Pieces, gate: NDArray[np.int64], most: int, rows_each: int
) -> list[tuple[NDArray[np.int64], Pieces]]:
    """The gates and pieces of every task: at most `most` tasks, and no more than the rows are worth.

    All pieces are laid on one line, those of one gate and then of one stream side by side, and the line is
    cut into equal parts. So a task asks few gates, and the rows of a stream stay in order, in one task or in
    neighbouring ones. `gate` is the number of the gate for each piece, `rows_each` how many rows are worth a
    task.
    """
    if not len(given.range):
        return []
    order = np.lexsort((given.first, given.stream, _home(given.stream, gate)))
    length = (given.last - given.first)[order]
    ends = np.cumsum(length)
    total = int(ends[-1])
    tasks = max(1, min(most, -(-total // rows_each)))
    cuts = np.linspace(0, total, tasks + 1).astype(np.int64)
    # Between two neighbouring marks lie rows of one piece that go to one task.
    marks = np.unique(np.concatenate((cuts[:-1], ends - length)))
    piece = np.searchsorted(ends, marks, side="right")
    task = np.searchsorted(cuts, marks, side="right") - 1
    first = given.first[order][piece] + marks - (ends - length)[piece]
    last = first + np.diff(marks, append=total)
    whole = order[piece]
    return [
        (gate[whole[own]], Pieces(given.range[whole[own]], given.stream[whole[own]], first[own], last[own]))
        for own in (np.flatnonzero(task == number) for number in range(tasks))
        if len(own)
    ]


def _home(stream: NDArray[np.int64], gate: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each piece the gate of its stream's first piece."""
    streams, first, back = np.unique(stream, return_index=True, return_inverse=True)
    del streams
    return gate[first][back]


ROWS_PER_TASK: Final = 20_000
"""Fewer rows than this are not worth a task of their own."""
_POLL_S: Final = 0.05
_ALL_THERE_S: Final = 10.0
"""How long the very first epoch waits for all gates, so that no stream lags from the beginning."""


@dataclass(frozen=True)
class Waiting:
    """What a reader has seen but not taken: rows, streams that wait at a hole, gates that are away."""

    rows: int = 0
    streams: int = 0
    away: tuple[str, ...] = ()


class InletReader:
    """Reads one inlet under a name of its own, which tells gates what they may delete."""

    def __init__(self, watch: GateWatch, inlet: str, name: str, *, patience: float) -> None:
        self._watch = watch
        self._inlet = inlet
        self._name = name
        self._patience = patience
        self._held: HeldRanges | None = None
        self._answered = False
        self._began = time.monotonic()
        self._later: dict[str, float] = {}
        self.waiting = Waiting()

    def latest(self, start: Offsets, limit: int | None) -> Offsets:
        """How far the inlet can be read from an offset, by `limit` rows at most; looks twice."""
        end = self._ahead(start, limit)
        if end is start:
            time.sleep(_POLL_S)
            end = self._ahead(start, limit)
        return end

    def tasks(self, start: Offsets, end: Offsets, most: int) -> list[tuple[Part, ...]]:
        """The rows between two offsets for at most `most` tasks; waits up to `patience` seconds for gates."""
        begin = start.joined(end.streams, end.began)
        wanted = int(end.following.sum() - begin.following.sum())
        if not wanted:
            return []
        since = time.monotonic()
        held = self._held or self._watch.held()
        while True:
            found = self._tasks(held, begin, end, most)
            if (
                sum(last - first for task in found for part in task for _, first, last in part.wanted)
                == wanted
            ):
                return found
            if time.monotonic() - since > self._patience:
                raise GateAway(
                    f"an epoch under way needs rows of inlet {self._inlet!r} that no gate has which answers "
                    f"({', '.join(held.away) or 'none'} away) for {self._patience:.0f} s; start all gates on "
                    "their folders, then the run, which continues where it was"
                )
            time.sleep(_POLL_S)
            held = self._watch.held()

    def commit(self, offset: Offsets) -> None:
        """Tell the gates what is never asked for again."""
        self._watch.tell(Committed(self._inlet, self._name, offset.asdict()))

    def close(self) -> None:
        """Let the gates go."""
        self._watch.close()

    def _ahead(self, start: Offsets, limit: int | None) -> Offsets:
        held = self._watch.held()
        self._heard(held, start)
        if not len(start.streams) and held.since is None and time.monotonic() - self._began < _ALL_THERE_S:
            return start
        begin = self._begun(start, held)
        ranges, _ = _ranges(begin, held)
        end = reached(ranges, begin.following)
        ahead = end - begin.following
        highest = begin.following.copy()
        np.maximum.at(highest, ranges.stream, ranges.high)
        self.waiting = Waiting(int((highest - begin.following).sum()), int((highest > end).sum()), held.away)
        shares = ahead if limit is None else fair_shares(ahead, limit)
        if not shares.any():
            return start
        return replace(begin, following=begin.following + shares)

    def _heard(self, held: HeldRanges, start: Offsets) -> None:
        self._held = held
        if held.gates and not self._answered:
            self._answered = True
            # Known from now on, so that nothing is deleted before this reader has had it.
            self.commit(start)
        if not self._answered and time.monotonic() - self._began > self._patience:
            raise GateAway(
                f"no gate of inlet {self._inlet!r} has answered for {self._patience:.0f} s "
                f"({', '.join(held.away) or 'no controller either'}); start one with `penstock gate`, or "
                "correct the address given to ps.gates()"
            )

    def _begun(self, start: Offsets, held: HeldRanges) -> Offsets:
        """The offset with the streams that are new, each at its first row.

        That is row 0, unless no gate has it any more because all earlier readers have committed it. This is
        only known when every gate was asked after the stream had been seen: its earlier rows could lie on
        a gate that was asked before they came, or on one that is away.
        """
        new = start.numbers(held.streams) < 0
        if not new.any():
            return start
        lowest = _lowest(held.streams.filter(new), held.low[new])
        begun = {}
        for name, low in lowest.items():
            seen = self._later.setdefault(name, time.monotonic()) if low else 0.0
            if not low or (held.since is not None and held.since > seen):
                begun[name] = low
        self._later = {name: seen for name, seen in self._later.items() if name not in begun}
        later = {name: low for name, low in begun.items() if low}
        return start.joined(pa.array(list(begun), pa.string()), later)

    def _tasks(self, held: HeldRanges, begin: Offsets, end: Offsets, most: int) -> list[tuple[Part, ...]]:
        ranges, gate = _ranges(begin, held)
        found = pieces(ranges, begin.following, end.following)
        names = begin.streams.to_pylist()
        tasks = split_into_tasks(found, gate[found.range], most, ROWS_PER_TASK)
        return [_parts(held.gates, names, gates, own) for gates, own in tasks]


def _lowest(streams: Any, low: NDArray[np.int64]) -> dict[str, int]:
    """The lowest sequence of each stream, by name."""
    numbered = streams.dictionary_encode()
    lowest = np.full(len(numbered.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(lowest, numbered.indices.to_numpy(), low)
    return dict(zip(numbered.dictionary.to_pylist(), lowest.tolist(), strict=True))


def _ranges(begin: Offsets, held: HeldRanges) -> tuple[Ranges, NDArray[np.int64]]:
    """The ranges of the streams that an offset has, and the gate of each."""
    number = begin.numbers(held.streams)
    known = number >= 0
    return Ranges(number[known], held.low[known], held.high[known]), held.gate[known]


def _parts(
    gates: tuple[str, ...], names: list[str], gate: NDArray[np.int64], own: Pieces
) -> tuple[Part, ...]:
    """One call for each gate; more only where a stream has pieces on several, one after the other."""
    turn = _turns(own.stream)
    order = np.lexsort((own.stream, gate, turn))
    call = (turn * len(gates) + gate)[order]
    bounds = np.flatnonzero(np.diff(call, prepend=-1, append=-1))
    return tuple(
        Part(gates[int(gate[order[low]])], _wanted(names, own, order[low:high]))
        for low, high in pairwise(bounds.tolist())
    )


def _wanted(names: list[str], own: Pieces, places: NDArray[np.int64]) -> tuple[Wanted, ...]:
    columns = (own.stream[places].tolist(), own.first[places].tolist(), own.last[places].tolist())
    return tuple((names[stream], first, last) for stream, first, last in zip(*columns, strict=True))


def _turns(stream: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each piece how many of its stream come before it; the pieces of a stream are side by side."""
    begins = np.flatnonzero(np.diff(stream, prepend=-1))
    return np.arange(len(stream)) - np.repeat(begins, np.diff(begins, append=len(stream)))
