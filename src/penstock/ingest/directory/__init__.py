"""The directory of a controller: which gates there are, and which stream is where."""

from penstock.ingest.directory.directory import Directory
from penstock.ingest.directory.nodes import LocalNodes, Nodes
from penstock.ingest.directory.steering import ControlMode

__all__ = ["ControlMode", "Directory", "LocalNodes", "Nodes"]
