"""What an epoch brings to the keys of a channel, and what is left of it afterwards."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.keyed.events import Events
from penstock.keyed.processor import Block

__all__ = ["Left", "Shapes", "Touched"]


@dataclass(frozen=True)
class Shapes:
    """The declared columns of states and of results, and the type in which people read times."""

    state: Any
    result: Any
    time: Any


@dataclass(frozen=True, eq=False)
class Touched:
    """Rows in any order, their events in order, and the keys they are of, as they stand.

    `timers` are times, NO_TIMER where none is set; a key without a row is there because its timer fires.
    """

    rows: Any
    events: Events
    keys: Any
    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]

    def block(self, events: Events, chosen: NDArray[np.bool_] | None = None) -> Block:
        """What a processor is given of these events; of some keys alone, by the numbers that they get."""
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
class Left:
    """Results with the numbers of their keys and their times; the states, who is known, the timers."""

    results: Any
    groups: NDArray[np.int64]
    times: NDArray[np.int64]
    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]
