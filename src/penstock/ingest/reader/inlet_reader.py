"""How far an inlet can be read, epoch after epoch, and which gate gives which rows of an epoch to which task.

Everything follows from offsets: the rows between two offsets are the same however often they are asked for,
whichever gates hold them by then. A stream with a hole, because a gate with acknowledged rows of it is away,
waits at the hole; all others continue. A hole that stays although every gate answers is an error, unless its
rows were given up. So is a gate that uses numbers again that this reader has passed.
"""

import logging
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.control.expected import Expected, QueryLoad
from penstock.errors import GateAway, RowsGone
from penstock.ingest.reader.coverage import Pieces, Ranges, pieces, reached
from penstock.ingest.reader.gate_reader import Part, Wanted
from penstock.ingest.reader.gate_watch import GateWatch, HeldRanges
from penstock.ingest.reader.offsets import Offsets
from penstock.ingest.wire.protocol import Committed, QueryState, ReaderPosition

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
    """What a reader has seen but not taken: rows, streams that wait at a hole, gates that are away.

    `expected` counts the streams that are known and of which no row has come yet.
    """

    rows: int = 0
    streams: int = 0
    away: tuple[str, ...] = ()
    expected: int = 0


_FAR: Final = 2**62
_MOST_NAMES: Final = 1000
"""Streams that an offset names as expected; they hold the frontier back, so that all others come up too."""
_LOGGER = logging.getLogger("penstock.run")


