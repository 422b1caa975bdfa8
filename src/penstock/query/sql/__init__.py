"""The query language: SQL with a window after the tables of FROM and a bound after each join."""

from penstock.query.sql.language import sql

__all__ = ["sql"]
