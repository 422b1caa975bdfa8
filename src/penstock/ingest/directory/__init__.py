"""The directory of a controller: which gates there are, and which stream is where."""

from penstock.ingest.directory.directory import Directory
from penstock.ingest.directory.lease import Lease, stand_by
from penstock.ingest.directory.nodes import LocalNodes, Nodes
from penstock.ingest.directory.remote_nodes import NodeSpec, RemoteNodes, read_nodes

__all__ = [
    "Directory",
    "Lease",
    "LocalNodes",
    "NodeSpec",
    "Nodes",
    "RemoteNodes",
    "read_nodes",
    "stand_by",
]
