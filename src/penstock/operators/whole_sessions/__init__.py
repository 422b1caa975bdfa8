"""Functions over the rows of whole sessions: the operator and what its channels do."""

from penstock.operators.whole_sessions.node import WholeSessions

__all__ = ["WholeSessions"]
