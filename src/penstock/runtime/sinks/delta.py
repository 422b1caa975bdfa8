"""A Delta table: channels write its files, and one transaction per epoch adds them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import deltalake
from deltalake.transaction import AddAction, CommitProperties, Transaction

from penstock.errors import SinkError
from penstock.runtime.records import Moment
from penstock.runtime.results import Output, ResultFormat
from penstock.runtime.storage import Location

__all__ = ["DeltaDelivery"]


@dataclass
class DeltaDelivery:
    """Exactly once by application id and version: a transaction that is already there is not repeated."""

    folder: Location
    app: str

    @property
    def target(self) -> ResultFormat:
        """The table's own folder: files count only once a transaction names them."""
        return ResultFormat(self.folder, "parquet", "snappy")

    def prepare(self, schema: object) -> None:
        """Create the table, or see that it has the columns of the results."""
        self.folder.make()
        table = deltalake.DeltaTable.create(self.folder.uri, schema, mode="ignore")
        found = [(field.name, str(field.type)) for field in table.schema().fields]
        wanted = [(field.name, str(field.type)) for field in deltalake.Schema.from_arrow(schema).fields]
        if found != wanted:
            raise SinkError(
                f"Delta table {self.folder.uri} has the columns {_listed(found)}, the results have "
                f"{_listed(wanted)}; use another table or change the query"
            )

    def deliver(self, moment: Moment, outputs: Sequence[tuple[int, Output]]) -> None:
        """Add the epoch's files in one transaction, unless it happened already."""
        table = deltalake.DeltaTable(self.folder.uri)
        version = _version(moment)
        done = table.transaction_version(self.app)
        if not outputs or (done is not None and done >= version):
            return
        now = int(time.time() * 1000)
        actions = [
            AddAction(
                output.name, output.bytes, {}, now, data_change=True, stats=f'{{"numRecords":{output.rows}}}'
            )
            for _, output in outputs
        ]
        properties = CommitProperties(app_transactions=[Transaction(self.app, version)])
        table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)

    def forget(self, outputs: Sequence[Output]) -> None:
        """The files are the table's now."""


def _version(moment: Moment) -> int:
    """Ascending over epochs and the drain after each."""
    return 2 * moment.epoch + int(moment.drain)


def _listed(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)
