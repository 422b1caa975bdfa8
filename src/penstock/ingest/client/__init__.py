"""The client: rows of streams into the system."""

from penstock.ingest.client.client import AsyncClient, Client
from penstock.ingest.client.connection import Connection
from penstock.ingest.client.outbox import ClientLimits, Outbox
from penstock.ingest.client.rows import FileRows, Pace
from penstock.ingest.client.stream import Redirection

__all__ = [
    "AsyncClient",
    "Client",
    "ClientLimits",
    "Connection",
    "FileRows",
    "Outbox",
    "Pace",
    "Redirection",
]
