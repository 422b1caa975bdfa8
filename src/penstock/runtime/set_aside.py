"""Tuples set aside: late tuples and rejects, which tasks write to staging and epochs deliver."""

import pyarrow.parquet as pq

from penstock.connect import Output
from penstock.connect.sinks.parquet import ParquetFiles

__all__ = ["first_reason"]


def first_reason(files: ParquetFiles, written: Output) -> str:
    """Why the first tuple of a file was rejected; the file is not delivered yet."""
    with files.format().folder.input(written.name) as file:
        return str(pq.ParquetFile(file).read_row_group(0, columns=["reason"]).column(0)[0])
