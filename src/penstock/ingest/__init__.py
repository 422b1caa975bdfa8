"""How live streams enter, over Arrow Flight: clients, gates, and the directory that brings them together."""

from penstock.ingest.client import AsyncClient, Client, Connection, Redirection
from penstock.ingest.directory import Directory
from penstock.ingest.gate import Gate
from penstock.ingest.limits import Limits
from penstock.ingest.security import TLS, Security
from penstock.ingest.wire import Metadata

__all__ = [
    "TLS",
    "AsyncClient",
    "Client",
    "Connection",
    "Directory",
    "Gate",
    "Limits",
    "Metadata",
    "Redirection",
    "Security",
]
