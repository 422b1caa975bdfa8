"""What an epoch brings to the keys of a channel, what user code returns for it, and what it leaves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import BadProcess
from penstock.operators.process.events import Events
from penstock.operators.process.processor import NO_TIMER, Block, Outcome

__all__ = ["KeysAfter", "Shapes", "Touched", "checked"]


@dataclass(frozen=True)
class Shapes:
    """The declared columns of states and of results, and the type in which people read times."""

    state: Any
    result: Any
    time: Any


@dataclass(frozen=True, eq=False)
class Touched:
    """The rows of an epoch in any order, their events in order, and their keys before these events.

    `timers` are times, NO_TIMER where none is set. A key without a row is included because its timer fires.
    """

    rows: Any
    events: Events
    keys: Any
    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]

    def block(self, events: Events, chosen: NDArray[np.bool_] | None = None) -> Block:
        """The block that a processor gets for these events; `chosen` selects the keys, None means all."""
        at = slice(None) if chosen is None else chosen
        fired = events.fired
        index = pa.array(events.rows, mask=fired) if fired.any() else pa.array(events.rows)
        return Block(
            rows=self.rows.take(index),
            groups=events.groups,
            times=events.times,
            fired=fired,
            keys=self.keys if chosen is None else self.keys.filter(pa.array(chosen)),
            state=self.state if chosen is None else self.state.filter(pa.array(chosen)),
            known=self.known[at],
        )


@dataclass(frozen=True, eq=False)
class KeysAfter:
    """What an epoch leaves: results with key numbers and times; then state, known and timer of each key."""

    results: Any
    groups: NDArray[np.int64]
    times: NDArray[np.int64]
    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]


def checked(name: str, outcome: object, block: Block, shapes: Shapes, *, timed: bool) -> Outcome:
    """What a processor returned, checked and cast as declared; `timed` if a timeout sets the timers."""
    if not isinstance(outcome, Outcome):
        raise BadProcess(f"{name}.step returned {type(outcome).__name__}; return a ps.Outcome")
    keys, events = len(block.known), len(block.groups)
    state = outcome.state
    if state is not None:
        state = _cast(name, "state", state, shapes.state)
        _check_length(name, "state", state.num_rows, keys, "key")
    results = outcome.results
    results = (
        shapes.result.empty_table() if results is None else _cast(name, "results", results, shapes.result)
    )
    at = np.empty(0, np.int64) if outcome.at is None else np.asarray(outcome.at, np.int64)
    _check_length(name, "at", len(at), results.num_rows, "result")
    if len(at) and (at.min() < 0 or at.max() >= events):
        raise BadProcess(f"{name}.step: at has numbers outside 0 to {events - 1}, the events of the block")
    keep = None if outcome.keep is None else np.asarray(outcome.keep, np.bool_)
    _check_length(name, "keep", keys if keep is None else len(keep), keys, "key")
    if outcome.timers is not None and timed:
        raise BadProcess(f"{name}.step sets timers although there is a timeout; use only one of them")
    return Outcome(results, at, state, keep, _timers(name, outcome.timers, block))


def _timers(name: str, timers: Any, block: Block) -> NDArray[np.int64] | None:
    if timers is None:
        return None
    found = np.asarray(timers, np.int64)
    _check_length(name, "timers", len(found), len(block.times), "event")
    again = block.fired & (found <= block.times)
    if again.any():
        raise BadProcess(
            f"{name}.step: a timer that fires at {int(block.times[again][0])} sets the next one at "
            f"{int(found[again][0])}; set a later time, or NO_TIMER ({NO_TIMER})"
        )
    # A time in the past means at once.
    return np.maximum(found, block.times)


def _check_length(name: str, part: str, given: int, wanted: int, each: str) -> None:
    if given != wanted:
        raise BadProcess(f"{name}.step: {part} has {given} entries; give one for each {each}, {wanted}")


def _cast(name: str, part: str, table: Any, schema: Any) -> Any:
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise BadProcess(f"{name}.step: {part} is {type(table).__name__}; give a pyarrow.Table")
    lacking = [each for each in schema.names if each not in table.column_names]
    if lacking:
        raise BadProcess(
            f"{name}.step: {part} has no column {lacking[0]!r}; declared are {', '.join(schema.names)}"
        )
    chosen = table.select(schema.names)
    if chosen.schema.equals(schema):
        return chosen
    try:
        return chosen.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadProcess(f"{name}.step: {part} cannot be held as declared: {error}") from error
