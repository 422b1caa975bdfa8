"""A keyed function over the events of an epoch, without the rows for which it raises.

Keys are independent of each other, so the keys of a call that raises are halved down to single ones. For a
single key the first row that makes the function raise is found by halving its rows, and the key is processed
again from its old state without it. What a call that raised had done is never used: a refused row leaves no
trace in states, timers or results. A timer for which a function raises belongs to no row; that fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.errors import BadProcess
from penstock.operators.blame import reason_of, unless_row_fault
from penstock.operators.poison import Refuse, record_of
from penstock.operators.process.events import Events, Horizon, Places
from penstock.operators.process.processor import NO_TIMER
from penstock.operators.process.touched import KeysAfter, Shapes, Touched

__all__ = ["Sparing"]


@dataclass(frozen=True)
class Sparing:
    """A function, called for some keys up to a horizon, what it declares, and who takes refused rows."""

    call: Callable[[Touched, Horizon], KeysAfter]
    name: str
    shapes: Shapes
    refuse: Refuse

    def keys(self, touched: Touched, horizon: Horizon) -> KeysAfter:
        """Results, states and timers after all events up to the horizon, except the rows that are refused."""
        done: list[tuple[Places, KeysAfter]] = []
        pending = [np.arange(len(touched.known))]
        while pending:
            keys = pending.pop()
            part = _of(touched, keys)
            if len(keys) == 1:
                done.append((keys, self._key(part, horizon)))
                continue
            found = self._attempt(part, horizon)
            if isinstance(found, Exception):
                middle = len(keys) // 2
                pending += [keys[middle:], keys[:middle]]
            else:
                done.append((keys, found))
        return done[0][1] if len(done) == 1 else _joined(done, self.shapes)

    def _attempt(self, touched: Touched, horizon: Horizon) -> KeysAfter | Exception:
        """What the function leaves, or what it raises because of a row."""
        limit = NO_TIMER - 1 if horizon.ended else horizon.frontier
        if not len(touched.events.rows) and not (touched.timers <= limit).any():
            return self._untouched(touched)
        try:
            return self.call(touched, horizon)
        except Exception as error:  # noqa: BLE001 -- whatever a user's function raises
            unless_row_fault(self.name, error)
            return error

    def _key(self, touched: Touched, horizon: Horizon) -> KeysAfter:
        """One key: refuse its first row that fails, and again, until all others pass."""
        while isinstance(found := self._attempt(touched, horizon), Exception):
            failing = self._first_failing(touched, horizon)
            key, events = touched.keys.to_pylist()[0], touched.events
            if failing is None:
                raise BadProcess(
                    f"{reason_of(self.name, found)} for a timer of the key {key}; only rows can be set "
                    "aside: correct the function"
                ) from found
            place, error = failing
            row = touched.rows.slice(int(events.rows[place]), 1).to_pylist()[0]
            self.refuse(reason_of(self.name, error), record_of({**key, **row}))
            others = np.arange(len(events.rows)) != place
            left = Events(events.rows[others], events.groups[others], events.times[others])
            touched = replace(touched, events=left)
        return found

    def _first_failing(self, touched: Touched, horizon: Horizon) -> tuple[int, Exception] | None:
        """The first row of a key at which the function raises, and what; None if only a timer does it.

        What comes before a row decides what happens at it, so the search is by halves.
        """
        passing, failing = 0, len(touched.events.rows)
        error = self._error(touched, horizon, failing, failing) if failing else None
        if error is None:
            return None
        while failing - passing > 1:
            middle = (passing + failing) // 2
            found = self._error(touched, horizon, middle, middle)
            if found is None:
                passing = middle
            else:
                failing, error = middle, found
        # A timer that fires on the way to the row fails without the row as well.
        timer = self._error(touched, horizon, failing - 1, failing)
        return (failing - 1, error) if timer is None else None

    def _error(self, touched: Touched, horizon: Horizon, rows: int, upto: int) -> Exception | None:
        """What the first rows of a key raise, with the timers up to the row that counts as `upto`."""
        events = touched.events
        time = int(events.times[upto - 1])
        first = Events(events.rows[:rows], events.groups[:rows], events.times[:rows])
        until = Horizon(time if horizon.ended else min(horizon.frontier, time))
        found = self._attempt(replace(touched, events=first), until)
        return found if isinstance(found, Exception) else None

    def _untouched(self, touched: Touched) -> KeysAfter:
        none = np.empty(0, np.int64)
        results = self.shapes.result.empty_table()
        return KeysAfter(results, none, none, touched.state, touched.known, touched.timers)


def _of(touched: Touched, keys: Places) -> Touched:
    """Some of the keys, with their events."""
    if len(keys) == len(touched.known):
        return touched
    chosen = np.zeros(len(touched.known), np.bool_)
    chosen[keys] = True
    mask = pa.array(chosen)
    return Touched(
        touched.rows,
        touched.events.of(chosen),
        touched.keys.filter(mask),
        touched.state.filter(mask),
        touched.known[chosen],
        touched.timers[chosen],
    )


def _joined(done: list[tuple[Places, KeysAfter]], shapes: Shapes) -> KeysAfter:
    """What several calls left, each for neighbouring keys, in the order of keys."""
    after = [each for _, each in done]
    return KeysAfter(
        pa.concat_tables([each.results for each in after]),
        np.concatenate([keys[each.groups] for keys, each in done]),
        np.concatenate([each.times for each in after]),
        pa.concat_tables([each.state.cast(shapes.state) for each in after]),
        np.concatenate([each.known for each in after]),
        np.concatenate([each.timers for each in after]),
    )
