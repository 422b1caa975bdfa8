"""A sink in a run: the code between an epoch and the `Delivery` of any sink."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.connect import Begins, Delivery, EpochId, Output, ResultFormat, Results, Sink, SinkContext
from penstock.durable import Purpose
from penstock.errors import BadSink
from penstock.state.storage import Location

__all__ = ["OpenSink", "QueryOutput"]


@dataclass
class OpenSink:
    """Opens a sink, gives it the files of each epoch, and deletes those that it does not keep.

    If it is given results `in_parts`, it is a `Receiver` of a merger, for which they may be out of order by
    `disorder`, None: by any number.
    """

    sink: Sink
    id: str
    name: str
    folder: Location
    order: tuple[str, ...]
    session: SparkSession
    disorder: int | None = None
    in_parts: bool = False
    target: ResultFormat = field(init=False)
    _schema: pa.Schema = field(init=False)
    _delivery: Delivery | None = field(init=False, default=None)
    _epoch: EpochId | None = field(init=False, default=None)
    _hold: Callable[[], None] = field(init=False)

    def __post_init__(self) -> None:
        # Names of files say whose they are, so that in a shared folder everybody deletes only their own.
        self.target = replace(self.sink.writes(self.folder), label=f"{self.id}.")

    def prepare(self, schema: pa.Schema, begins: Begins) -> None:
        """Open the sink before the first epoch, and delete what failed attempts left behind."""
        self._schema, self._hold = schema, begins.hold
        if not self.sink.keeps_files:
            self.target.folder.make()
            left = self.target.folder.names()
            begins.hold()  # nothing that a later owner has written
            for name in left:
                self.target.folder.delete(name, Purpose.COLLECT)
        context = SinkContext(
            id=self.id,
            name=self.name,
            schema=schema,
            folder=self.folder,
            session=self.session,
            order=self.order,
            begins=begins,
        )
        opened = self.sink.open(context)
        if not isinstance(opened, Delivery):
            raise BadSink(
                f"{type(self.sink).__name__}.open() returned {type(opened).__name__}; return a Delivery"
            )
        self._delivery = opened

    def deliver(self, epoch: EpochId, files: Sequence[Output]) -> None:
        """Deliver the files of an epoch; a replay delivers the same rows again."""
        assert self._delivery is not None, "a sink is opened before the first epoch"
        self._epoch = epoch
        self._hold()
        if self.in_parts:
            self._delivery.whole(epoch)
            return
        self._delivery.deliver(epoch, Results(epoch, self._schema, self.target, tuple(files), self.order))

    def give(self, epoch: EpochId, rows: pa.Table) -> None:
        """Deliver some results of an epoch that is not whole."""
        assert self._delivery is not None, "a sink is opened before the first epoch"
        if epoch != self._epoch:
            self._epoch = epoch
            self._hold()
        self._delivery.part(epoch, rows)

    def forget(self, outputs: Sequence[Output]) -> None:
        """Clean up after the epoch is committed."""
        assert self._delivery is not None, "only what was delivered is committed"
        assert self._epoch is not None, "only what was delivered is committed"
        self._delivery.committed(self._epoch)
        if not self.sink.keeps_files:
            for output in outputs:
                self.target.folder.delete(output.name, Purpose.COLLECT)

    def close(self) -> None:
        """Close the sink at the end of the run."""
        if self._delivery is not None:
            self._delivery.close()
            self._delivery = None


@dataclass(frozen=True)
class QueryOutput:
    """An output of the query: its delivery, its columns, and where its tuples come from.

    `origins` are streams and stages; `exits` are pairs of a stage and one of its ways, where all of them are.
    """

    delivery: OpenSink
    schema: Any
    exits: tuple[tuple[int, int], ...]
    origins: tuple[str | int, ...]

    @property
    def by_channels(self) -> bool:
        """Whether channels of stages write all of it."""
        return len(self.exits) == len(self.origins)
