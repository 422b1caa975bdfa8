"""The sources of Penstock. A new source is one file here and its lines in this list."""

from penstock.connect.source import Source
from penstock.connect.sources.dataframe import DataFrameSource, dataframe
from penstock.connect.sources.files import FilesSource, files
from penstock.connect.sources.gates import GatesSource, gates
from penstock.connect.sources.rows import RowsSource, rows

__all__ = [
    "SOURCES",
    "DataFrameSource",
    "FilesSource",
    "GatesSource",
    "RowsSource",
    "dataframe",
    "files",
    "gates",
    "rows",
]

SOURCES: tuple[type[Source], ...] = (DataFrameSource, FilesSource, GatesSource, RowsSource)
"""Every source; the contract suite runs over them."""
