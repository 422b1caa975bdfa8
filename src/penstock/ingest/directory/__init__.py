"""The directory of a controller: which gates there are, and which stream is where."""

from penstock.ingest.directory.directory import Directory

__all__ = ["Directory"]
