"""The directory of a controller: which gates there are, and which stream is where."""

from penstock.ingest.directory.directory import Directory
from penstock.ingest.directory.nodes import LocalNodes, Nodes

__all__ = ["Directory", "LocalNodes", "Nodes"]
