"""The log of a gate: durable rows, found by stream and sequence."""

from penstock.ingest.log.catalogue import Catalogue
from penstock.ingest.log.group_commit import LogEntry
from penstock.ingest.log.log import Log

__all__ = ["Catalogue", "Log", "LogEntry"]
