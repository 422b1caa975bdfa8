"""What a processor returned, checked and cast to what was declared."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import BadProcess
from penstock.keyed.processor import NO_TIMER, Block, Outcome
from penstock.keyed.touched import Shapes

__all__ = ["checked"]


def checked(name: str, outcome: object, block: Block, shapes: Shapes, *, timed: bool) -> Outcome:
    """The outcome with every part in place; `timed` says that a timeout sets the timers."""
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
        raise BadProcess(f"{name}.step: at has numbers outside of 0 to {events - 1}, the events of the block")
    keep = None if outcome.keep is None else np.asarray(outcome.keep, np.bool_)
    _check_length(name, "keep", keys if keep is None else len(keep), keys, "key")
    if outcome.timers is not None and timed:
        raise BadProcess(f"{name}.step sets timers beside a timeout; leave one of them out")
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
    # A time that has passed already means at once.
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
