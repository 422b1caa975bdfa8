"""Writing results inside a channel: one file per channel and epoch, handed over by receipt."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.runtime.storage import Location

__all__ = ["Output", "ResultFile", "ResultFormat"]


@dataclass(frozen=True)
class ResultFormat:
    """Where channels write results, and in which form."""

    folder: Location
    kind: Literal["parquet", "arrow"]
    compression: str = "none"


@dataclass(frozen=True)
class Output:
    """The receipt of a result file; `exit` numbers the way by which its rows left their stage."""

    name: str
    rows: int
    bytes: int
    exit: int = 0


class ResultFile:
    """A result file that exists once its first rows are written; its name belongs to this attempt."""

    def __init__(self, target: ResultFormat, schema: Any) -> None:
        self._target = target
        self._schema = schema
        self._name = f"{uuid4().hex}.{target.kind}"
        self._rows = 0
        self._stream: Any = None
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Add rows."""
        if not table.num_rows:
            return
        if self._writer is None:
            self._stream = self._target.folder.output(self._name)
            self._writer = self._open()
        self._writer.write_table(table)
        self._rows += table.num_rows

    def close(self) -> None:
        """Finish the file and make it durable."""
        if self._writer is not None:
            self._writer.close()
            self._stream.close()
            self._target.folder.sync(self._name)

    def receipt(self) -> Output | None:
        """What was written, if anything; only after the file is closed."""
        if self._writer is None:
            return None
        size = self._target.folder.size(self._name)
        assert size is not None
        return Output(self._name, self._rows, size)

    def _open(self) -> Any:
        if self._target.kind == "arrow":
            return pa.ipc.new_file(self._stream, self._schema)
        # A dictionary pays where values repeat: bounds of windows and keys, not measured values.
        plain = [f.name for f in self._schema if pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)]
        return pq.ParquetWriter(
            self._stream,
            self._schema,
            compression=self._target.compression.upper(),
            use_dictionary=[name for name in self._schema.names if name not in plain],
            store_schema=False,
        )
