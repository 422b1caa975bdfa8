"""`Source`, `Reader` and `Split`: where tuples come from, so that an epoch can be replayed.

A source is a value: it says where tuples come from. It is checked when it is built and when a stream is
declared with it. When a run starts, it is opened once, on the driver. Its `Reader` says how far the next
epoch reads; the workers read the `Split`s in between as Arrow.

**The contract.** An offset says how far a source has been read. The offset where an epoch ends is durable
before the epoch runs. After a kill the next run opens the source again, on the same checkpoint, and asks for
the splits between the same two offsets: they must give the same tuples, and each split its tuples in the same
order. `SourceContext.folder` belongs to the source and stays with the checkpoint, so the source can keep a
list of files, a reader's name or a copy of the tuples there.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.control.expected import Expected, QueryLoad
from penstock.expressions.schema import Schema
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ARRIVED",
    "CORRUPT",
    "FILE",
    "NOTHING_SAID",
    "REASON",
    "Ahead",
    "Offset",
    "Reader",
    "Source",
    "SourceContext",
    "SourceNote",
    "Split",
]

_log = logging.getLogger("penstock.run")

CORRUPT: Final = "_ps_corrupt"
"""A column that a source may add: the text of a record that it cannot read, which becomes a reject."""

REASON: Final = "_ps_reason"
"""A column that a source may add beside `CORRUPT`: why it cannot read the record."""

FILE: Final = "_ps_file"
"""A column that a DataFrame of a source may have: the file of a tuple, which is told with a reject."""

ARRIVED: Final = "_ps_arrived"
"""A column that a live source may add: when the tuple arrived, a bigint of microseconds since 1970.

Without it, a tuple counts as arrived when an epoch is offered it. It serves to measure the latency of results
and decides nothing about them.
"""

Offset = Mapping[str, Any]
"""How far a source has been read, in plain JSON values of its own; an empty one is before every tuple."""

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """What a source gets when a run opens it.

    `name`, `schema` and `time` are those of the stream that it feeds. `folder` is a folder of the checkpoint
    for this stream alone; it may not exist yet. `warn` takes a sentence for the log and for `Run.warnings`.
    `run` is what people call the run: its name, else its checkpoint. Later versions may add fields.
    """

    session: "SparkSession"
    name: str
    schema: Schema
    time: str
    folder: Location
    warn: Callable[[str], None] = _log.warning
    run: str = ""


@dataclass(frozen=True)
class SourceNote:
    """What an offset says of the streams behind a source.

    - `waiting`: streams that are expected, and of which no tuple has come.
    - `away`: parts of the source, such as gates, that did not answer when the offset was made.
    - `promised`: for each stream the event time below which it gives no more tuples.
    - `least`: the same for the whole source.
    - `column`: the column that tells the streams apart.
    """

    waiting: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    promised: Mapping[str, int] = field(default_factory=dict)
    least: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        away = f"no answer from gate {', '.join(self.away)}" if self.away else ""
        more = f" and {len(self.waiting) - _SHOWN:,} more" if len(self.waiting) > _SHOWN else ""
        names = f"no tuple yet of {', '.join(self.waiting[:_SHOWN])}{more}" if self.waiting else ""
        return "; ".join(each for each in (away, names) if each)


NOTHING_SAID: Final = SourceNote()


@dataclass(frozen=True)
class Ahead:
    """How far the next epoch reads.

    `whole`: the epoch takes all that there is now; `idle` depends on it. `left` is how many tuples stay for
    later epochs, as far as the source knows.
    """

    offset: Offset
    whole: bool = True
    left: int = 0


class Split(ABC):
    """Some tuples of a source: a value that travels to a worker, which reads it in one go.

    A frozen dataclass serves well: it is pickled, and two that are equal give the same tuples.
    """

    @property
    def size(self) -> int:
        """About how many bytes it is; splits are shared out to tasks by it."""
        return 1

    @property
    def file(self) -> str | None:
        """The file that it reads, if it reads one; its rejects name it."""
        return None

    @abstractmethod
    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """These columns of its tuples as pyarrow record batches, always in the same order.

        Columns are found by their names, and have the types of the stream's schema. A batch may have more
        columns, among them `CORRUPT`, `REASON` and `ARRIVED`.
        """


class Reader(ABC):
    """An open source; one run uses it, from one thread at a time, on the driver."""

    @abstractmethod
    def ahead(self, after: Offset) -> Ahead | None:
        """How far the next epoch reads from an offset; None if there is nothing new.

        What the offset relies on, such as a list of files, must be durable when this returns. An offset may
        also move without tuples, such as for a promise.
        """

    @abstractmethod
    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Split]:
        """The tuples between two offsets, cut so that about so many tasks can share them."""

    def frames(self, session: "SparkSession", after: Offset, upto: Offset) -> "Sequence[DataFrame]":
        """The tuples between two offsets that only Spark can read; by default there are none.

        They are in no split. Each DataFrame has the columns of the stream, by name, and may have the others
        that a split may have.
        """
        del session, after, upto
        return ()

    def note(self, upto: Offset) -> SourceNote:
        """What an offset says of the streams behind the source."""
        del upto
        return NOTHING_SAID

    def outlook(self, load: QueryLoad) -> Expected | None:
        """Say how the run is after an epoch, and hear what rates to expect; must return at once."""
        del load
        return None

    @property
    def ended(self) -> bool:
        """Of a bounded source with nothing ahead: whether that is its end."""
        return True

    def commit(self, upto: Offset) -> None:  # noqa: B027 -- most sources have nothing to do
        """The epoch up to this offset is committed; no replay asks for earlier tuples."""

    def close(self) -> None:  # noqa: B027 -- most sources have nothing to do
        """The run has ended; called once."""


class Source(ABC):
    """The source of a stream's tuples. Subclass it in your own file, preferably as a frozen dataclass.

    It must be hashable, because a stream is. Nothing may touch Spark or the network before `open`.
    """

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether it ends; a run over bounded sources ends by itself and closes every window."""

    @abstractmethod
    def open(self, context: SourceContext) -> Reader:
        """The reader of this source; raise `BadSource` if it can be seen to give nothing useful."""

    @property
    def whole_folder(self) -> str | None:
        """The path or URI of a folder of which it reads all files: a run puts none of its own there."""
        return None

    def conform(self, name: str, schema: Schema) -> Self:
        """The source for a stream with this name and schema. Raise `BadSource` if it does not fit."""
        del name, schema
        return self
