"""What a keyed stateful function receives and returns: events of many keys at once, or one visit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_TIMER", "Block", "Outcome", "Processor", "Visit", "VisitFunction"]

NO_TIMER: Final = 2**63 - 1
"""The time of a timer that is not set."""


@dataclass(frozen=True, eq=False)
class Block:
    """Events of many keys with the states before them.

    An event is a row, or a timer that fires. ``rows`` (a pyarrow.Table) has one row for each, null where a
    timer fires; ``groups`` gives the number of its key, ascending, ``times`` its event time in microseconds,
    ascending for each key, ``fired`` whether it is a timer. ``keys`` and ``state`` have one row for each key;
    the state of a key that is not ``known`` is null. Every key has at least one event.
    """

    rows: Any
    groups: NDArray[np.int64]
    times: NDArray[np.int64]
    fired: NDArray[np.bool_]
    keys: Any
    state: Any
    known: NDArray[np.bool_]

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """For each key, the number of its first event."""
        return np.flatnonzero(np.diff(self.groups, prepend=-1))

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """For each key, the number of its last event."""
        return np.append(self.first[1:], len(self.groups)) - 1

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """For each event, the number of its run: a run ends with a timer, or with the events of its key."""
        after_timer = np.append(False, self.fired[:-1])[: len(self.groups)]
        starts = after_timer | (np.diff(self.groups, prepend=-1) != 0)
        return np.cumsum(starts) - 1


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a processor makes of a block.

    ``results`` (a pyarrow.Table) has the declared columns, and ``at`` for each of its rows the number of the
    event that caused it, whose key and time it gets. ``state`` has one row for each key; None leaves it as it
    was. A key is forgotten where ``keep`` is false. ``timers`` says for each event at which time (in
    microseconds, ``NO_TIMER`` for none) the single timer of the key is set after it. None changes nothing: a
    timer stays until it fires.
    """

    results: Any = None
    at: NDArray[np.int64] | None = None
    state: Any = None
    keep: NDArray[np.bool_] | None = None
    timers: NDArray[np.int64] | None = None


class Processor(ABC):
    """A keyed stateful function over Arrow; subclass it and give an instance to ``process``.

    The events of a key come in the order of time, in any number of calls. The result must not depend on where
    they are cut: one block of a and b must give what a block of a and then a block of b give.

    >>> import pyarrow as pa
    >>> class Count(Processor):
    ...     def step(self, block):
    ...         before = block.state["n"].fill_null(0).to_numpy()
    ...         after = pa.table({"n": before + np.bincount(block.groups)})
    ...         return Outcome(results=after, at=block.last, state=after)
    >>> block = Block(
    ...     rows=None,
    ...     groups=np.array([0, 0, 1]),
    ...     times=np.array([5, 7, 6]),
    ...     fired=np.zeros(3, bool),
    ...     keys=pa.table({"user": ["a", "b"]}),
    ...     state=pa.table({"n": pa.array([None, 4], pa.int64())}),
    ...     known=np.array([False, True]),
    ... )
    >>> Count().step(block).state["n"].to_pylist()
    [2, 5]
    """

    @abstractmethod
    def step(self, block: Block) -> Outcome:
        """The results and the new states of the keys in a block."""


@dataclass(frozen=True)
class Visit:
    """What a function that is called for one key and one event returns.

    ``state`` is the key's new state, None to forget it; ``results`` are rows by column; ``timer`` is when to
    be called again without a row, None for never.

    >>> Visit({"n": 3}, results=[{"seen": 3}]).timer is None
    True
    """

    state: Mapping[str, Any] | None
    results: Sequence[Mapping[str, Any]] = ()
    timer: datetime | None = None


VisitFunction = Callable[[Any, datetime, Mapping[str, Any] | None, Mapping[str, Any] | None], Visit]
"""From the key (a tuple if it has several columns), the event time, the row (None: a timer fires) and the
state (None: not known) to a visit."""
