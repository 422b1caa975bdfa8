"""A processor run over the events of an epoch, so that every key sees rows and timers in event order.

Timeouts are inserted among the rows beforehand. Timers that a processor sets are known only after the call:
if one should have fired before a later row of the same call, it is inserted there and the key is processed
again from its old state. Each round settles one more timer of every such key, so an epoch costs one call, and
one more for each timer that fires for one key.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import BadProcess
from penstock.operators.process.events import Events, Horizon, Places, with_timeouts
from penstock.operators.process.processor import NO_TIMER, Block, Outcome, Processor
from penstock.operators.process.touched import KeysAfter, Shapes, Touched, checked

__all__ = ["MOST_ROUNDS", "stepped"]

MOST_ROUNDS = 10_000
"""How many timers of one key may fire in one epoch."""

Mask = NDArray[np.bool_]


def stepped(
    processor: Processor, touched: Touched, timeout: int | None, horizon: Horizon, shapes: Shapes
) -> KeysAfter:
    """Results, states and timers after all events up to the horizon."""
    name = type(processor).__name__
    if timeout is not None:
        events, timers = with_timeouts(touched.events, touched.timers, timeout, horizon)
        block = touched.block(events)
        outcome = checked(name, processor.step(block), block, shapes, timed=True)
        return _left([_Done(None, block, outcome, timers)], touched, shapes)
    return _left(list(_rounds(processor, name, touched, horizon, shapes)), touched, shapes)


@dataclass(frozen=True, eq=False)
class _Done:
    """What a call returned for some keys (None: for all keys), and their timers after it."""

    keys: Places | None
    block: Block
    outcome: Outcome
    timers: Places
    settled: Mask | None = None


def _rounds(processor: Processor, name: str, touched: Touched, horizon: Horizon, shapes: Shapes) -> Any:
    events, timers = _with_due(touched.events, touched.timers, horizon), touched.timers
    chosen: Mask | None = None
    for _ in range(MOST_ROUNDS):
        block = touched.block(events, chosen)
        outcome = checked(name, processor.step(block), block, shapes, timed=False)
        if outcome.timers is None and (timers == NO_TIMER).all():
            yield _Done(_numbers(chosen), block, outcome, timers)
            return
        after = _after(events, timers, outcome)
        place, when = _overtaken(events, after, horizon, name)
        open_ = np.zeros(len(block.known), np.bool_)
        open_[events.groups[place]] = True
        settled = ~open_ if open_.any() else None
        yield _Done(_numbers(chosen), block, outcome, after[block.last], settled)
        if not open_.any():
            return
        fuller = events.firing(place + 1, events.groups[place], when)
        events, timers = fuller.of(open_), timers[open_]
        chosen = _narrowed(chosen, open_)
    raise BadProcess(
        f"{name}: more than {MOST_ROUNDS} timers of one key fire in one epoch; set them further apart"
    )


def _with_due(events: Events, timers: Places, horizon: Horizon) -> Events:
    """The events with the timers that fire before the first row of their keys."""
    keys = np.arange(len(timers))
    start = np.searchsorted(events.groups, keys)
    none = np.searchsorted(events.groups, keys, "right") == start
    limit = NO_TIMER - 1 if horizon.ended else horizon.frontier
    upcoming = np.append(events.times, NO_TIMER)[start]
    due = timers <= np.minimum(limit, np.where(none, NO_TIMER, upcoming))
    return events.firing(start[due], keys[due], timers[due])


def _after(events: Events, timers: Places, outcome: Outcome) -> Places:
    """The timer of its key after each event."""
    if outcome.timers is not None:
        return outcome.timers
    fired = np.cumsum(events.fired)
    first = np.searchsorted(events.groups, events.groups)
    gone = fired - (fired[first] - events.fired[first]) > 0
    return np.where(gone, NO_TIMER, timers[events.groups])


def _overtaken(events: Events, after: Places, horizon: Horizon, name: str) -> tuple[Places, Places]:
    """The first event of each key whose timer fires before what follows it, and when."""
    following = events.following(NO_TIMER)
    limit = NO_TIMER - 1 if horizon.ended else horizon.frontier
    fires = after <= np.minimum(limit, following)
    # After the end of all input, a timer set by a timer does not fire: such a chain would never end.
    fires &= ~(events.ends & events.fired & (events.times > horizon.frontier))
    put_in = np.append(events.fired[1:], False) & ~events.ends
    if (put_in & (after != following)).any():
        raise BadProcess(
            f"{name}: it set different timers for the same rows; timers may depend on nothing else"
        )
    places = np.flatnonzero(fires & ~put_in)
    _, first = np.unique(events.groups[places], return_index=True)
    return places[first], after[places[first]]


def _numbers(chosen: Mask | None) -> Places | None:
    return None if chosen is None else np.flatnonzero(chosen)


def _narrowed(chosen: Mask | None, still: Mask) -> Mask:
    if chosen is None:
        return still
    found = chosen.copy()
    found[chosen] = still
    return found


def _left(done: list[_Done], touched: Touched, shapes: Shapes) -> KeysAfter:
    """The results of all calls; each key as left by the call that settled it."""
    if len(done) == 1 and done[0].settled is None:
        (only,) = done
        at = only.outcome.at
        state = touched.state if only.outcome.state is None else only.outcome.state
        return KeysAfter(
            only.outcome.results,
            only.block.groups[at],
            only.block.times[at],
            state,
            _known(only),
            only.timers,
        )
    results, groups, times, states, keys, known, timers = [], [], [], [], [], [], []
    for each in done:
        own = np.arange(len(touched.known)) if each.keys is None else each.keys
        settled = np.ones(len(own), np.bool_) if each.settled is None else each.settled
        at = each.outcome.at
        assert at is not None
        mine = settled[each.block.groups[at]]
        results.append(each.outcome.results.filter(pa.array(mine)))
        groups.append(own[each.block.groups[at[mine]]])
        times.append(each.block.times[at[mine]])
        state = each.block.state if each.outcome.state is None else each.outcome.state
        states.append(state.filter(pa.array(settled)))
        keys.append(own[settled])
        known.append(_known(each)[settled])
        timers.append(each.timers[settled])
    order = np.argsort(np.concatenate(keys))
    state = pa.concat_tables([each.cast(shapes.state) for each in states]).take(pa.array(order))
    return KeysAfter(
        pa.concat_tables(results),
        np.concatenate(groups),
        np.concatenate(times),
        state,
        np.concatenate(known)[order],
        np.concatenate(timers)[order],
    )


def _known(done: _Done) -> Mask:
    """A key is known from its first state until it is forgotten."""
    given = done.block.known if done.outcome.state is None else np.ones(len(done.block.known), np.bool_)
    return given if done.outcome.keep is None else given & done.outcome.keep
