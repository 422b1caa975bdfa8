"""`Sink` and `Delivery`: what a sink must do so that every result arrives exactly once.

A sink is a value: it says where results go and is checked when it is built. When a run starts, it is opened
once, on the driver; from then on its `Delivery` gets the results of each epoch.

The order of an epoch:

1. Channels write result files on the workers, in the place and format that `Sink.writes` names.
2. `Delivery.deliver` gets them on the driver, one epoch at a time, in ascending order.
3. The epoch is committed: its manifest is written.
4. `Delivery.committed` is called, and files that the sink does not keep are deleted.

**The contract.** If the process is killed between 2 and 3, the next run opens the sink again and delivers the
same epoch again: the same `EpochId` and the same rows, perhaps in other files and another order. The sink
must replace what it has of that epoch, or ignore the second delivery. There are two usual ways:

- write each epoch under a name made from `str(epoch)`, so that a second delivery overwrites the first;
- store `epoch.version` in the same transaction as the rows, and ignore versions that are not above it.

If `deliver` raises, the run fails and the epoch counts as not delivered.

In a run with a `disorder`, a sink that `takes_parts` gets results while 1 is under way, a `part` at a time,
and `whole` in place of 2.

Records of a sink belong to `SinkContext.id`. Under the name of the query alone, a second checkpoint would
find the epochs of the first and take its own for delivered.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from penstock.connect.results import EpochId, ResultFormat, Results
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Begins", "Delivery", "Sink", "SinkContext"]


@dataclass(frozen=True)
class Begins:
    """Where a run begins: `last` is the last committed epoch, None if there is none.

    Whatever a sink has of later epochs was delivered by a run that ended before it could commit: at most one
    epoch, which will be delivered again. But if the run goes `back` to an earlier epoch, there may be many,
    and what will be delivered under their ids has other rows. `owner` is a number that grows with every run.

    `hold` raises `LostCheckpoint` if another run has taken over. A sink that lists what it wants to delete,
    then calls it, then deletes, touches nothing that the other run has written.
    """

    last: EpochId | None = None
    back: bool = False
    owner: int = 1
    hold: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SinkContext:
    """What a sink gets when a run opens it.

    `id` is unique to this output of this checkpoint and the same in every run over it: two checkpoints of one
    query have two. `name` is the name of the run, or a digest of the query. `schema` are the columns of the
    results. `folder` is a folder of the checkpoint for this sink alone; unless the sink overrides
    `Sink.writes`, result files pass through it and everything in it is deleted when a run starts. `order` are
    the columns that give the time of a result, by which `Results.table` sorts; it is empty if results come in
    the order of the source. Later versions may add fields.
    """

    id: str
    name: str
    schema: pa.Schema
    folder: Location
    session: "SparkSession"
    order: tuple[str, ...] = ()
    begins: Begins = Begins()


class Delivery(ABC):
    """An open sink; one run uses it, from one thread at a time, on the driver."""

    @abstractmethod
    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Take the results of an epoch, all or none; `results` may be empty.

        The first epoch of a run may have been delivered before. No later one has.
        """

    def part(self, epoch: EpochId, rows: pa.Table) -> None:
        """Take some results of an epoch that is not whole; only if the sink `takes_parts`.

        In a run with a `disorder`, all results come in parts, and `whole` comes in place of `deliver`.
        """
        raise NotImplementedError(f"{type(self).__name__} has takes_parts = True, and no part()")

    def whole(self, epoch: EpochId) -> None:  # noqa: B027 -- most sinks have nothing to do
        """Every part of the epoch has been given; it will be committed next."""

    def committed(self, epoch: EpochId) -> None:  # noqa: B027 -- most sinks have nothing to do
        """The epoch is committed and will not be delivered again."""

    def close(self) -> None:  # noqa: B027 -- most sinks have nothing to do
        """The run has ended, successfully or not; called once."""


class Sink(ABC):
    """Where results go. Subclass it in your own file, preferably as a frozen dataclass.

    Nothing may touch Spark or the network before `open`.
    """

    keeps_files: ClassVar[bool] = False
    """Whether delivered files belong to the sink; by default they are deleted after the commit."""

    takes_back: ClassVar[bool] = False
    """Whether `open` drops what it has of epochs after `context.begins.last`, or refuses if it cannot.

    Without it a run into this sink cannot go back to an earlier epoch."""

    takes_parts: ClassVar[bool] = False
    """Whether it can take results before their epoch is whole, as channels finish, by `Delivery.part`.

    If the run is killed before the epoch is committed, the next run gives the epoch again, perhaps in other
    parts: `open` has to drop what it has of epochs after `context.begins.last`. A sink without it takes whole
    epochs, which are never out of order."""

    @abstractmethod
    def open(self, context: SinkContext) -> Delivery:
        """Check that the sink can take these results, and prepare it. Raise `SinkError` if it cannot."""

    def writes(self, folder: Location) -> ResultFormat:
        """Where workers write result files, and in which format: by default Arrow files in `folder`."""
        return ResultFormat(folder, "arrow")

    @property
    def exclusive(self) -> str | None:
        """What no other output of the query may write to, such as a folder; None if others may."""
        return None