class InletReader:
    """Reads one inlet under a name of its own, which tells gates what they may delete.

    `run` is what people call it.
    """

    def __init__(
        self, watch: GateWatch, inlet: str, name: str, *, patience: float, run: str | None = None
    ) -> None:
        self._watch = watch
        self._inlet = inlet
        self._name = name
        self._run = run
        self._patience = patience
        self._held: HeldRanges | None = None
        self._answered = False
        self._began = time.monotonic()
        self._later: dict[str, float] = {}
        self._missing: dict[tuple[str, int], float] = {}
        self._told_away: tuple[str, ...] = ()
        self.waiting = Waiting()
        self.left = 0
        """Rows that could be read and that the last offset leaves for later."""

    def latest(self, start: Offsets, limit: int | None) -> Offsets:
        """How far the inlet can be read from an offset, by `limit` rows at most; `start` if none is new."""
        held = self._watch.held()
        self._heard(held, start)
        self._check_numbers(held, start)
        if not self._answered:
            return start
        if not len(start.streams) and held.since is None and time.monotonic() - self._began < _ALL_THERE_S:
            return start
        begun = self._begun(start, held)
        skipped = _after_given_up(begun, held)
        begin = begun.moved(skipped)
        ranges, _ = _ranges(begin, held)
        end = reached(ranges, begin.following)
        ahead = end - begin.following
        highest = begin.following.copy()
        np.maximum.at(highest, ranges.stream, ranges.high)
        np.maximum(highest, _known_highs(begin, held), out=highest)
        holes = np.flatnonzero(highest > end)
        self._name_holes(held, [(begin.streams[int(each)].as_py(), int(end[each])) for each in holes])
        shares = ahead if limit is None else fair_shares(ahead, limit)
        self.left = int((ahead - shares).sum())
        taken = replace(begin, following=begin.following + shares, skipped=skipped)
        expected = self._expected(held, taken)
        rows = int((highest - begin.following).sum())
        self.waiting = Waiting(rows, len(holes), held.away, len(expected))
        heard = held.promises
        taken = taken.hearing(heard.streams, heard.frontier, heard.at)
        if not shares.any() and taken.promised is begin.promised:
            return start
        self._report(start, taken)
        return replace(taken, waiting=expected, away=held.away, logs={**start.logs, **held.logs})

    def tasks(self, start: Offsets, end: Offsets, most: int) -> list[tuple[Part, ...]]:
        """The rows between two offsets for at most `most` tasks; waits up to `patience` seconds for gates."""
        begin = start.joined(end.streams, end.began).moved(end.skipped)
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

    def commit(self, offset: Offsets) -> bool:
        """Tell the gates what is never asked for again; whether every controller knows of it."""
        positions = offset.asdict()
        known = self._answered or self._watch.tell_controllers(
            ReaderPosition(self._inlet, self._name, positions, self._run)
        )
        self._watch.tell(Committed(self._inlet, self._name, positions, self._run))
        return known

    def outlook(self, load: QueryLoad) -> Expected | None:
        """Tell the controller how the run is; what it last said of the rates to expect. Returns at once."""
        lag = max(load.lag, self.left)
        asked = QueryState(self._inlet, self._name, lag, load.row_seconds, load.bound)
        answer = self._watch.ask_controller(asked)
        return Expected.from_json(answer.to_object()) if answer is not None and answer.rates else None

    def close(self) -> None:
        """Let the gates go."""
        self._watch.close()

    def _report(self, start: Offsets, end: Offsets) -> None:
        """Let controllers know how far this reader goes, before it does: no number below is given again.

        Only what has changed is sent. While a controller is away, it gives no numbers.
        """
        before = start.asdict()
        changed = {name: at for name, at in end.asdict().items() if before.get(name) != at}
        self._watch.tell_controllers(ReaderPosition(self._inlet, self._name, changed, self._run))

    def _expected(self, held: HeldRanges, taken: Offsets) -> tuple[str, ...]:
        """Streams of which rows are expected and none has come; a gate that never answered counts as one."""
        known = {*(held.known or ()), *self._later}
        names = sorted(known - taken.given())[:_MOST_NAMES] if known else []
        return (*names, *(f"all streams of gate {each}" for each in held.unseen))

    def _check_numbers(self, held: HeldRanges, start: Offsets) -> None:
        """Raise if a gate uses numbers again that this reader has passed, since it would skip those rows.

        A controller never lets this happen. Without one, a gate forgets its numbers with its disk.
        """
        if held.known is not None:
            _check_logs(held, start)
            return
        if not len(start.streams):
            return
        number = start.numbers(held.streams)
        place = np.flatnonzero((number >= 0) & (held.high > held.low) & ~held.given_up)
        stands = start.following[number[place]]
        changed = np.array([_has_new_log(start, held, gate) for gate in held.gates], bool)
        again = changed[held.gate[place]] & (held.low[place] < stands)
        highest = np.full(len(start.following), -1)
        np.maximum.at(highest, number[number >= 0], held.high[number >= 0])
        below = (highest[number[place]] < stands) & (held.since is not None)
        for each in np.flatnonzero(again | below)[:1]:
            line = int(place[each])
            stream, gate = held.streams[line].as_py(), held.gates[int(held.gate[line])]
            raise RowsGone(
                f"gate {gate} holds rows {int(held.low[line])} to {int(held.high[line])} of {stream!r}, but "
                f"this reader has had all up to {int(stands[each])}: the folder of the gate was emptied or "
                "restored, and numbers are used again. Start the gate on its old folder, or empty it and let "
                f"the client push from sequence={int(stands[each])} on; a controller prevents this"
            )

    def _name_holes(self, held: HeldRanges, holes: list[tuple[str, int]]) -> None:
        """Say which gates are away; raise if rows are on no gate though every gate has answered for long."""
        now = time.monotonic()
        if held.away and held.away != self._told_away:
            _LOGGER.warning(
                "inlet %s: no answer from gate %s; %d streams wait for rows that may be there",
                self._inlet,
                ", ".join(held.away),
                len(holes),
            )
        self._told_away = held.away
        if held.since is None:
            return
        known, self._missing = self._missing, {}
        for stream, position in holes:
            seen = self._missing[stream, position] = known.get((stream, position), now)
            # Only an answer that was asked for later shows that no gate has the rows.
            if held.since > seen and now - seen > self._patience:
                raise self._gone(held, stream, position)

    def _gone(self, held: HeldRanges, stream: str, position: int) -> RowsGone:
        lows = held.low[pc.equal(held.streams, stream).to_numpy(zero_copy_only=False)]
        following = min([*lows[lows > position].tolist(), (held.known or {}).get(stream, _FAR)])
        gone = f" (forgotten gates: {', '.join(held.forgotten)})" if held.forgotten else ""
        return RowsGone(
            f"rows {position} to {following} of stream {stream!r} are on no gate of {', '.join(held.gates)}"
            f"{gone}, but were acknowledged, for {self._patience:.0f} s: start the gate that had them, let "
            f"the client push again from sequence={position} on, or give them up: penstock gate --give-up "
            f"{stream}:{position}-{following}"
        )

    def _heard(self, held: HeldRanges, start: Offsets) -> None:
        self._held = held
        if held.gates and not self._answered:
            # Known from now on, so that nothing is deleted before this reader has had it.
            self._answered = self.commit(start)
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
    known = (number >= 0) & ~held.given_up
    return Ranges(number[known], held.low[known], held.high[known]), held.gate[known]


