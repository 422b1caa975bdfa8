"""A Delta table: workers write its files, and one transaction per epoch adds them."""

import os
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock import durable
from penstock.checks import path_text, printable
from penstock.connect.results import EpochId, ResultFormat, Results
from penstock.connect.sink import Begins, Delivery, Sink, SinkContext
from penstock.durable import Purpose
from penstock.errors import BadSink, SinkError
from penstock.extras import extra
from penstock.state.storage import Location

__all__ = ["DeltaSink", "delta"]


@dataclass(frozen=True, repr=False)
class DeltaSink(Sink):
    """A Delta table; its transactions are recorded under the name `app`, by default the id of the output."""

    path: str
    app: str | None = None

    keeps_files: ClassVar[bool] = True
    takes_back: ClassVar[bool] = True

    def __post_init__(self) -> None:
        path_text(self.path, BadSink)
        if self.app is not None:
            printable("app", self.app, BadSink)

    def writes(self, folder: Location) -> ResultFormat:
        """The folder of the table: files count only once a transaction names them."""
        del folder
        return ResultFormat(Location.of(self.path), "parquet", "snappy")

    def open(self, context: SinkContext) -> Delivery:
        """Create the table, or check that it has the columns of the results."""
        with extra("delta", "deltalake", "a Delta table"):
            import deltalake  # noqa: PLC0415 -- declaring needs none of it

        folder = Location.of(self.path)
        folder.make()
        table = deltalake.DeltaTable.create(folder.uri, context.schema, mode="ignore")
        wanted = _columns(deltalake.Schema.from_arrow(context.schema))
        found = _columns(table.schema())
        if found != wanted:
            raise SinkError(
                f"Delta table {folder.uri} has the columns {', '.join(found)}, but the results have "
                f"{', '.join(wanted)}; use another table or change the query"
            )
        app = self.app or f"penstock-{context.id}"
        _refuse_ahead(table.transaction_version(app), app, folder, context.begins)
        return _DeltaDelivery(folder, app)

    def __repr__(self) -> str:
        return f"delta({self.path!r})" if self.app is None else f"delta({self.path!r}, app={self.app!r})"


@dataclass(frozen=True)
class _DeltaDelivery(Delivery):
    """Exactly once by application id and version: an existing transaction is not repeated."""

    folder: Location
    app: str

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Add the epoch's files in one transaction, unless that has already happened."""
        from deltalake import DeltaTable  # noqa: PLC0415 -- declaring needs none of it
        from deltalake.transaction import AddAction, CommitProperties, Transaction  # noqa: PLC0415 -- same

        table = DeltaTable(self.folder.uri)
        done = table.transaction_version(self.app)
        if not results.files or (done is not None and done >= epoch.version):
            return
        now = int(time.time() * 1000)
        actions = [
            AddAction(each.name, each.bytes, {}, now, data_change=True, stats=f'{{"numRecords":{each.rows}}}')
            for each in results.files
        ]
        # What the transaction names lasts before it, and the transaction before the manifest.
        self.folder.sync_names(Purpose.DELIVERY)
        durable.reached(Purpose.DELIVERY)
        properties = CommitProperties(app_transactions=[Transaction(self.app, epoch.version)])
        table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)
        log = self.folder / "_delta_log"
        log.sync(f"{DeltaTable(self.folder.uri).version():020d}.json", Purpose.DELIVERY)
        log.sync_names(Purpose.DELIVERY)


def _refuse_ahead(done: int | None, app: str, folder: Location, begins: Begins) -> None:
    """Refuse a table that is ahead of the run: what the run delivers next would be taken for delivered."""
    last = begins.last or EpochId(-1, drain=True)
    # An epoch can have been delivered and not committed, but not if the run has gone back before it.
    newest = last.version if begins.back else EpochId(last.epoch + 1).version
    if done is not None and done > newest:
        raise SinkError(
            f"Delta table {folder.uri} has results under the name {app!r} up to epoch {done // 2}, but this "
            f"run begins with epoch {last.epoch + 1}: they would count as delivered; use the checkpoint that "
            "wrote them, or restore the table (DeltaTable.restore) to the version before that epoch and give "
            "delta(path, app=…) a new name"
        )


def _columns(schema: Any) -> list[str]:
    return [f"{field.name} {field.type}" for field in schema.fields]


def delta(path: str | os.PathLike[str], app: str | None = None) -> DeltaSink:
    """Append to a Delta table, each epoch in one transaction under the name `app`, by default an id.

    Several checkpoints can append to one table. A name of your own must be used by one output only.

    >>> delta("table", app="traffic")
    delta('table', app='traffic')
    """
    return DeltaSink(path_text(path, BadSink), app)
