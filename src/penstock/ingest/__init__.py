"""How live streams enter, over Arrow Flight: clients, gates, and the directory that brings them together."""

from penstock.ingest.access import TLS
from penstock.ingest.async_client import AsyncClient
from penstock.ingest.client import Client
from penstock.ingest.connection import Connection
from penstock.ingest.directory import Directory
from penstock.ingest.gate import Gate
from penstock.ingest.limits import Limits
from penstock.ingest.metadata import Metadata
from penstock.ingest.redirections import Redirection
from penstock.ingest.security import Security

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
