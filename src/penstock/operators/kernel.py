"""The kernel of an operator with channels: everything that its channels do, free of Spark and of clocks.

A stage gives its kernel new rows, its state and how far event time has come, and takes results and new
segments. Channels share nothing: what a channel leaves behind is files under names of its own and one
receipt, so a task that runs twice spoils nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.distribution import Distribution
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import Exchange, Form
from penstock.operators.poison import Refuse
from penstock.state.segments import ChannelStore, Segment
from penstock.state.table import Table

__all__ = [
    "Advance",
    "Channel",
    "Describe",
    "Ends",
    "Kernel",
    "Progress",
    "Seen",
    "StagePosition",
    "WindowEnds",
]

Describe = Callable[[list[str]], list[tuple[str, bool]]]
"""Type and nullability of Spark SQL expressions over the rows of a port, as Spark's analyzer tells them."""

Progress = Mapping[str, Any]
"""What an operator remembers of event time beside its frontiers, as plain JSON values of its own."""


@dataclass(frozen=True)
class StagePosition:
    """How far a stage has come.

    `frontiers` are those of its ports, empty before the first epoch. `promise` is the event time below
    which it gives no more results.
    """

    frontiers: tuple[int | None, ...] = ()
    promise: int | None = None
    progress: Progress = field(default_factory=dict)

    def frontier(self, port: int) -> int | None:
        """The frontier of a port, None while nothing is promised."""
        return self.frontiers[port] if self.frontiers else None


@dataclass(frozen=True)
class Seen:
    """What is known of an epoch before its channels run.

    Whether channels get new rows, the last bucket among those, and whether any channel holds state.
    """

    rows: bool = False
    bucket: int | None = None
    state: bool = False


@dataclass(frozen=True)
class Advance:
    """How far a stage comes in an epoch.

    `idle`: its channels have nothing to do. `ended`: nothing more will ever come.
    """

    position: StagePosition
    idle: bool = False
    ended: bool = False


@dataclass(frozen=True)
class Channel:
    """What one channel is given in an epoch.

    It is one of `channels`. `new` are the rows of each port, None where there are none, in the given `form`.
    `store` is its state. `before` and `after` say how far the stage had come and comes now. `refuse` takes
    rows for which a function of the user raises; without it, what it raises is raised. `meter` takes what
    rows cost, where that is asked for. `late` takes the hashes and buckets of tuples that came too late, from
    a kernel that judges by its state. `view` is what it has to know of the stage's layout, as the
    distribution gives it: which channel computes each window, or which keys are on judged grids.
    """

    number: int
    new: tuple[Any | None, ...]
    form: Form
    store: ChannelStore
    before: StagePosition
    after: StagePosition
    ended: bool
    emit: Callable[[Any], None]
    refuse: Refuse | None = None
    channels: int = 1
    meter: CostMeter | None = None
    late: Callable[[Any], None] | None = None
    view: Any = None


@dataclass(frozen=True)
class WindowEnds:
    """The event times at which the windows that an epoch closes end, and how long they are, all or each."""

    times: Sequence[int]
    size: int | Sequence[int]


Ends = WindowEnds | None
"""Up to which event times the results of an epoch go; None: they follow from single tuples."""


class Kernel(ABC):
    """What the channels of a stage do; a frozen data class, made once and shipped to the workers."""

    @property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema of results, their event time in microseconds (TIME) among the columns."""

    @property
    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables that its state is made of."""

    @property
    @abstractmethod
    def exchanges(self) -> tuple[Exchange, ...]:
        """What each port sends to the channels."""

    @property
    def distribution(self) -> Distribution:
        """Where the rows of all ports go."""
        return self.exchanges[0].distribution

    @abstractmethod
    def bound(self, position: StagePosition, port: int) -> int | None:
        """The event time below which a tuple comes too late for a port."""

    @property
    def judges(self) -> bool:
        """Whether its channels find tuples that come too late, by their state and not by a bound alone.

        All tuples of one key and bucket are late then, or none.
        """
        return False

    @abstractmethod
    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """How far the stage comes with these frontiers.

        If all streams have ended, `drained` is just after the latest tuple that the stage can get.

        Called on the driver when the map side has seen every row of the epoch, before the channels run.
        """

    @abstractmethod
    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Take the new rows of a channel, emit results, and give the segments of its state afterwards."""

    def partly_late(self, before: StagePosition, new: tuple[Any | None, ...], form: Form) -> int:
        """How many tuples among the new rows of a channel came too late for a part of what they go into."""
        del before, new, form
        return 0

    def ends(self, before: StagePosition, after: StagePosition) -> Ends:
        """The windows that are closed on the way from one position to another, if it has windows."""
        del before, after
        return None

    @property
    def partials(self) -> Any:
        """The Arrow schema of partials, where an exchange has a `combine`."""
        raise NotImplementedError

    def form(self, rows: Any) -> Any:
        """Partials of raw rows, where an exchange has a `combine`."""
        raise NotImplementedError

    def received(self, combined: Any) -> Any:
        """Partials of what Spark SQL has combined, where only Spark can."""
        raise NotImplementedError

    def merge(self, partials: Any) -> Any:
        """The partials of several channels as one for each bucket and key, merged in their order."""
        raise NotImplementedError

    def hosted(self, keys: tuple[str, ...]) -> "Kernel":
        """The same kernel in the channels of another stage, which parts its rows by these of its keys."""
        raise NotImplementedError