def _known_highs(begin: Offsets, held: HeldRanges) -> NDArray[np.int64]:
    """How far each stream went, as a controller has seen it: rows before that were there."""
    highs = np.zeros(len(begin.following), np.int64)
    if held.known:
        number = begin.numbers(pa.array(list(held.known), pa.string()))
        highs[number[number >= 0]] = np.array(list(held.known.values()), np.int64)[number >= 0]
    return highs


def _check_logs(held: HeldRanges, start: Offsets) -> None:
    """Raise if a gate has come with another log: rows that it had acknowledged may be gone unread."""
    there = {*held.logs.values(), *held.forgotten}
    for gate in held.gates:
        if _has_new_log(start, held, gate) and start.logs[gate] not in there:
            raise RowsGone(
                f"gate {gate} has come with another log than before: its folder was emptied or replaced, and "
                "rows that it had acknowledged may be gone. Start it on its old folder; if that is lost, say "
                f"so: penstock gates forget {gate}; readers then continue with what there is"
            )


def _has_new_log(start: Offsets, held: HeldRanges, gate: str) -> bool:
    return gate in start.logs and gate in held.logs and start.logs[gate] != held.logs[gate]


def _after_given_up(begin: Offsets, held: HeldRanges) -> dict[str, int]:
    """Where streams continue that stand at rows which were given up, and which no gate holds.

    Only known when every gate has answered: one that is away may hold the rows.
    """
    if held.since is None or not held.given_up.any():
        return {}
    number = begin.numbers(held.streams)
    places = np.flatnonzero(held.given_up & (number >= 0))
    places = places[np.argsort(held.low[places], kind="stable")]
    ranges, _ = _ranges(begin, held)
    stuck = reached(ranges, begin.following) == begin.following
    at = begin.following.copy()
    for place in places.tolist():
        own = int(number[place])
        if stuck[own] and held.low[place] <= at[own] < held.high[place]:
            at[own] = held.high[place]
    names = begin.streams
    return {names[int(each)].as_py(): int(at[each]) for each in np.flatnonzero(at > begin.following)}


def _parts(
    gates: tuple[str, ...], names: list[str], gate: NDArray[np.int64], own: Pieces
) -> tuple[Part, ...]:
    """One call for each gate; more only where a stream has pieces on several, one after the other."""
    turn = _turns(own.stream)
    order = np.lexsort((own.stream, gate, turn))
    call = (turn * len(gates) + gate)[order]
    bounds = np.flatnonzero(np.diff(call, prepend=-1, append=-1))
    return tuple(
        _part(gates, int(gate[order[low]]), _wanted(names, own, order[low:high]))
        for low, high in pairwise(bounds.tolist())
    )


def _part(gates: tuple[str, ...], number: int, wanted: tuple[Wanted, ...]) -> Part:
    return Part(gates[number], wanted, gates[:number] + gates[number + 1 :])


def _wanted(names: list[str], own: Pieces, places: NDArray[np.int64]) -> tuple[Wanted, ...]:
    columns = (own.stream[places].tolist(), own.first[places].tolist(), own.last[places].tolist())
    return tuple((names[stream], first, last) for stream, first, last in zip(*columns, strict=True))


def _turns(stream: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each piece how many of its stream come before it; the pieces of a stream are side by side."""
    begins = np.flatnonzero(np.diff(stream, prepend=-1))
    return np.arange(len(stream)) - np.repeat(begins, np.diff(begins, append=len(stream)))
