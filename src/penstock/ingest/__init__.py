"""How live streams enter: clients, gates and the directory that tells the one where the other is."""

from penstock.ingest.access import TLS
from penstock.ingest.async_client import AsyncClient
from penstock.ingest.client import Client
from penstock.ingest.connection import Connection
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
    "Gate",
    "Limits",
    "Metadata",
    "Redirection",
    "Security",
]
