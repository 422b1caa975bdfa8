"""`Source`: what a source of tuples must do so that an epoch can be replayed.

A source is a value: it says where tuples come from. It is checked when it is built and when a stream is
declared with it. When a run starts, it is opened once, on the driver, and returns a Spark streaming
DataFrame. Spark reads the tuples on the workers.

**The contract.** Spark records the offsets of an epoch before it runs. After a kill the next run opens the
source again, on the same checkpoint, and Spark asks for the same offsets: the DataFrame must then give the
same tuples. Files, Kafka and every other replayable source of Spark do so. `SourceContext.folder` belongs
to the source and stays with the checkpoint, so the source can keep a reader's name or a copy of the tuples
there.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from penstock.expressions.schema import Schema
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ARRIVED", "CORRUPT", "REASON", "EpochTaken", "Source", "SourceContext"]

_log = logging.getLogger("penstock.run")

CORRUPT: Final = "_ps_corrupt"
"""A column that a source may add: the text of a record that it cannot read, which becomes a reject."""

REASON: Final = "_ps_reason"
"""A column that a source may add beside `CORRUPT`: why it cannot read the record."""

ARRIVED: Final = "_ps_arrived"
"""A column that a live source may add: when the tuple arrived, a bigint of microseconds since 1970.

Without it, a tuple counts as arrived when an epoch is offered it. It serves to measure the latency of results
and decides nothing about them.
"""


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """What a source gets when a run opens it.

    `name`, `schema` and `time` are those of the stream that it feeds. `folder` is a folder of the checkpoint
    for this stream alone; it may not exist yet. `warn` takes a sentence for the log and for `Run.warnings`.
    `slots` is the most tasks that can run at a time.
    Later versions may add fields.
    """

    session: "SparkSession"
    name: str
    schema: Schema
    time: str
    folder: Location
    warn: Callable[[str], None] = _log.warning
    slots: int = 1


@dataclass(frozen=True)
class EpochTaken:
    """What an epoch took of a source: its tuples, and the files that they came from, if they did."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


class Source(ABC):
    """The source of a stream's tuples. Subclass it in your own file, preferably as a frozen dataclass.

    It must be hashable, because a stream is. Nothing may touch Spark or the network before `open`.
    """

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether it ends; a run over bounded sources ends by itself and closes every window."""

    @abstractmethod
    def open(self, context: SourceContext) -> "DataFrame":
        """A streaming DataFrame with the columns of the schema, by name; other columns are ignored."""

    @property
    def whole_folder(self) -> str | None:
        """The path or URI of a folder of which it reads all files: a run puts none of its own there."""
        return None

    @property
    def reads_files(self) -> bool:
        """Whether `read` gives the tuples of an epoch; the DataFrame of `open` then only says which files."""
        return False

    def read(self, context: SourceContext, files: Sequence[str]) -> "DataFrame":
        """The tuples of an epoch's files, given as URIs, as a DataFrame that is not streaming."""
        raise NotImplementedError

    def took_all(self, taken: EpochTaken) -> bool:
        """Whether an epoch that took this has taken all that there was; `idle` depends on it.

        The default is for a source without a limit for an epoch.
        """
        del taken
        return True

    def conform(self, name: str, schema: Schema) -> Self:
        """The source for a stream with this name and schema. Raise `BadSource` if it does not fit."""
        del name, schema
        return self
