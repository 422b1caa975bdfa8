"""How far an inlet can be read, epoch after epoch, and who gives which rows of an epoch to which task.

Everything follows from offsets: the rows between two offsets are the same however often they are asked for,
whichever gates hold them by then. A stream with a hole, because a gate with acknowledged rows of it is away,
waits at the hole; all others go on.
"""

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import GateAway
from penstock.ingest.coverage import Pieces, Ranges, pieces, reached
from penstock.ingest.fair_shares import fair_shares
from penstock.ingest.gathering import Part
from penstock.ingest.offsets import Offsets
from penstock.ingest.reader import Wanted
from penstock.ingest.tasks import dealt
from penstock.ingest.watch import Held, Watch

__all__ = ["InletReader", "Waiting"]

ROWS_PER_TASK: Final = 20_000
"""Fewer rows than this are not worth a task of their own."""
_POLL_S: Final = 0.05
_ALL_THERE_S: Final = 10.0
"""How long the very first epoch waits for all gates, so that no stream is behind from the beginning."""


@dataclass(frozen=True)
class Waiting:
    """What a reader has seen but not taken: rows, streams that wait at a hole, gates that are away."""

    rows: int = 0
    streams: int = 0
    away: tuple[str, ...] = ()


class InletReader:
    """Reads one inlet under a name of its own, which tells gates what they may delete."""

    def __init__(self, watch: Watch, inlet: str, name: str, *, patience: float) -> None:
        self._watch = watch
        self._inlet = inlet
        self._name = name
        self._patience = patience
        self._held: Held | None = None
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
        """The rows between two offsets for at most so many tasks; waits for gates while patience lasts."""
        begin = start.joined(end.streams, end.began)
        wanted = int(end.following.sum() - begin.following.sum())
        if not wanted:
            return []
        since = time.monotonic()
        held = self._held or self._watch.held()
        while True:
            found = self._dealt(held, begin, end, most)
            if (
                sum(last - first for task in found for part in task for _, first, last in part.wanted)
                == wanted
            ):
                return found
            if time.monotonic() - since > self._patience:
                raise GateAway(
                    f"an epoch under way needs rows of inlet {self._inlet!r} that no gate has which answers "
                    f"({', '.join(held.away) or 'none'} away) for {self._patience:.0f} s; start all gates on "
                    "their folders, then the run, which goes on where it was"
                )
            time.sleep(_POLL_S)
            held = self._watch.held()

    def commit(self, offset: Offsets) -> None:
        """Tell the gates what is never asked for again."""
        body = {"inlet": self._inlet, "reader": self._name, "upto": offset.asdict()}
        self._watch.tell("committed", body)

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

    def _heard(self, held: Held, start: Offsets) -> None:
        self._held = held
        if held.gates and not self._answered:
            self._answered = True
            # Known from now on, so that nothing is deleted before this reader has had it.
            self.commit(start)
        if not self._answered and time.monotonic() - self._began > self._patience:
            raise GateAway(
                f"no gate of inlet {self._inlet!r} has answered for {self._patience:.0f} s "
                f"({', '.join(held.away) or 'nor has a controller'}); start one with `penstock gate`, or "
                "correct the address given to ps.gates()"
            )

    def _begun(self, start: Offsets, held: Held) -> Offsets:
        """The offset with the streams that are new, each at its first row.

        That is row 0, unless no gate has it any more because all readers there were are done with it. This is
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

    def _dealt(self, held: Held, begin: Offsets, end: Offsets, most: int) -> list[tuple[Part, ...]]:
        ranges, gate = _ranges(begin, held)
        found = pieces(ranges, begin.following, end.following)
        names = begin.streams.to_pylist()
        tasks = dealt(found, gate[found.range], most, ROWS_PER_TASK)
        return [_parts(held.gates, names, gates, own) for gates, own in tasks]


def _lowest(streams: Any, low: NDArray[np.int64]) -> dict[str, int]:
    """The lowest sequence of each stream, by name."""
    numbered = streams.dictionary_encode()
    lowest = np.full(len(numbered.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(lowest, numbered.indices.to_numpy(), low)
    return dict(zip(numbered.dictionary.to_pylist(), lowest.tolist(), strict=True))


def _ranges(begin: Offsets, held: Held) -> tuple[Ranges, NDArray[np.int64]]:
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
