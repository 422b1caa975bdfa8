"""How live streams enter: clients, gates and the directory that tells the one where the other is."""

from penstock.ingest.access import TLS
from penstock.ingest.async_client import AsyncClient
from penstock.ingest.client import Client
from penstock.ingest.connection import Connection
from penstock.ingest.redirections import Redirection

__all__ = ["TLS", "AsyncClient", "Client", "Connection", "Redirection"]
